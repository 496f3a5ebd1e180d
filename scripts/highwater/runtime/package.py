"""The dbt package of the command: its macros, generic tests, models of operations, and Spark's configuration.

In the repository the project is the package. A project of a user's own has a link to what the wheel brings, so that the
macros are always those of the command that runs.
"""

import os
from functools import cache
from pathlib import Path

import yaml

from highwater.runtime.errors import UsageError

NAME = "highwater"
BROUGHT = Path(__file__).parents[1] / "package"
LINK = Path("dbt_packages") / NAME


def project_name() -> str:
    """Return the name of the project in the current folder.

    Raises: UsageError when its dbt_project.yml does not say it.
    """
    return _names()[0]


def profile_name() -> str:
    """Return the name of the dbt profile of the project in the current folder: it is said, or the project's own."""
    return _names()[1]


def _names() -> tuple[str, str]:
    path = Path("dbt_project.yml").resolve()
    return _names_in(path, path.stat().st_mtime_ns)


@cache
def _names_in(path: Path, _written_at: int) -> tuple[str, str]:
    try:
        settings = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        name, profile = settings.get("name"), settings.get("profile")
    except (yaml.YAMLError, UnicodeDecodeError, AttributeError) as error:
        raise UsageError(f"{path} cannot be read: {' '.join(str(error).split())}.") from None
    if not isinstance(name, str):
        raise UsageError(f"{path} does not say the `name` of the project.")
    return name, profile if isinstance(profile, str) else name


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
    beside = LINK.with_name(f".{NAME}.{os.getpid()}")
    beside.symlink_to(BROUGHT)
    os.replace(beside, LINK)
