"""What dbt would give to models and macros, for sqlfluff: its graph, as `dbt parse` writes it, the answers of a lake.

sqlfluff puts every name of this module into its Jinja context, so that a model renders to the SQL that dbt
would compile, without Spark. HIGHWATER_LINT_BUILD says which build it is: `first` (no table is there),
`later` (the default: there is something to do) or `idle` (there is nothing to do).
"""

import functools
import json
import os
import re
from pathlib import Path
from types import SimpleNamespace

import yaml
from jinja2 import Environment
from sqlfluff.core.templaters.builtins.dbt import DBT_BUILTINS, DbtMacroWrapper, RelationEmulator

BUILD = os.environ.get("HIGHWATER_LINT_BUILD", "later")
MANIFEST = Path("target/manifest.json")
MACRO = re.compile(r"({%-?\s*macro\s+(\w+).*?{%-?\s*endmacro\s*-?%})", re.DOTALL)


def _raise(message):
    raise ValueError(message)


class _Row(list):
    """A row of an answer, whose columns have any name; no baseline has arrived, and no position has fallen."""

    def keys(self):
        return []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name.startswith(("least ", "greatest ")):  # of a key, for which there is no literal
            return None
        return 0 if name in ("baseline_rows", "is_falling") else self[0]


class _Model(RelationEmulator):
    """`model`: the relation that a generic test is of, and the node that is rendered."""

    sources = []


def _answer(statement):
    """Answer a query of a macro with a row of numbers; in an idle build with zeros, and `limit 1` with no row.

    `describe query` is answered with the columns that the model or its table declares.
    """
    if statement.startswith("describe query"):
        relation = statement.split()[-1]
        models = {node["name"]: node for node in _context["graph"].nodes.values() if node["resource_type"] == "model"}
        # layers have the columns of their table, which its log declares
        log = re.sub(r"^stg_\w+?__|_merged$|_history$", "", relation) + "_changes"
        columns = models[relation]["columns"] or models[log]["columns"]
        return SimpleNamespace(rows=[[column["name"], column["data_type"] or "string"] for column in columns.values()])
    if "having sum(fallen)" in statement:
        return SimpleNamespace(rows=[])
    if BUILD != "idle":
        return SimpleNamespace(rows=[_Row([1, 1, 1, 1])], columns=[SimpleNamespace(values=lambda: [0])])
    rows = [] if statement.endswith("limit 1") else [_Row([0, 0, 0, 0])]
    return SimpleNamespace(rows=rows, columns=[SimpleNamespace(values=list)])


class _Config:
    """`config(...)` of a model, and `config.get(...)`: what the project says of merged tables, and nothing else."""

    def __call__(self, **settings):
        return ""

    def get(self, name, default=None):
        nodes = _context["graph"].nodes.values()
        merged = (node["config"]["meta"] for node in nodes if "merged" in node["config"].get("meta", {}))
        return next(merged, {}) if name == "meta" else default


def _graph():
    """Return dbt's graph of the project."""
    if not MANIFEST.exists():
        raise FileNotFoundError(f"{MANIFEST} is not there; run: dbt parse")
    manifest = json.loads(MANIFEST.read_text())
    # nothing is known of a table, and what one model finds out no other one is told
    return SimpleNamespace(
        nodes=manifest["nodes"], sources=manifest["sources"], setdefault=lambda name, value: dict(value)
    )


def _source(feed, table):
    """Return the raw table of a feed, which is called like the feed, and let the model read it."""
    _context["model"].sources = [[feed, table]]
    return RelationEmulator(feed)


def _load_macros(context):
    """Put the project's macros into the context, private ones too, which sqlfluff's own loader leaves out."""
    jinja = Environment(extensions=["jinja2.ext.do"], keep_trailing_newline=True)
    texts = "\n".join(path.read_text() for path in sorted(Path("macros").glob("**/*.sql")))
    texts = {found[2]: found[1] for found in re.finditer(MACRO, texts)}

    @functools.cache
    def loaded(name):
        # a template of its own, so that it calls other macros through DbtMacroWrapper, which knows return()
        template = jinja.from_string(texts[name], globals=context)
        defined = template.new_context()
        list(template.root_render_func(defined))
        return DbtMacroWrapper(defined.vars[name])

    # a macro sees the names that are there when it is loaded: all of them, loaded when they are called
    own = {name: lambda *values, _name=name, **named: loaded(_name)(*values, **named) for name in texts}
    context["highwater"] = own
    context["adapter"].dispatch = lambda name, package: own[f"default__{name}"]


_context = {
    **DBT_BUILTINS,
    "execute": True,
    "config": _Config(),
    "modules": SimpleNamespace(re=re),
    "api": SimpleNamespace(Relation=SimpleNamespace(create=lambda identifier, **place: RelationEmulator(identifier))),
    "load_relation": lambda relation: relation if BUILD != "first" else None,
    "tojson": json.dumps,
    "fromjson": json.loads,
    "fromyaml": functools.partial(yaml.load, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)),
    "env_var": lambda name, default: default,
    "project_name": "highwater",
    "invocation_id": "lint",
    "exceptions": SimpleNamespace(raise_compiler_error=_raise),
    "source": _source,
    "is_incremental": lambda: BUILD != "first",
    "run_query": _answer,
    "var": lambda name, default=None: default,
    "log": lambda *words, **options: "",
    "adapter": SimpleNamespace(
        get_relation=lambda *place: RelationEmulator(place[-1]), get_columns_in_relation=lambda relation: []
    ),
    "graph": _graph(),
    # the arguments of generic tests
    "model": _Model("customers"),
    "export": RelationEmulator("stg_exports_user1__customers"),
    "key": ["customer_id", "name"],
    "columns": ["balance", "born_on"],
    "exclude_columns": ["name"],
    "view": "customers",
    "valid_from": "valid_from",
    "valid_to": "valid_to",
    "updated_at": "valid_from",
    "tracked": None,
    "ignored": [],
    "feed": "dms_stock",
    "table": "stock_levels",
    "entity": "stock_levels",
    "source_table": "stock_levels",
}
_load_macros(_context)
globals().update(_context)
