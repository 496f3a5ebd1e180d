"""Which deployment a command works in: the output of the dbt profile that `HIGHWATER_TARGET` names, and what it says.

`embedded` keeps the metastore in the lake's folder and admits one process; every other one has a metastore that many
processes share, and its lake may be at a URI.
"""

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import yaml
from jinja2 import Environment

from highwater.runtime.errors import UsageError
from highwater.runtime.package import profile_name, project_settings, require_schemas

EMBEDDED = "embedded"
METASTORE = "spark.hadoop.javax.jdo.option.ConnectionURL"
WAREHOUSE = "spark.sql.warehouse.dir"
# also dbfs:/…, which is no folder here; a letter alone is a drive
IS_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def take_target(arguments: Sequence[str]) -> None:
    """Let what is typed for dbt (`--target`, `-t`) choose the deployment of everything that this command does."""
    for at, word in enumerate(arguments):
        name, equals, value = word.partition("=")
        if name in ("--target", "-t") and (equals or at + 1 < len(arguments)):
            os.environ["HIGHWATER_TARGET"] = value if equals else arguments[at + 1]
        elif re.match("-t[^-]", word):
            os.environ["HIGHWATER_TARGET"] = word[2:]


def profiles() -> Path:
    """Return the file of dbt's profiles."""
    return Path(os.environ.get("DBT_PROFILES_DIR", "profiles")) / "profiles.yml"


def target_name() -> str:
    """Return the name of the chosen output of the profile."""
    return _chosen()[0]


def settings() -> dict[str, str]:
    """Return the Spark settings of the deployment; one that goes through a server has a session by `cluster` beside it.

    Raises: UsageError when the profile lacks the output, or a setting an environment variable.
    """
    return dict(_chosen()[1])


def is_embedded() -> bool:
    """Return whether the lake is one of this machine that one process has at a time, metastore and all."""
    return not (os.path.exists(profiles()) and os.path.exists("dbt_project.yml")) or _chosen()[2]


def place() -> str:
    """Return where the lake is, the folder above the warehouse: one of this machine, or a URI."""
    if is_embedded():
        return os.environ.get("HIGHWATER_LAKE", ".lake")
    warehouse = settings().get(WAREHOUSE, "").rstrip("/")
    above, _, name = warehouse.rpartition("/")
    if name != "tables" or not above:
        raise UsageError(
            f"{profiles()}: {WAREHOUSE} of {target_name()} is {warehouse!r}; it is a folder `tables`, and the lake is "
            "what is above it, for example s3a://bucket/lake/tables."
        )
    if above.startswith(("s3:", "s3n:")):
        raise UsageError(
            f"{profiles()}: the lake of {target_name()} is at {above}; write it as s3a://, which Spark reads by itself "
            "and for which Delta has a log store of several writers."
        )
    return above.removeprefix("file://")


def is_here() -> bool:
    """Return whether the lake is in a folder of this machine."""
    return not IS_URI.match(place())


def _chosen() -> tuple[str, tuple, bool]:
    # asked for with every path of the lake, so the profile is read again only when something of it is another
    path, project = str(profiles()), os.getcwd()
    written_at = os.stat(path).st_mtime_ns
    environment = tuple(os.environ.get(name) for name in _variables(path, project, written_at))
    return _read(path, project, written_at, os.environ.get("HIGHWATER_TARGET"), environment)


@lru_cache(maxsize=16)
def _variables(path: str, _project: str, _written_at: int) -> list[str]:
    return re.findall(r"env_var\(\s*['\"](\w+)", Path(path).read_text(encoding="utf-8"))


@lru_cache(maxsize=16)
def _read(where: str, _project: str, _written_at: int, target: str | None, _environment: tuple) -> tuple:
    path = Path(where).resolve()
    jinja = Environment()
    jinja.globals["env_var"] = _env_var
    try:
        profile = (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).get(profile_name())
    except (yaml.YAMLError, UnicodeDecodeError, AttributeError) as error:
        raise UsageError(f"{path} cannot be read: {' '.join(str(error).split())}.") from None
    if profile is None:
        raise UsageError(f"{path} has no profile {profile_name()!r}, which dbt_project.yml asks for.")
    outputs = profile.get("outputs") if isinstance(profile, dict) else None
    if not isinstance(outputs, dict) or not all(isinstance(output, dict) for output in outputs.values()):
        raise UsageError(f"{path}: {profile_name()} has no outputs, of which each is a mapping of settings.")
    name = target or jinja.from_string(str(profile.get("target", "default"))).render()
    if name not in outputs:
        raise UsageError(
            f"{path}: {profile_name()} has no output {name!r}, and HIGHWATER_TARGET names one of: {', '.join(outputs)}."
        )
    with_session = name if outputs[name].get("method") == "session" else "cluster"
    if with_session not in outputs:
        raise UsageError(
            f"{path}: {name} goes through a server, and what lands and is read needs an output `cluster` beside it."
        )
    output = outputs[with_session]
    require_schemas(project_settings(), outputs[name].get("schema"), path)
    given = output.get("server_side_parameters") or {}
    rendered = {setting: _rendered(jinja, path, with_session, setting, value) for setting, value in given.items()}
    return name, tuple(rendered.items()), rendered.get(METASTORE, "").startswith("jdbc:derby:")


def _rendered(jinja: Environment, path: Path, output: str, setting: str, value) -> str:
    try:
        return jinja.from_string(str(value)).render()
    except KeyError as error:
        raise UsageError(
            f"{path}: {setting} of {output} needs the environment variable {error.args[0]}, which is not set."
        ) from None


def _env_var(name: str, default: str | None = None) -> str:
    return os.environ[name] if default is None else os.environ.get(name, default)
