"""Settings in YAML that nothing reads: misspelt, or in another place than theirs. dbt takes any word in `meta`."""

from collections.abc import Iterator
from difflib import get_close_matches

import yaml

from highwater.catalog.columns import UNITS, UNSIGNED
from highwater.catalog.yaml_files import named, value_of, word_of
from highwater.runtime.printable import ALIKE, did_you_mean

# what reads `config.meta`, by whose it is
OF_LOG = {"key", "partial_images", "truncates", "insert_only", "rejected_when", "retention_days"}
OF_COLUMN = {"field", "former_fields", "came_later", "unit", "reconcile", "sensitive"}
OF_BASE = {"merged"}
OF_TEST = {"new_fields"}
OF_SOURCE = {"feed"}
OF_SOURCE_TABLE = {"source_table", "also_called", "columns", "shards"}
INSIDE = {
    "rejected_when": {"percent", "records"},
    "shards": {"column", "schemas"},
    "retention_days": {"tombstones", "changes"},
    "merged": {"compact_when"},
    "compact_when": {"base_rows", "pending_rows", "pending_percent", "pending_batches", "pending_days"},
}
PLACES = {
    **dict.fromkeys(OF_LOG, "config.meta of the model {entity}_changes"),
    **dict.fromkeys(OF_COLUMN, "config.meta of a column"),
    "merged": "config.meta of the model {entity}_merged",
    "compact_when": "config.meta.merged of the model {entity}_merged",
    "new_fields": "config.meta of the test has_declared_fields",
    "feed": "config.meta of a source",
    **dict.fromkeys(("source_table", "also_called", "shards"), "config.meta of a table of a source"),
}
# of these a word of somebody's own is seldom told from one in a wrong place
ELSEWHERE = sorted(PLACES.keys() - {"key", "field", "feed", "source_table"})
ALMOST_SAME = 0.9
Wrong = tuple[int, str]


def misspelt_in_table(document, entity: str) -> Iterator[Wrong]:
    """Yield line and sentence of each setting that nothing reads in the declaration of an entity.

    Arguments:
        document: the node of the file.
    """
    for model in layers_in(document, entity):
        name = word_of(value_of(model, "name"))
        own = {f"{entity}_changes": OF_LOG, f"{entity}_merged": OF_BASE}.get(name, set())
        yield from _in_config(value_of(model, "config"), own, entity)
        for column in _items(value_of(model, "columns")):
            yield from _in_config(value_of(column, "config"), OF_COLUMN, entity)
        for test, settings in tests_of(model):
            own = OF_TEST if test.endswith("has_declared_fields") else set()
            yield from _in_config(value_of(settings, "config"), own, entity)


def layers_in(document, entity: str) -> list[yaml.MappingNode]:
    """Return the models of a file that are layers of a table; somebody's own may stand beside them."""
    own = {entity, *(f"{entity}_{layer}" for layer in ("changes", "merged", "history"))}
    staging = {f"__{entity}", f"__{entity}_changes"}
    return [
        model
        for model in _items(value_of(document, "models"))
        for name in [word_of(value_of(model, "name")) or ""]
        if name in own or (name.startswith("stg_") and f"__{name.partition('__')[2]}" in staging)
    ]


def misspelt_in_source(document, feed: str) -> Iterator[Wrong]:
    """Yield line and sentence of each setting that nothing reads beside those of a feed.

    Arguments:
        document: the node of the file that declares it. feed: the name of the source.
    """
    source = named(value_of(document, "sources"), feed)
    yield from _in_config(value_of(source, "config"), OF_SOURCE, "<table>")
    for table in _items(value_of(source, "tables")):
        yield from _in_config(value_of(table, "config"), OF_SOURCE_TABLE, "<table>")


def tests_of(model) -> Iterator[tuple[str, yaml.MappingNode]]:
    """Yield the tests of a model that have arguments or settings, by name."""
    for test in _items(value_of(model, "data_tests")):
        if isinstance(test, yaml.MappingNode) and test.value:
            name, settings = test.value[0]
            yield name.value, settings


def _in_config(config, own: set[str], entity: str) -> Iterator[Wrong]:
    for name, node in _entries(config):
        if name.value in PLACES and name.value not in ("key", "feed"):
            yield _line(name), f"{name.value} says nothing here; write it into {_place(name.value, entity)}."
        elif name.value == "meta":
            yield from _in_meta(node, own, entity)


def _in_meta(meta, own: set[str], entity: str) -> Iterator[Wrong]:
    for name, node in _entries(meta):
        word = name.value
        if word in own:
            yield from _inside(word, node)
        elif word in PLACES and _may_be(word, node):
            yield _line(name), f"{word} says nothing here; write it into {_place(word, entity)}."
        else:
            # a word of somebody's own may look like one of ours; its value then seldom does
            near = [
                *get_close_matches(word, sorted(own), 3, ALIKE),
                *get_close_matches(word, ELSEWHERE, 3, ALMOST_SAME),
            ]
            near = [each for each in near if _may_be(each, node)]
            if near:
                where = "" if near[0] in own else f" It belongs into {_place(near[0], entity)}."
                yield _line(name), f"nothing reads the setting {word!r}. Did you mean {near[0]}?{where}"


def _may_be(word: str, node) -> bool:
    """Return whether a value is of the kind that a setting has."""
    if word in ("key", "columns", "former_fields"):
        return isinstance(node, yaml.SequenceNode)
    if word in (*INSIDE, "reconcile", "feed"):
        return isinstance(node, yaml.MappingNode)
    if word in ("partial_images", "truncates", "insert_only", "sensitive", "came_later"):
        return (word_of(node) or "").lower() in ("true", "false")
    if word in ("unit", "new_fields"):
        return word_of(node) in (*UNITS, UNSIGNED, "add")
    return isinstance(node, yaml.ScalarNode)


def _inside(word: str, node) -> Iterator[Wrong]:
    """Yield what is wrong inside a setting that has parts of its own, no others."""
    known = INSIDE.get(word)
    for name, part in _entries(node) if known else ():
        if name.value not in known:
            said = f"{word} has no {name.value!r}; it may have: {', '.join(sorted(known))}."
            yield _line(name), f"{said}{did_you_mean(name.value, known)}"
        else:
            yield from _inside(name.value, part)


def _place(word: str, entity: str) -> str:
    return PLACES[word].format(entity=entity)


def _items(node) -> list:
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _entries(node) -> list[tuple]:
    return node.value if isinstance(node, yaml.MappingNode) else []


def _line(node) -> int:
    return node.start_mark.line + 1
