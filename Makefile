# Every target works on a fresh clone that has Python 3.10+ and Java 17+; `make help` lists them.
.DEFAULT_GOAL := help
.PHONY: help setup build test long soak bench wheel lint docs clean
BIN := .venv/bin
LOGSTORE := java/logstore/highwater-logstore.jar

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

setup: .venv/ready  ## environment, jars, dbt packages (once)
	@$(BIN)/python -m highwater.spark.jars
	@if command -v javac >/dev/null; then $(MAKE) --no-print-directory $(LOGSTORE); \
	else echo "there is no javac of a JDK: going on without the log store of lakes on S3."; fi

$(LOGSTORE): scripts/logstore.py $(shell find java -name '*.java')
	@$(BIN)/python scripts/logstore.py $@

build: setup  ## land the examples, build and test every model, say what is where
	@$(BIN)/highwater build

test: setup  ## the test suite, real Spark and Delta
	@$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder

long: setup  ## the tests that take minutes each; CI runs them too
	@$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder --long

soak: setup  ## everything, also many histories, kills, big files: hours
	@$(BIN)/pytest --soak

bench: setup  ## landing and staging against Spark's own readers, merging against stock dbt's, a hundred tables, many builds, histories, many files, comparing against a join
	@$(BIN)/python scripts/bench/formats.py
	@$(BIN)/python scripts/bench/merge.py
	@$(BIN)/python scripts/bench/day.py
	@$(BIN)/python scripts/bench/growth.py
	@$(BIN)/python scripts/bench/years.py
	@$(BIN)/python scripts/bench/fleet.py
	@$(BIN)/python scripts/bench/history.py
	@$(BIN)/python scripts/bench/inserts.py
	@$(BIN)/python scripts/bench/many_files.py
	@$(BIN)/python scripts/bench/reconcile.py

wheel: setup  ## dist/highwater-VERSION-py3-none-any.whl: the command, with its dbt package
	@$(MAKE) --no-print-directory $(LOGSTORE)
	@rm -rf build dist
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index -w dist .
	@ls dist/*.whl

lint: setup  ## names, descriptions, SQL and Python style, dbt parse without a warning
	@scripts/checks/lint.sh

docs: setup  ## the dbt docs site, one file: target/static_index.html
	@$(BIN)/highwater dbt docs generate --static --quiet && echo "open target/static_index.html in a browser"

clean:  ## remove the lake and what dbt wrote; the environment and the jars stay
	@rm -rf .lake target logs

.venv/ready: requirements.lock pyproject.toml
	@scripts/setup.sh
