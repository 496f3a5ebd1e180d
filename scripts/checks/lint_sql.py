"""Lint the SQL of models and tests with sqlfluff, as it renders in each kind of build.

Run in the project's folder: `python scripts/checks/lint_sql.py [FOLDER…]` (default: models tests). Prints a line per
finding and exits with 1 when there is one. `sqlfluff lint models` does the same for a later build; it cannot see into
generic tests, whose SQL stands in a `{% test %}` block.

The layout is linted for a later build. What renders differently in a first build (no table is there) or an idle one
(there is nothing to do) must parse. So what macros write is parsed in every form that models ask for.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from sqlfluff.core import FluffConfig, Linter
from sqlfluff.core.templaters import JinjaTemplater

# Replaced by as many characters, so that findings keep their line and column.
TEST_TAG = re.compile(r"{%(-?\s*(?:test\s.*?|endtest\s*)-?)%}", re.DOTALL)


def linted_source(path: Path) -> str:
    """Return the text of a model or test, with the tags of a generic test turned into comments."""
    return TEST_TAG.sub(lambda tag: "{#" + tag[1] + "#}", path.read_text())


def parse(target: Path = Path("target")) -> None:
    """Let dbt write its graph, which macros ask, into a folder."""
    dbt = [Path(sys.executable).with_name("dbt"), "--quiet", "parse", "--target-path", target]
    # whatever the environment says of another project
    subprocess.run([*dbt, "--project-dir", ".", "--profiles-dir", "profiles"], check=True)


def rendered(path: Path, config: FluffConfig, build: str) -> str:
    """Return the SQL that dbt would compile in that kind of build."""
    os.environ["HIGHWATER_LINT_BUILD"] = build
    _, _, render = JinjaTemplater().construct_render_func(fname=str(path), config=config)
    return render(linted_source(path))


def findings(folders: list[str]) -> list[str]:
    """Lint every SQL file below the folders, with the graph of the last parse; return a line per finding."""
    paths = sorted(path for folder in folders for path in Path(folder).glob("**/*.sql"))
    if len(paths) < 8:
        return [line for path in paths for line in _findings_in(path)]
    with ProcessPoolExecutor() as processes:
        return [line for lines in processes.map(_findings_in, paths, chunksize=4) for line in lines]


def _findings_in(path: Path) -> list[str]:
    config = FluffConfig.from_path(".")
    layout = Linter(config=config)
    parser = Linter(config=FluffConfig.from_path(".", overrides={"templater": "raw"}))
    try:
        texts = {build: rendered(path, config, build) for build in ("first", "idle", "later")}
    except Exception as error:  # whatever the Jinja of a model or macro runs into
        return [f"{path}: does not render: {' '.join(str(error).split())}"]
    linted = layout.lint_string(linted_source(path), fname=str(path))
    found = [_line(path, violation) for violation in linted.get_violations()]
    if not linted.tree:
        found.append(f"{path}: sqlfluff cannot tell its SQL from its Jinja and skips it; write the Jinja simpler.")
    for build in ("first", "idle"):
        if texts[build] != texts["later"]:
            parsed = parser.parse_string(texts[build], fname=str(path))
            found += [f"{_line(path, error)} (compiled in the {build} build)" for error in parsed.violations]
    return found


def _line(path: Path, violation) -> str:
    what = " ".join(violation.desc().split())
    return f"{path}:{violation.line_no}:{violation.line_pos}: {violation.rule_code()} {what}"


if __name__ == "__main__":
    parse()
    lines = findings(sys.argv[1:] or ["models", "tests"])
    print("\n".join(lines) or "SQL: nothing found.")
    sys.exit(1 if lines else 0)
