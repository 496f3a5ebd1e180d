"""A dbt project of a user's own, which has the package of the command."""

import os
import shutil
from importlib.metadata import version
from pathlib import Path

import yaml

from highwater.catalog.feeds import FAST_LOADER, NAME
from highwater.catalog.names import name_inside
from highwater.catalog.rendering import render
from highwater.catalog.yaml_files import value_of
from highwater.runtime import package
from highwater.runtime.errors import UsageError

TAKEN = {package.NAME, "dbt", "dbt_spark", "default", "raw", "lake"}


def begin_project(folder: Path) -> list[Path]:
    """Write a project of a user's own, which has the package.

    Arguments:
        folder: of the project; its name is the name of the project.
    Returns: the files that were written, below the folder.
    Raises: UsageError when the name is none, something is there already, or the command comes without a package.
    """
    folder = folder.absolute().resolve()
    name = folder.name
    if not NAME.fullmatch(name) or name in TAKEN:
        raise UsageError(
            f"{name!r} is no name of a project: lower-case letters, digits and _, a letter first, and none that dbt "
            f"or highwater has, for example {name_inside(name)}_project."
        )
    if not package.BROUGHT.exists():
        raise UsageError("this highwater runs from its repository; install the wheel first: make wheel")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is there already, and it is not an empty folder.")
    files = {
        "dbt_project.yml": _settings_of(name),
        "profiles/profiles.yml": _profile_of(name),
        "macros/highwater.sql": render("project/highwater.sql"),
        ".github/workflows/build.yml": render("project/build.yml", version=version("highwater")),
        ".gitignore": render("project/gitignore"),
        "README.md": render("project/README.md", project=name, version=version("highwater")),
    }
    beside = folder.with_name(f".{name}.{os.getpid()}")
    try:
        for path, text in files.items():
            (beside / path).parent.mkdir(parents=True, exist_ok=True)
            (beside / path).write_text(text, encoding="utf-8")
        for empty in ("landing", "exports", "models", "seeds", "snapshots"):
            (beside / empty).mkdir()
            (beside / empty / ".gitkeep").touch()
        if folder.exists():  # somebody may stand in it
            for child in beside.iterdir():
                child.rename(folder / child.name)
            beside.rmdir()
        else:
            beside.rename(folder)
    except OSError:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    return [folder / path for path in files]


def _settings_of(name: str) -> str:
    """Return the dbt_project.yml of a project: what the package says of its layers, but for its own models."""
    text = (package.BROUGHT / "dbt_project.yml").read_text(encoding="utf-8")
    document = yaml.compose(text, FAST_LOADER)
    versions = value_of(document, "require-dbt-version")
    layers = {key.value: key.start_mark.index for key, _ in value_of(document, "models", package.NAME).value}
    first, behind = (text.rfind("\n", 0, layers[layer]) + 1 for layer in (next(iter(layers)), "operations"))
    layers, versions = text[first:behind], text[versions.start_mark.index : versions.end_mark.index]
    return render("project/dbt_project.yml", project=name, package=package.NAME, versions=versions, layers=layers)


def _profile_of(name: str) -> str:
    text = (package.BROUGHT / "profiles/profiles.yml").read_text(encoding="utf-8")
    return text.replace(f"\n{package.NAME}:\n", f"\n{name}:\n").replace("file:conf/", f"file:{package.LINK}/conf/")
