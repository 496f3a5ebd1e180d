#!/usr/bin/env bash
# Every check that needs no Spark; each prints its findings, and all of them run.
cd "$(dirname "$0")/../.." || exit 2
status=0
check() { echo "-- $*"; "$@" || status=1; }

check .venv/bin/python scripts/checks/check_names.py
check .venv/bin/python scripts/checks/check_docs.py
check .venv/bin/lint-imports --no-cache --no-logo
check .venv/bin/python scripts/checks/lint_sql.py
check .venv/bin/ruff check scripts src tests
check .venv/bin/ruff format --check scripts src tests
check env DBT_PROFILES_DIR=profiles .venv/bin/dbt --quiet --warn-error parse --no-partial-parse
exit $status
