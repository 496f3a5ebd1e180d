"""What a feed declares of its records: where operation, order, time and images are.

The words are those of `change` in a feed's settings. Expressions are Spark SQL in which `$.name` is a field of the
record, as text; `macros/staging/declared` makes them SQL. Here it is checked, and what reading a file needs is taken
out of it.
"""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import yaml

from highwater.formats.formats import FORMATS
from highwater.runtime.errors import UsageError
from highwater.runtime.package import package
from highwater.runtime.printable import did_you_mean

# a text in quotes, or the path of a field
PATH = re.compile(r"'(?:[^'\\]|\\.)*'|\$((?:\.[A-Za-z_]\w*|\['[^']+'\])+)")
STEP = re.compile(r"\.([A-Za-z_]\w*)|\['([^']+)'\]")
ONE_PATH = re.compile(r"\$(?:\.[A-Za-z_]\w*|\['[^']+'\])+")
IN_MACRO = re.compile(r"{%- set declared %}\n(.*?){%- endset", re.DOTALL)

OPERATIONS = ("insert", "update", "delete", "truncate", "ignore")
CONDITIONS = ("delete_when", "truncate_when", "ignore_when", "snapshot_when")
IMAGES = ("row", "before")
WORDS = (
    "operation",
    *OPERATIONS,
    *CONDITIONS,
    "order",
    "time",
    *IMAGES,
    "table",
    "schema",
    "key",
    "partial",
    "ignore_null_updates",
    "binary",
    "except",
    "source",
    "each",
)
# how the text of a section is read, and what may be said beside it
SECTIONS = {
    "integer": (),
    "hex": ("sections", "separator"),
    "lsn": (),
    "file": (),
    "digits": ("width",),
    "text": ("width",),
    "timestamp": ("unit",),
}
UNITS = ("seconds", "milliseconds", "microseconds", "nanoseconds")
MOST_SECTIONS = 5
DIGITS_OF_SECTION, CHARACTERS_OF_SECTION = 16, 8


def paths_in(expression) -> list[tuple[str, ...]]:
    """Return the fields that an expression names, each as the way to it.

    Example: `paths_in("$.source.lsn <> '$.x'")` is `[("source", "lsn")]`.
    """
    found = [match[1] for match in PATH.finditer(str(expression)) if match[1]]
    return [tuple(name or quoted for name, quoted in STEP.findall(path)) for path in found]


def checked_change(where: str, given) -> dict:
    """Return what a feed declares as `change`, without the numbers of lines.

    Arguments:
        where: the file, the line and the feed, for messages. given: as YAML has it.
    Raises: UsageError naming the word that is wrong, its value and what it may be.
    """
    if not isinstance(given, dict):
        raise UsageError(
            f"{where}: change is {given!r}; it must say what records mean, at least their order: "
            "`change: {order: [{integer: $.version}], delete_when: $.deleted = 'true'}`."
        )
    change = _without_lines(given)
    where = f"{where}: change"
    for word in change:
        if word not in WORDS:
            raise UsageError(
                f"{where} has the unknown word {word!r}; it may have: {', '.join(WORDS)}.{did_you_mean(word, WORDS)}"
            )
    for word in ("operation", *CONDITIONS, "source"):
        _check_expression(where, word, change.get(word))
    table = change.get("table")
    is_qualified = isinstance(table, dict) and table.keys() == {"qualified"}
    _check_path(where, "table", table["qualified"] if is_qualified else table)
    for word in ("schema", "key"):
        _check_path(where, word, change.get(word))
    _check_operations(where, change)
    _check_order(where, change.get("order"))
    if "time" in change:
        _check_section(f"{where}: time", change["time"], ("timestamp",))
    nulls = change.get("ignore_null_updates", False)
    if not isinstance(nulls, bool):
        _check_texts(where, "ignore_null_updates", nulls)
    if change.get("binary", "base64") not in ("base64", "hex"):
        raise UsageError(f"{where}: binary is {change['binary']!r}; it must be base64 (the default) or hex.")
    if "partial" in change and not isinstance(change["partial"], bool):
        raise UsageError(f"{where}: partial is {change['partial']!r}; it must be true or false.")
    _check_texts(where, "except", change.get("except"))
    _check_texts(where, "each", change.get("each"))
    for word in IMAGES:
        _check_image(where, word, change.get(word))
    if "schema" in change and "table" not in change:
        raise UsageError(f"{where}: schema is declared without table, and a schema alone tells no table.")
    return change


def _without_lines(value):
    if isinstance(value, dict):
        return {name: _without_lines(inner) for name, inner in value.items() if name != "__line__"}
    return [_without_lines(inner) for inner in value] if isinstance(value, list) else value


def _check_expression(where: str, word: str, value) -> None:
    if value is not None and not (isinstance(value, str) and value.strip()):
        raise UsageError(f"{where}: {word} is {value!r}; it must be an expression, in which $.name is a field.")


def _check_path(where: str, word: str, value) -> None:
    if value is not None and not (isinstance(value, str) and ONE_PATH.fullmatch(value)):
        raise UsageError(f"{where}: {word} is {value!r}; it must be the path of a field, as $.name or $['a name'].")


def _check_texts(where: str, word: str, value) -> None:
    is_right = isinstance(value, list) and value and all(isinstance(each, str) and each for each in value)
    if value is not None and not is_right:
        raise UsageError(f"{where}: {word} is {value!r}; it must be a list of names, as texts: [name, 'other name'].")


def _check_operations(where: str, change: dict) -> None:
    for word in OPERATIONS:
        _check_texts(where, word, change.get(word))
    said = [word for word in OPERATIONS if word in change]
    if said and "operation" not in change:
        raise UsageError(f"{where}: {said[0]} is declared without operation, which says where operations are told.")
    if "operation" in change and not said:
        raise UsageError(
            f"{where}: operation is {change['operation']!r}, and none of {', '.join(OPERATIONS)} says what its values "
            "mean. Declare them, as `insert: [I], update: [U], delete: [D]`."
        )
    texts = [text for word in said for text in change[word]]
    if twice := [text for text in texts if texts.count(text) > 1]:
        raise UsageError(f"{where}: two operations have the value {twice[0]!r}.")


def _check_order(where: str, order) -> None:
    if not isinstance(order, list) or not order:
        raise UsageError(
            f"{where}: order is {order!r}; it must be a list of what changes of a key are ordered by, the most "
            f"significant first: [{{lsn: $.lsn}}, {{integer: $.number}}]. Each is one of: {', '.join(SECTIONS)}; the "
            "first may be the word `kafka`, the offset of a record, and the last the word `place`, where records stand "
            "in their files in the order in which they happened."
        )
    sections = order[order[0] == "kafka" : len(order) - (order[-1] == "place")]
    for section in sections:
        _check_section(f"{where}: order", section, tuple(SECTIONS))
    count = sum(sections_of(section) for section in sections) + 2 * (order[0] == "kafka")
    if not count or count > MOST_SECTIONS - (order[-1] == "place"):
        raise UsageError(
            f"{where}: order takes {count} sections of 16 hex digits; it must take 1 to {MOST_SECTIONS}, of which "
            "`place` is one, and `place` may not stand alone."
        )


def sections_of(section: dict) -> int:
    """Return how many sections of a change sequence number one of an order takes."""
    if "text" in section:
        return -(-section["width"] // CHARACTERS_OF_SECTION)
    if "digits" in section:
        return -(-section["width"] // DIGITS_OF_SECTION)
    return section.get("sections", 2 if "lsn" in section else 1)


def _check_section(where: str, section, kinds: tuple[str, ...]) -> None:
    kind = next((word for word in section if word in kinds), None) if isinstance(section, dict) else None
    if kind is None:
        raise UsageError(
            f"{where} has {section!r}; it must be one of: {', '.join(f'{{{kind}: $.name}}' for kind in kinds)}."
        )
    _check_expression(where, kind, section[kind])
    for word in section:
        if word not in (kind, *SECTIONS[kind]):
            raise UsageError(
                f"{where}: {kind} has the unknown word {word!r}; it may have: {', '.join(SECTIONS[kind]) or 'none'}."
            )
    for word in ("width", "sections"):
        number = section.get(word)
        is_needed = word in SECTIONS[kind] and word == "width"
        if (number is not None or is_needed) and (
            not isinstance(number, int) or isinstance(number, bool) or number < 1
        ):
            raise UsageError(f"{where}: {word} of {kind} is {number!r}; it must be a whole number, 1 or more.")
    if "unit" in section and section["unit"] not in UNITS:
        raise UsageError(f"{where}: unit is {section['unit']!r}; it must be one of: {', '.join(UNITS)}.")
    if "separator" in section and not re.fullmatch(r"[^\w'\\\]^-]", str(section["separator"])):
        raise UsageError(f"{where}: separator is {section['separator']!r}; it must be one character, as '.' or ':'.")


def _check_image(where: str, word: str, image) -> None:
    if not isinstance(image, dict):
        _check_path(where, word, image)
        return
    if image.keys() not in ({"of", "name", "value"}, {"names", "values"}):
        raise UsageError(
            f"{where}: {word} is {image!r}; it must be the path of an object, {{names: $.names, values: $.values}} of "
            "two arrays, or {of: $.columns, name: name, value: value} of an array of objects."
        )
    for part in image.keys() - {"name", "value"}:
        _check_path(where, f"{word}: {part}", image[part])
    for part in image.keys() & {"name", "value"}:
        if not isinstance(image[part], str):
            raise UsageError(f"{where}: {word}: {part} is {image[part]!r}; it must be the name of a field of each.")


def declared_formats() -> dict[str, dict]:
    """Return what the package declares of the records of producers, by the name of the format.

    Example: `declared_formats()["maxwell-json"]["row"]` is `$.data`.
    """
    return _formats_in(package().resolve() / "macros/staging/declared/declared_formats.sql")


@cache
def _formats_in(path: Path) -> dict[str, dict]:
    return yaml.safe_load(IN_MACRO.search(path.read_text())[1])


def with_order(declared: dict, order: str) -> dict:
    """Return what the package declares of a format, with the order that a feed has chosen.

    Example: `with_order({"orders": {"lsn": [...]}, "row": "$.data"}, "lsn")` is `{"row": "$.data", "order": [...]}`.
    """
    of_kafka = ["kafka", *([{"integer": "$index"}] if "each" in declared else [])]
    rest = {word: value for word, value in declared.items() if word != "orders"}
    return rest | {"order": {**declared["orders"], "kafka": of_kafka}[order]}


def named_in(change: dict, document) -> tuple:
    """Return schema and table of a record, as far as it names them where the feed says.

    Example: `named_in({"table": "$.table"}, {"table": "orders"})` is `(None, "orders")`.
    """
    table = change.get("table")
    if isinstance(table, dict):
        name = _at(document, table["qualified"])
        schema, dot, bare = name.rpartition(".") if isinstance(name, str) else (None, "", name)
        return (schema if dot else None), bare
    return _at(document, change.get("schema")), _at(document, table)


def _at(document, path: str | None):
    """Return the value at a path in a document; None where there is none."""
    for step in paths_in(path)[0] if path else ():
        document = document.get(step) if isinstance(document, dict) else None
    return document if path else None


def row_in(change: dict, document) -> dict | None:
    """Return the columns that a document carries, as far as they can be made out; what is gone, as it was before.

    Example: `row_in({"row": {"names": "$.n", "values": "$.v"}}, {"n": ["id"], "v": [7]})` is `{"id": 7}`.
    """
    if not isinstance(document, dict):
        return None
    if not change.get("row"):
        beside = fields_beside(change)
        patterns = [re.escape(each).replace(r"\*", ".*") for each in change.get("except", ())]
        left = re.compile("|".join(patterns) or "(?!)")
        return {name: value for name, value in document.items() if name not in beside and not left.fullmatch(name)}
    found = (_image_in(change[word], document) for word in IMAGES if change.get(word))
    return next((image for image in found if image), None)


def _image_in(image, document) -> dict | None:
    if isinstance(image, str):
        row = _at(document, image)
    elif "names" in image:
        names, values = _at(document, image["names"]), _at(document, image["values"])
        is_row = isinstance(names, list) and isinstance(values, list) and len(names) == len(values)
        row = dict(zip(map(str, names), values, strict=True)) if is_row else None
    else:
        entries = _at(document, image["of"])
        entries = [each for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []
        row = {str(each.get(image["name"])): each.get(image["value"]) for each in entries}
    return row if isinstance(row, dict) else None


def key_in(change: dict, document) -> list[str]:
    """Return the names of the columns of the key, where the record tells them; empty: it does not."""
    names = _at(document, change.get("key"))
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def change_of(format: str, settings: dict) -> dict:
    """Return what is declared of the records of a feed, whatever their order; empty where the format knows.

    Arguments:
        settings: of the feed; `change` in it as it is declared, or as it was typed.
    """
    change = declared_formats().get(format, settings.get("change"))
    change = yaml.safe_load(change) if isinstance(change, str) else change
    return change if isinstance(change, dict) else {}


def carries_parts(format: str, settings: dict) -> bool:
    """Return whether a change of a feed may carry some columns only."""
    # without supplemental logging, DMS writes the columns that changed
    is_partial = FORMATS[format].partial_images or "no_supplement" in settings
    change = change_of(format, settings)
    return is_partial or bool(change.get("partial") or change.get("ignore_null_updates"))


def tells_truncates(format: str, settings: dict) -> bool:
    """Return whether a feed tells when a table is truncated."""
    change = change_of(format, settings)
    return FORMATS[format].truncates or "truncate" in change or "truncate_when" in change


def fields_beside(change: dict) -> set[str]:
    """Return the fields that say what a change is, and are no columns of their own."""
    order = [text for section in change["order"] if isinstance(section, dict) for text in section.values()]
    images = [part for word in IMAGES for part in _paths_of_image(change.get(word))]
    moment = (change.get("time") or {}).get("timestamp", "")
    said = [*order, change.get("operation", ""), *(change.get(word, "") for word in CONDITIONS), moment, *images]
    return {path[0] for expression in said for path in paths_in(expression)}


def record_test(change: dict) -> Callable[[dict], bool]:
    """Return what tells whether a document is a record as it stands: it tells its operation, else its order."""
    order = [text for section in change["order"] if isinstance(section, dict) for text in section.values()]
    told = [change["operation"]] if "operation" in change else order
    paths = [path for expression in told for path in paths_in(expression)]
    return lambda document: bool(paths) and all(_has(document, path) for path in paths)


def _has(document, path: tuple[str, ...]) -> bool:
    for step in path:
        # an array has a change in each element
        document = document[0] if isinstance(document, list) and document else document
        if not isinstance(document, dict) or step not in document:
            return False
        document = document[step]
    return True


def _paths_of_image(image) -> list[str]:
    return [*image.values()] if isinstance(image, dict) else [image or ""]
