"""The models of the project, and what each reads: its SQL is parsed by Jinja, as dbt does, and never by a pattern.

dbt's manifest tells the same, and a parse that makes one takes seconds (decision 34).
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, TemplateSyntaxError, nodes

from highwater.runtime.errors import UsageError

JINJA = Environment(extensions=["jinja2.ext.do"])


@dataclass(frozen=True)
class Model:
    """A model by its file.

    Attributes:
        path: below `models`; its first folder there is its layer, which has its settings in dbt_project.yml.
    """

    path: Path

    @property
    def name(self) -> str:
        """What dbt calls it."""
        return self.path.stem

    @property
    def refs(self) -> list[str]:
        """The models, seeds and snapshots that it reads, in the order of its text."""
        return [call.names[-1] for call in calls_in(self.path) if call.function == "ref"]

    @property
    def sources(self) -> list[tuple[str, str]]:
        """The (source, table) that it reads, as dbt names them."""
        return [call.names for call in calls_in(self.path) if call.function == "source"]


@dataclass(frozen=True)
class Call:
    """A call of `ref` or `source` in a model: the function, the names that it is given, and the line."""

    function: str
    names: tuple[str, ...]
    line: int


def models(layer: str = "") -> dict[str, Model]:
    """Return the models of the project by their names, sorted; of all layers, or of one.

    Arguments:
        layer: a folder below `models`, for example `merged`.
    """
    paths = Path("models", layer).glob("**/*.sql")
    return {path.stem: Model(path) for path in sorted(paths, key=lambda path: path.stem)}


def texts_in(path: Path) -> list[str]:
    """Return the texts in quotes that the Jinja of a file has, in their order; see calls_in."""
    return [node.value for node in _parsed(text_of(path), path).find_all(nodes.Const) if isinstance(node.value, str)]


def value_returned_in(path: Path):
    """Return the value that the macro in a file returns as it stands there; None: it is computed, or there is none."""
    for call in _parsed(text_of(path), path).find_all(nodes.Call):
        if isinstance(call.node, nodes.Name) and call.node.name == "return" and call.args:
            try:
                return call.args[0].as_const()
            except nodes.Impossible:
                return None
    return None


def calls_in(path: Path) -> list[Call]:
    """Return the calls of `ref` and `source` in a file, whose names are texts, in the order of its text.

    Raises: UsageError when it is no Jinja; it says where.
    """
    state = path.stat()
    return _calls_in(path.absolute(), state.st_mtime_ns, state.st_size)


def text_of(path: Path) -> str:
    """Return the text of a file of the project.

    Raises: UsageError when it is no UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no UTF-8, as dbt reads it: byte {error.start}. Save it as UTF-8.") from None


@lru_cache(maxsize=10_000)
def _calls_in(path: Path, _written_at: int, _size: int) -> list[Call]:
    return calls_of(text_of(path), path)


def with_ref(log: Model, name: str) -> str:
    """Return the text of a log that reads one more staging model, in a line before the first one.

    Raises: UsageError when its refs do not stand in lines of their own.
    """
    lines = text_of(log.path).splitlines(keepends=True) or [""]
    first = next((call.line for call in calls_in(log.path) if call.function == "ref"), 1) - 1
    indent = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
    text = "".join([*lines[:first], f"{indent}ref('{name}'),\n", *lines[first:]])
    return _with_refs(log, text, [name, *log.refs], f"write ref('{name}') into")


def without_ref(log: Model, name: str) -> str:
    """Return the text of a log that no longer reads a staging model; the line of its ref has nothing else.

    Raises: UsageError when the line has.
    """
    gone = {call.line for call in calls_in(log.path) if call.names[-1] == name}
    lines = text_of(log.path).splitlines(keepends=True)
    text = "".join(line for number, line in enumerate(lines, 1) if number not in gone)
    return _with_refs(log, text, [ref for ref in log.refs if ref != name], f"take ref('{name}') out of")


def _with_refs(log: Model, text: str, refs: list[str], what_to_do: str) -> str:
    """Return a changed text of a log when it reads what it should."""
    try:
        if [call.names[-1] for call in calls_of(text, log.path) if call.function == "ref"] == refs:
            return text
    except UsageError:  # the line had more than the ref
        pass
    raise UsageError(f"nothing was changed: {what_to_do} {log.path} by hand, then say it again.")


def calls_of(text: str, path: Path) -> list[Call]:
    """Return the calls of `ref` and `source` in the text of a file; see calls_in."""
    found = [node for node in _parsed(text, path).find_all(nodes.Call) if _is_of_dbt(node)]
    calls = [Call(node.node.name, tuple(arg.value for arg in node.args), node.lineno) for node in found]
    return sorted(calls, key=lambda call: call.line)


def _parsed(text: str, path: Path) -> nodes.Template:
    try:
        return JINJA.parse(text)
    except TemplateSyntaxError as error:
        raise UsageError(f"{path} line {error.lineno} cannot be read: {error.message}.") from None


def _is_of_dbt(node: nodes.Call) -> bool:
    called = node.node
    names = [argument.value for argument in node.args if isinstance(argument, nodes.Const)]
    return (
        isinstance(called, nodes.Name)
        and called.name in ("ref", "source")
        and 0 < len(names) == len(node.args)
        and all(isinstance(name, str) for name in names)
    )
