"""By which declaration the tables of the lake were made, `<lake>/declared.json`, and what the project declares now."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from highwater.catalog.columns import DECIMAL, stored_columns
from highwater.catalog.entities import declaration_of, log_of, logged_tables, sources_of_logs
from highwater.catalog.feeds import FORMATS, Feed, declared_feeds, numbers_of, plain_text
from highwater.catalog.yaml_files import in_yaml
from highwater.runtime.state import read_state, write_state


def declared_shape(entity: str, sources: list[tuple[str, str]] | None = None) -> dict:
    """Return what the tables of an entity are made by: `columns` by name, each with what it declares, `key`, `sources`.

    Arguments:
        sources: the (feed, source_table) of its records; None: they are looked up among those of all tables.
    """
    if sources is None:
        sources = dict(logged_tables()).get(entity, [])
    declared, columns = log_of(entity), {}
    for column in declared.get("columns") or []:
        if "data_type" not in column:
            continue
        meta = (column.get("config") or {}).get("meta") or {}
        name = plain_text(str(column["name"]))
        columns[name] = {"type": as_spark_has_it(column["data_type"])}
        shape = {"field": plain_text(str(meta.get("field", name))), "unit": meta.get("unit")}
        shape["former_fields"] = [plain_text(str(each)) for each in meta.get("former_fields") or []]
        shape["came_later"] = bool(meta.get("came_later", False))
        columns[name] |= shape
    meta = (declared.get("config") or {}).get("meta") or {}
    sources = sorted([feed, table] for feed, table in sources)
    return {"columns": columns, "key": list(meta.get("key") or []), "sources": sources}


def as_spark_has_it(data_type: str) -> str:
    """Return a type as a table of Spark has it: `Decimal(12, 2)` is `decimal(12,2)`."""
    return str(data_type).lower().replace(" ", "")


def remembered() -> dict[str, dict]:
    """Return by which declaration each table was made, as far as builds have written it down."""
    found = read_state("declared.json")
    return {entity: shape for entity, shape in found.items() if isinstance(shape, dict) and "columns" in shape}


def remember(shapes: dict[str, dict]) -> None:
    """Write down by which declaration tables were made; what is there of others stays."""
    was = remembered()
    if now := {entity: shape for entity, shape in shapes.items() if was.get(entity) != shape}:
        write_state("declared.json", was | now)


def forget(entities: Iterable[str]) -> None:
    """Take out what is written down of tables that are gone."""
    was, gone = remembered(), {*entities}
    if gone & was.keys():
        write_state("declared.json", {e: shape for e, shape in was.items() if e not in gone})


# what Delta widens in place; the digits before the point of those that become decimals
WIDER = {
    "tinyint": {"smallint", "int", "bigint", "double"},
    "smallint": {"int", "bigint", "double"},
    "int": {"bigint", "double"},
    "float": {"double"},
    "date": {"timestamp_ntz"},
}
WHOLE_DIGITS = {"tinyint": 10, "smallint": 10, "int": 10, "bigint": 20}


@dataclass
class Differences:
    """How a declaration differs from the tables that were made by an earlier one.

    Attributes:
        entity: whose they are. added, dropped: names of columns. types: was and is, by name of column. renamed: columns
            that have a field more than before. moved: of new columns, the name that their field had before. others:
            what else differs, in words. later: columns that are declared without `came_later`, and were added with it.
            feeds: `<feed>.<table>` that bring records too now, and whose order nothing says.
    """

    entity: str
    added: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    types: dict[str, tuple[str, str]] = field(default_factory=dict)
    renamed: list[str] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    later: list[str] = field(default_factory=list)
    feeds: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.added or self.dropped or self.types or self.renamed or self.others or self.feeds)

    @property
    def is_unsafe(self) -> bool:
        """Whether rows that are there would be others, so that somebody has to say that they should be."""
        return bool(self.others or self.feeds) or not all(widens(*types) for types in self.types.values())

    def in_words(self) -> str:
        """Return what differs, in words."""
        words = [f"the column {name} is new" for name in self.added]
        words += [f"the column {name} is not declared any more" for name in self.dropped]
        words += [f"{name} is {now} and was {was}" for name, (was, now) in self.types.items()]
        words += [f"{name} has another field since" for name in self.renamed]
        words += [f"{feed} brings its records too, and its positions are of another kind" for feed in self.feeds]
        return ", ".join([*words, *self.others])

    def what_to_do(self) -> str:
        """Return the command that does what no build does by itself."""
        if self.feeds:
            return (
                f"To let its records count after those of the other feeds: highwater alter {self.entity} feed "
                f"{self.feeds[0]}"
            )
        return (
            f"To make log and table anew by this declaration, from what has landed: highwater rebuild {self.entity} "
            "--from raw"
        )


def _said(value: str | None) -> str:
    return "none" if value is None else in_yaml(value)


def shape_of_table(types: dict[str, str], now: dict) -> dict:
    """Return the shape of a log that no build has written down: what is not seen of it is as it is declared.

    Arguments:
        types: of the columns of the log, by name. now: as it is declared.
    """
    own = {name: data_type for name, data_type in types.items() if name not in stored_columns()}
    others = {"field": None, "unit": None, "former_fields": [], "came_later": False}
    columns = {name: {**others, "field": name, **now["columns"].get(name, {}), "type": t} for name, t in own.items()}
    return {"columns": columns, "key": now["key"], "sources": now["sources"]}


def differences(entity: str, was: dict, now: dict, types: dict[str, str], base: dict[str, str] | None) -> Differences:
    """Return how a declaration differs from the tables that are there.

    Arguments:
        was, now: see declared_shape; as the log was made, and as it is declared. types, base: of the columns of the log
            and of the base, by name; None: there is no base.
    """
    found = Differences(entity)
    for name, column in now["columns"].items():
        before = was["columns"].get(name)
        if before is None or name not in types or (base is not None and name not in base):
            found.added.append(name)
            continue
        there = next((t[name] for t in (types, base) if t and t[name] != column["type"]), None)
        if there is not None:
            found.types[name] = (there, column["type"])
        if before["unit"] != column["unit"]:
            found.others.append(f"the unit of {name} is {_said(column['unit'])} and was {_said(before['unit'])}")
        fields = [[each["field"], *each["former_fields"]] for each in (before, column)]
        if {*fields[0]} - {*fields[1]}:
            in_words = [" and ".join(map(_said, names)) for names in fields]
            found.others.append(f"the field of {name} is {in_words[1]} and was {in_words[0]}")
        elif fields[0] != fields[1]:
            found.renamed.append(name)
        if before["came_later"] and not column["came_later"]:
            found.later.append(name)
    found.feeds = [*_incomparable(entity, was.get("sources") or [], now["sources"])]
    found.dropped = [name for name in was["columns"] if name not in now["columns"]]
    fields = {was["columns"][name]["field"]: name for name in found.dropped}
    found.moved = {n: fields[f] for n in found.added if (f := now["columns"][n]["field"]) in fields}
    if sorted(was["key"]) != sorted(now["key"]):
        named = [", ".join(key) or "none" for key in (now["key"], was["key"])]
        found.others.append(f"the key is {named[0]} and was {named[1]}")
    return found


def _incomparable(entity: str, was: list, now: list) -> Iterator[str]:
    """Yield the feeds that a table has now and had not, whose changes nothing puts above those that are there."""
    if not was or now == was:
        return
    feeds = declared_feeds()
    old = [feeds.get(feed) for feed, _ in was]
    for feed in [feeds[name] for name, table in now if [name, table] not in was and name in feeds]:
        others = [other for other in old if other is None or _kind_of(other) != _kind_of(feed)]
        others = [other for other in others if other is None or other.role == "changes"]
        table = dict(dict(sources_of_logs())[entity])[feed.name]
        highest = max((n for other in others if other for n in numbers_of(other.epochs)), default=0)
        own = zip(numbers_of(feed.epochs), feed.epochs, strict=True)
        above = [number for number, epoch in own if number > highest and epoch.get("table", table) == table]
        if feed.role == "changes" and others and not above:
            yield f"{feed.name}.{table}"


def _kind_of(feed: Feed) -> tuple:
    """Return what positions of a feed are; those of one kind can be compared where they are of one source."""
    names = ("connector", "order", "sequence_column", "timestamp_column")
    said = [str(feed.settings.get(name)) for name in names]
    order = feed.options.change and (feed.format, str(feed.options.change["order"]))
    return FORMATS[feed.format].macro, *said, order


def file_of(entity: str) -> str:
    """Return the file that declares an entity, as messages name it."""
    return str(declaration_of(entity))


def widens(was: str, now: str) -> bool:
    """Return whether Delta widens a type to another one, which holds every value that it had.

    Example: `widens("int", "decimal(12,2)")` is true, and `widens("int", "decimal(10,2)")` is false.
    """
    if now in WIDER.get(was, ()):
        return True
    new, old = DECIMAL.fullmatch(now), DECIMAL.fullmatch(was)
    if not new or not (old or was in WHOLE_DIGITS):
        return False
    before, scale = (int(old[1]) - int(old[2]), int(old[2])) if old else (WHOLE_DIGITS[was], 0)
    return int(new[1]) - int(new[2]) >= before and int(new[2]) >= scale
