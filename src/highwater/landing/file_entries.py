"""What a raw table holds about files, as columns: of a million files a few are asked for."""

import json
from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property

import pyarrow
from pyarrow import compute

from highwater.landing.landings import Landing
from highwater.landing.listing import DeliveredFile

# what a tool adds to the name of a file begins so
ADDED = "._0123456789"
NAMES = pyarrow.string()
# times in microseconds, `fields` in JSON
COLUMNS = pyarrow.schema(
    [
        ("entry", pyarrow.string()),
        ("source_file", NAMES),
        ("file_size", pyarrow.int64()),
        ("modified", pyarrow.int64()),
        ("file_hash", pyarrow.string()),
        ("landing_batch", pyarrow.int64()),
        ("landed", pyarrow.int64()),
        ("source_position", pyarrow.string()),
        ("fields", pyarrow.string()),
    ]
)


class FileEntries:
    """The entries of files; only those that are asked for become objects, each a mapping of its columns.

    Arguments:
        table: of COLUMNS; None: there are none.
    """

    def __init__(self, table: pyarrow.Table | None = None):
        table = COLUMNS.empty_table() if table is None else table.cast(COLUMNS)
        self._newest_first = table.sort_by([("landing_batch", "descending"), ("source_file", "descending")])

    @cached_property
    def _known(self) -> pyarrow.Table:
        """Of each file that landed or was skipped its newest entry."""
        names = self._newest_first["source_file"]
        places = pyarrow.array(range(len(names)), pyarrow.int32())
        return self._newest_first.filter(compute.equal(compute.index_in(names, value_set=names), places))

    def __bool__(self) -> bool:
        return self._newest_first.num_rows > 0

    @property
    def newest(self) -> Landing:
        """Number and time, in microseconds, of the newest batch; (0, 0): there is none."""
        first = self._newest_first.select(["landing_batch", "landed"])[:1].to_pylist()
        return next(((entry["landing_batch"], entry["landed"]) for entry in first), (0, 0))

    @property
    def has_files(self) -> bool:
        """Whether a file has landed, and not only been skipped."""
        return compute.any(compute.equal(self._newest_first["entry"], "file")).as_py() or False

    @cached_property
    def _with_fields(self) -> pyarrow.Table:
        """Of files that landed those with fields, in the order of batches and names."""
        columns = self._newest_first.select(["entry", "source_file", "landing_batch", "fields"])
        are_asked = compute.and_(compute.equal(columns["entry"], "file"), compute.is_valid(columns["fields"]))
        return columns.filter(are_asked).sort_by([("landing_batch", "ascending"), ("source_file", "ascending")])

    def fields(self, before: int | None = None) -> list[dict[str, str]]:
        """Return all that is known of files in `fields`, each once, in the order in which it landed.

        Arguments:
            before: the number of the first batch whose files are not asked; None: all are.
        """
        asked = self._with_fields
        asked = asked.filter(compute.less(asked["landing_batch"], before)) if before is not None else asked
        return [json.loads(fields) for fields in compute.unique(asked["fields"]).to_pylist()]

    @property
    def versions(self) -> list[dict[str, str]]:
        """What is known of versions of tables that landed or were left out, in the order of their batches."""
        fields = self._newest_first.filter(compute.equal(self._newest_first["entry"], "version"))["fields"]
        return [json.loads(each) for each in reversed(fields.to_pylist())]

    def of_batch(self, number: int) -> list[dict]:
        """Return the entries of a batch's files that have fields, in the order of their names."""
        of_batch = self._with_fields.filter(compute.equal(self._with_fields["landing_batch"], number))
        return [_with_fields_read(entry) for entry in of_batch.to_pylist()]

    def of(self, names: list[str]) -> dict[str, dict]:
        """Return what is known of some files, by name: their newest entries."""
        found = self._known.filter(compute.is_in(self._known["source_file"], pyarrow.array(names, NAMES)))
        return {entry["source_file"]: _with_fields_read(entry) for entry in found.to_pylist()}

    def called(self, beginning: str) -> list[str]:
        """Return the names of known files that begin so."""
        names = self._known["source_file"]
        return names.filter(compute.starts_with(names, beginning)).to_pylist()

    def differing(self, files: list[DeliveredFile]) -> Iterator[tuple[DeliveredFile, dict | None]]:
        """Yield the files of other size or time than their newest entries, each with it; None: it has none.

        What cannot be read differs.
        """
        columns = {
            "source_file": pyarrow.array([file.source_file for file in files], NAMES),
            "file_size": pyarrow.array([file.size for file in files], pyarrow.int64()),
            "modified": pyarrow.array([file.modified_at for file in files], pyarrow.timestamp("us", "UTC")),
        }
        places = compute.index_in(columns["source_file"], value_set=self._known["source_file"])
        landed = self._known.select(["file_size", "modified"]).take(places)
        is_same = compute.and_(
            compute.equal(columns["file_size"], landed["file_size"]),
            compute.equal(columns["modified"].cast(pyarrow.int64()), landed["modified"]),
        )
        found = zip(files, is_same.to_pylist(), strict=True)
        differing = [file for file, is_as_landed in found if not is_as_landed or file.problem]
        known = self.of([file.source_file for file in differing])
        yield from ((file, known.get(file.source_file)) for file in differing)

    def gone(self, there: list[str], whole: list[str]) -> list[dict]:
        """Return the entries of files that landed and are not there any more, of those called as some others and more.

        Arguments:
            there: the names of all files that are. whole: those names; behind one stands what a tool adds.
        """
        is_there = compute.is_in(self._known["source_file"], pyarrow.array(there if whole else [], NAMES))
        is_gone = compute.and_(compute.equal(self._known["entry"], "file"), compute.invert(is_there))
        gone = self._known.filter(is_gone) if whole else self._known[:0]
        gone = gone.sort_by("source_file").combine_chunks()
        names, places = gone["source_file"].combine_chunks(), set()
        for beginning in [name + mark for name in (whole if gone.num_rows else ()) for mark in ADDED]:
            place = bisect_left(names, beginning, key=lambda name: name.as_py())
            while place < len(names) and names[place].as_py().startswith(beginning):
                places.add(place)
                place += 1
        found = gone.take(pyarrow.array(sorted(places), pyarrow.int64())).to_pylist()
        return sorted(found, key=lambda entry: (entry["landing_batch"], entry["source_file"]))


def _with_fields_read(entry: dict) -> dict:
    return entry | {"fields": json.loads(entry["fields"] or "null")}
