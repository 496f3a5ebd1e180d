"""The one Spark session of a process, configured as dbt would: conf/ and the dbt profile."""

import contextlib
import logging
import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

import yaml
from jinja2 import Environment

from highwater.errors import UsageError
from highwater.project import lake, require_java

JARS = Path(".spark/jars")
METASTORE = "spark.hadoop.javax.jdo.option.ConnectionURL"
# where the metastore keeps the SQL of views; Derby gets columns of 32,700 characters for it
TEXTS_OF_VIEWS = ["VIEW_ORIGINAL_TEXT", "VIEW_EXPANDED_TEXT"]


def profile_settings() -> dict[str, str]:
    """Return the Spark settings of the dbt profile's target, with its `env_var` calls resolved."""
    jinja = Environment()
    jinja.globals["env_var"] = lambda name, default=None: os.environ.get(name, default)
    folder = Path(os.environ.get("DBT_PROFILES_DIR", "profiles"))
    profile = yaml.safe_load((folder / "profiles.yml").read_text())["highwater"]
    target = profile["outputs"][profile["target"]]
    return {name: jinja.from_string(value).render() for name, value in target["server_side_parameters"].items()}


def session(**settings: str):
    """Start Spark, or return the session that this process already has.

    Arguments:
        settings: further Spark settings, with `__` for dots (tests ask for fewer cores).
    Returns: the `SparkSession`; its current database is the schema that dbt builds into.
    Raises: UsageError when Java or the jars are missing.
    """
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    require_java()
    if not list(JARS.glob("*.jar")):
        raise UsageError(f"no jars in {JARS}; run `make setup` once, with network.")
    if sys.stderr.isatty():
        print("starting Spark ...", file=sys.stderr)
    os.environ.setdefault("SPARK_CONF_DIR", str(Path("conf").resolve()))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    warnings.filterwarnings("ignore", module="pyspark")
    # PySpark logs each analysis error as one line of 10 KB of JSON; whoever catches it reports it.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    builder = SparkSession.builder.appName("highwater").enableHiveSupport()
    given = {name.replace("__", "."): value for name, value in settings.items()}
    for name, value in {**profile_settings(), **given}.items():
        builder = builder.config(name, value)
    log = lake() / "spark.log"
    try:
        with java_output_in(log, 2):
            spark = builder.getOrCreate()
            spark.sql("create schema if not exists raw")
            spark.sql("create schema if not exists lake")
            if METASTORE not in given:
                take_long_views(spark._jvm, spark.conf.get(METASTORE))
            spark.sql("use lake")
    except Exception as error:
        words = str(error).strip().split("\n")[0]
        raise UsageError(f"Spark did not start: {words} More is in {log}.") from error
    # a reader, on a copy of the metastore, may meet somebody else's creation
    if METASTORE not in given:
        remove_unfinished_tables(spark)
    return spark


def take_long_views(jvm, url: str) -> None:
    """Let the embedded metastore keep views of any length; other metastores do as they come.

    All of it is one transaction: killed meanwhile, the metastore is as it was, and the next start does it.

    Arguments:
        jvm: the Java that has Derby. url: of the metastore, as JDBC has it.
    """
    if not url.startswith("jdbc:derby:"):
        return
    connection = jvm.java.sql.DriverManager.getConnection(url)
    try:
        connection.setAutoCommit(False)
        statement = connection.createStatement()
        for change in changes_for_long_views(_types_of_texts(connection)):
            statement.execute(change)
        connection.commit()
    finally:
        connection.rollback()
        connection.close()


def changes_for_long_views(types: dict[str, str]):
    """Yield the statements that make texts of any length of the metastore's texts of views.

    Arguments:
        types: of the columns, by name, as the metastore has them.
    """
    for name in (name for name, kind in types.items() if kind != "CLOB"):
        yield f"alter table APP.TBLS add column {name}_OF_ANY_LENGTH clob"
        yield f"update APP.TBLS set {name}_OF_ANY_LENGTH = cast({name} as clob)"
        yield f"alter table APP.TBLS drop column {name}"
        yield f"rename column APP.TBLS.{name}_OF_ANY_LENGTH to {name}"


def _types_of_texts(connection) -> dict[str, str]:
    columns = connection.getMetaData().getColumns(None, "APP", "TBLS", "VIEW%TEXT")
    types = {}
    while columns.next():
        types[columns.getString("COLUMN_NAME")] = columns.getString("TYPE_NAME")
    return {name: types[name] for name in TEXTS_OF_VIEWS if name in types}


def quoted(name: str) -> str:
    """Return a name as Spark's SQL reads it exactly.

    Arguments:
        name: of a column or a table, without its schema.
    """
    return "`" + name.replace("`", "``") + "`"


def remove_unfinished_tables(spark) -> None:
    """Remove the folders of tables whose creation was killed: Delta refuses to create a table where something is.

    The metastore is this process's alone, so nobody is creating one now. A folder with committed rows stays, whatever
    the metastore says, and so does one without a Delta log.

    Arguments:
        spark: a session that may write.
    """
    for log in (lake() / "tables").glob("*.db/*/_delta_log"):
        folder, commits = log.parent, list(log.glob("*.json"))
        is_older = len(commits) > 1 or any(log.glob("*.checkpoint*"))
        if is_older or any('{"add":' in commit.read_text() for commit in commits):
            continue
        schema = folder.parent.name.removesuffix(".db")
        if not spark.catalog.tableExists(f"{schema}.{folder.name}"):
            shutil.rmtree(folder)


@contextlib.contextmanager
def java_output_in(log: Path, *descriptors: int):
    """Give a Java that starts meanwhile this file as its output: what matters reaches us as exceptions.

    Arguments:
        log: the file, which is added to. descriptors: 1 for standard output, 2 for standard error.
    """
    try:
        handle = open(log, "ab")  # noqa: SIM115 - closed below
    except OSError:
        handle = open(os.devnull, "ab")  # noqa: SIM115
    sys.stdout.flush()
    own = {number: os.dup(number) for number in descriptors}
    try:
        with handle:
            for number in own:
                os.dup2(handle.fileno(), number)
        yield
    finally:
        for number, copy in own.items():
            os.dup2(copy, number)
            os.close(copy)


def _know_reconciliations(spark) -> None:
    """Make the results of `highwater reconcile` a table, in the copy of the metastore: it writes beside builds."""
    folder = lake().resolve() / "reconciliations"
    if (folder / "_delta_log").exists() and not spark.catalog.tableExists("lake.reconciliations"):
        spark.sql(f"create table lake.reconciliations using delta location '{folder}'")


@contextlib.contextmanager
def reading_session():
    """Start Spark to read the lake while somebody else may be writing it: on a copy of its metastore.

    The tables themselves are read where they are; Delta readers need no lock.
    Raises: UsageError when there is no lake yet.
    """
    if not (lake() / "metastore").exists():
        raise UsageError(f"there is no lake in {lake()} yet; run: highwater build")
    with tempfile.TemporaryDirectory(prefix="highwater-") as copy:
        for attempt in (1, 2, 3):
            metastore = Path(copy) / str(attempt)
            # a copy that catches the metastore in the middle of a write does not open; the next one will
            shutil.copytree(lake() / "metastore", metastore, ignore=shutil.ignore_patterns("*.lck"))
            url = f"jdbc:derby:;databaseName={metastore}"
            try:
                spark = session(**{METASTORE: url})
                _know_reconciliations(spark)
                break
            except UsageError:
                if attempt == 3:
                    raise
        yield spark
        spark.stop()
