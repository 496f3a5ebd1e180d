"""Lint the SQL of models and tests with sqlfluff, as it renders in each kind of build.

Run in the project's folder: `python scripts/checks/lint_sql.py [FOLDER…]` (default: models tests). Prints a line per
finding and exits with 1 when there is one. `sqlfluff lint models` does the same for a later build; it cannot see into
generic tests, whose SQL stands in a `{% test %}` block.

The layout is linted for a later build. What renders differently in a first build (no table is there) or an idle one
(there is nothing to do) must parse; so what macros write is parsed in every form it can take.
"""

import logging
import os
import re
import sys
from pathlib import Path

from sqlfluff.core import FluffConfig, Linter

# The same length, so that findings keep their line and column.
TEST_TAG = re.compile(r"{%(-?\s*(?:test\s.*?|endtest\s*)-?)%}", re.DOTALL)


def source(path: Path) -> str:
    """Return the text of a model or test, with the tags of a generic test turned into comments."""
    return TEST_TAG.sub(lambda tag: "{#" + tag[1] + "#}", path.read_text())


def findings(folders: list[str]) -> list[str]:
    """Lint every SQL file below the folders; return a line per finding."""
    linter = Linter(config=FluffConfig.from_path("."))
    # Its tracer warns about `for … else`; what it renders is right.
    logging.getLogger("sqlfluff.templater").setLevel(logging.ERROR)
    found = []
    for path in sorted(path for folder in folders for path in Path(folder).glob("**/*.sql")):
        text = source(path)
        os.environ["HIGHWATER_LINT_BUILD"] = "later"
        linted = linter.lint_string(text, fname=str(path))
        found += [_line(path, violation) for violation in linted.get_violations()]
        for build in ("first", "idle"):
            os.environ["HIGHWATER_LINT_BUILD"] = build
            parsed = linter.parse_string(text, fname=str(path))
            found += [f"{_line(path, violation)} (in the {build} build)" for violation in parsed.violations]
    return list(dict.fromkeys(found))


def _line(path: Path, violation) -> str:
    what = " ".join(violation.desc().split())
    return f"{path}:{violation.line_no}:{violation.line_pos}: {violation.rule_code()} {what}"


if __name__ == "__main__":
    lines = findings(sys.argv[1:] or ["models", "tests"])
    print("\n".join(lines) or "SQL: nothing found.")
    sys.exit(1 if lines else 0)
