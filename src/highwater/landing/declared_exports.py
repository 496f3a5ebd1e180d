"""What `_exports.yml` says of the exports beside it, and what it says otherwise than when they landed."""

from dataclasses import dataclass
from datetime import datetime, timezone

import yaml
from pyarrow import fs

from highwater.catalog.feeds import Feed, sql_text
from highwater.landing.deliveries import skipping
from highwater.landing.file_entries import FileEntries
from highwater.landing.listing import DeliveredFile, Found, filesystem
from highwater.runtime.errors import UsageError
from highwater.runtime.printable import printable


@dataclass(frozen=True)
class Declared:
    """What `_exports.yml` says of an export: position and time, by which entry; or why it may not land."""

    position: str | None = None
    taken_at: str | None = None
    entry: str | None = None
    problem: str | None = None


def export_positions(feed: Feed, folders: list[str], files: list[Found]) -> dict[str, Declared]:
    """Return what `_exports.yml` beside the exports declares: of each file, or of a folder above it.

    An export that was taken while the source went on has two positions, written `P0 .. P1`; one of no known position
    has None, and one of no declared time too. What is wrong with one entry keeps nothing but its own files.
    """
    if not files or feed.role != "export":
        return {}
    system, root = filesystem(feed.root)
    path = "/".join((root, *folders, "_exports.yml"))
    try:
        if system.get_file_info(path).type != fs.FileType.File:
            raise UsageError(
                f"{path} is missing. It says at which position of the source each export was taken, "
                f"for example `{files[0].below}: {{position: unknown}}`, or a position as the feed of the changes "
                "has it."
            )
        with system.open_input_stream(path) as stream:
            declared = _entries_of_exports(path, stream.read())
    except UsageError as error:
        return {str(file.below): Declared(problem=str(error)) for file in files}
    return {str(file.below): _declared_of(path, declared, file.below) for file in files}


def _declared_of(path: str, declared: dict, below) -> Declared:
    """Return what the entries of `_exports.yml` say of one file."""
    names = [str(below), *(str(parent) for parent in below.parents)]
    name = next((name for name in names if isinstance(declared.get(name), dict)), None)
    entry = declared.get(name, {})
    given = entry.get("position")
    between = given if isinstance(given, list) else [given]
    if not all(isinstance(position, str) for position in between) or len(between) not in (1, 2):
        return Declared(
            problem=f'{path} declares no position for {below}: a quoted text; ["P0", "P1"] when it was taken between '
            "two; or `unknown`."
        )
    try:
        taken_at = _moment(path, below, entry.get("taken_at"))
    except UsageError as error:
        return Declared(problem=str(error))
    return Declared(None if given == "unknown" else " .. ".join(between), taken_at, name)


def _entries_of_exports(path: str, content: bytes) -> dict:
    """Return the entries of `_exports.yml`, by the name of a file or folder."""
    try:
        declared = yaml.safe_load(content) or {}
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"{path} is not YAML: {' '.join(str(error).split())}.") from None
    if not isinstance(declared, dict):
        raise UsageError(f'{path} declares no exports; each is a line: `<file>: {{position: "..."}}`.')
    return {str(name): entry for name, entry in declared.items()}


def _moment(path: str, below, given) -> str | None:
    """Return a declared time as text, in UTC; one without a zone is of UTC."""
    if given is None:
        return None
    try:
        moment = given if isinstance(given, datetime) else datetime.fromisoformat(str(given))
        moment = moment.replace(tzinfo=moment.tzinfo or timezone.utc).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{path} declares {given!r} as taken_at of {below}; write a time as 2026-03-02T09:20:45Z."
        ) from None
    return moment.isoformat(sep=" ")


def corrected_exports(
    feed: Feed, delivered: list[DeliveredFile], entries: FileEntries
) -> list[tuple[DeliveredFile, dict]]:
    """Return the exports that have landed by another declaration than `_exports.yml` has now, each with its entry."""
    if feed.role != "export":
        return []
    known = entries.of([file.source_file for file in delivered])
    landed = [(file, known[file.source_file]) for file in delivered if file.source_file in known]
    return [
        (file, entry)
        for file, entry in landed
        if entry["entry"] == "file"
        and not (file.undeclared or file.problem)
        and (file.position, file.taken_at) != (entry["source_position"], (entry["fields"] or {}).get("taken_at"))
    ]


def correction(file: DeliveredFile, entry) -> str:
    """Return what `_exports.yml` says otherwise of an export than when it landed."""
    landed_at = (entry["fields"] or {}).get("taken_at")
    was = f"{entry['source_position'] or 'unknown'}{', taken ' + landed_at if landed_at else ''}"
    now = f"{file.position or 'unknown'}{', taken ' + file.taken_at if file.taken_at else ''}"
    return f"{printable(file.source_file)} landed with the position {was}; _exports.yml has {now} now"


def take_corrections(spark, feed: Feed, corrected: list) -> None:
    """Write what `_exports.yml` says now to the entries of files that landed by something else, by one commit."""

    def case(value) -> str:
        return " ".join(f"when {sql_text(file.source_file)} then {value(file, entry)}" for file, entry in corrected)

    def position(file, _) -> str:
        return sql_text(file.position) if file.position else "cast(null as string)"

    def fields_now(file, entry) -> str:
        before = entry["fields"] or {}
        first = before.get("landed_position", entry["source_position"] or "unknown")
        now = {"taken_at": file.taken_at, "export_entry": file.entry, "landed_position": first}
        fields = {name: value for name, value in (before | now).items() if value is not None}
        return f"map({', '.join(sql_text(text) for pair in fields.items() for text in pair)})"

    spark.sql(
        f"""
        update {feed.raw_table}
        set
            source_position = case source_file {case(position)} end,
            fields = case source_file {case(fields_now)} end
        where entry = 'file' and source_file in ({", ".join(sql_text(file.source_file) for file, _ in corrected)})
        """
    )


def exports_refused(feed: Feed, files: list[DeliveredFile]) -> dict[str, str]:
    """Return of exports that cannot land what to do, by file; what is said of several is said once."""
    refused: dict[str, str] = {}
    for file in files:
        if file.problem:
            refused[file.source_file] = (
                f"{file.source_file} {printable(file.problem)}, so it has not landed; other exports have. "
                f"Take it away, or leave it out on record with: {skipping(file.source_file)}"
            )
        elif file.undeclared:
            refused[file.source_file] = f"{feed.name}: {file.undeclared} Until then it does not land; other exports do."
    return refused
