#!/usr/bin/env bash
# Make the environment: pinned packages checked by hash, the project itself, dbt-expectations where the hub can be reached.
set -euo pipefail

stop() { echo "highwater: $*" >&2; exit 2; }

python=$(command -v python3 || true)
[ -n "$python" ] || stop "Python 3.10 or newer is needed, and there is no python3 on PATH."
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    stop "Python 3.10 or newer is needed, and $python is $("$python" -V | cut -d' ' -f2)."

# Asked before the downloads, not after them.
PYTHONPATH=src "$python" -m highwater.runtime.java || exit 2

echo "making the environment in .venv (once; about a minute) ..."
[ -x .venv/bin/python ] || "$python" -m venv .venv ||
    stop "python3 -m venv failed; on Debian and Ubuntu the package python3-venv is missing."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock >"$log" 2>&1 || {
    if grep -qiE "connection|resolution|network|timed out|no matching distribution" "$log"; then
        stop "the pinned packages could not be fetched; the first run needs the network (PyPI). Run the same command again with it."
    fi
    tail -n 5 "$log" >&2
    stop "the pinned packages could not be installed; the lines above are pip's own."
}
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index -e . >"$log" 2>&1 || {
    tail -n 5 "$log" >&2
    stop "the project's own package could not be installed; the lines above are pip's own."
}

# dbt-expectations lives on the dbt hub only. Without the hub everything else works, and its column checks are left out.
if [ -e dbt_packages/dbt_expectations ]; then
    echo "dbt-expectations is in dbt_packages."
elif timeout 60 .venv/bin/dbt --quiet deps --project-dir scripts/expectations --profiles-dir profiles >"$log" 2>&1; then
    echo "dbt-expectations is installed."
else
    rm -rf dbt_packages
    echo "the dbt hub cannot be reached: going on without dbt-expectations and its column checks."
fi
touch .venv/ready
