"""The dbt package of the command: its macros, generic tests, models of operations, and Spark's configuration.

In the repository the project is the package. A project of a user's own has a link to what the wheel brings, so that the
macros are always those of the command that runs.
"""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import yaml

from highwater.runtime.errors import UsageError

NAME = "highwater"
BROUGHT = Path(__file__).parents[1] / "package"
LAYERS = ("staging", "changes", "merged", "history", "publications", "marts")
ITS_SCHEMAS = (
    "what lands is in `raw` and what is built in `lake`, in every lake. A lake has a metastore of its own, so these "
    "names are nobody else's; for a second set of tables set HIGHWATER_LAKE to another folder."
)
LINK = Path("dbt_packages") / NAME


def project_name() -> str:
    """Return the name of the project in the current folder.

    Raises: UsageError when its dbt_project.yml does not say it.
    """
    return project_settings()["name"]


def profile_name() -> str:
    """Return the name of the dbt profile of the project in the current folder: it is said, or the project's own."""
    settings = project_settings()
    return settings["profile"] if isinstance(settings.get("profile"), str) else settings["name"]


def project_settings() -> dict:
    """Return what the dbt_project.yml in the current folder holds.

    Raises: UsageError when it cannot be read, or does not say the `name` of the project.
    """
    path = Path("dbt_project.yml").resolve()
    return _settings_in(path, path.stat().st_mtime_ns)


@cache
def _settings_in(path: Path, _written_at: int) -> dict:
    try:
        settings = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        name = settings.get("name")
    except (yaml.YAMLError, UnicodeDecodeError, AttributeError) as error:
        raise UsageError(f"{path} cannot be read: {' '.join(str(error).split())}.") from None
    if not isinstance(name, str):
        raise UsageError(f"{path} does not say the `name` of the project.")
    return settings


def require_schemas(project: dict, of_target: str | None, profiles: Path) -> None:
    """Refuse another schema than `lake` for what highwater builds; models of one's own may have any.

    Arguments:
        project: what dbt_project.yml holds. of_target: the schema of the profile's target. profiles: where that stands.
    Raises: UsageError naming the file, the setting and the value.
    """
    if of_target != "lake":
        raise UsageError(f"{profiles}: schema is {of_target!r}; {ITS_SCHEMAS}")
    for path, value in _schemas_in(project.get("models"), ()):
        if path[0] == project.get("name") and (len(path) == 2 or path[1] in LAYERS):
            raise UsageError(
                f"dbt_project.yml: models: {': '.join(path)} is {value!r}; {ITS_SCHEMAS} Models of your own may have "
                "another one, in a folder beside the layers."
            )


def _schemas_in(settings, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each schema that settings of models name, with where."""
    for name, value in settings.items() if isinstance(settings, dict) else ():
        if path and name in ("+schema", "schema") and isinstance(value, str):
            yield (*path, str(name)), value
        if name not in ("+meta", "meta"):
            yield from _schemas_in(value, (*path, str(name)))


def is_the_project() -> bool:
    """Return whether the project in the current folder is the package itself, as in the repository."""
    return project_name() == NAME


def package() -> Path:
    """Return the folder of the package, as the project in the current folder sees it."""
    return Path() if is_the_project() else LINK


def link_package() -> None:
    """Let the project in the current folder have the package of this command; the repository has it already.

    Raises: UsageError when the command comes without a package, or something else is in its place.
    """
    if is_the_project():
        return
    if not BROUGHT.exists():
        raise UsageError(
            "this highwater runs from its repository and brings no package for other projects; install the wheel: "
            "make wheel, then: pip install dist/highwater-*.whl"
        )
    if LINK.is_symlink():
        if Path(os.readlink(LINK)) == BROUGHT:
            return
    elif LINK.exists():
        raise UsageError(
            f"{LINK} is a folder, and the command brings its own macros, of its own version, as a link in that place. "
            f"Remove it: rm -r {LINK}"
        )
    LINK.parent.mkdir(exist_ok=True)
    # not in its folder: dbt would take what a kill leaves there for a second package
    beside = Path(f".{NAME}.{os.getpid()}")
    beside.symlink_to(BROUGHT)
    os.replace(beside, LINK)
