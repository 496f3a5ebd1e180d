"""The one Spark session of a process, configured as dbt would: conf/ and the dbt profile."""

import contextlib
import logging
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path

import yaml
from jinja2 import Environment

from highwater.catalog.feeds import sql_text
from highwater.runtime import faults
from highwater.runtime.errors import UsageError
from highwater.runtime.java import require_java
from highwater.runtime.package import package, profile_name, project_settings, require_schemas
from highwater.runtime.printable import printable
from highwater.runtime.project import is_being_written, lake
from highwater.spark.java_classes import close_before_writing, kept_classes
from highwater.spark.lake_tables import folders_of_tables, half_logs, lost, require_known_tables
from highwater.spark.places import in_metastore, repair_places

JARS = Path(".spark/jars")
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
METASTORE = "spark.hadoop.javax.jdo.option.ConnectionURL"
# where the metastore keeps the SQL of views; Derby gets columns of 32,700 characters for it
TEXTS_OF_VIEWS = ["VIEW_ORIGINAL_TEXT", "VIEW_EXPANDED_TEXT"]


def profile_settings() -> dict[str, str]:
    """Return the Spark settings of the dbt profile's target, with its `env_var` calls resolved."""
    jinja = Environment()
    jinja.globals["env_var"] = lambda name, default=None: os.environ.get(name, default)
    path = Path(os.environ.get("DBT_PROFILES_DIR", "profiles")) / "profiles.yml"
    profile = (yaml.safe_load(path.read_text()) or {}).get(profile_name())
    if profile is None:
        raise UsageError(f"{path} has no profile {profile_name()!r}, which dbt_project.yml asks for.")
    target = profile["outputs"][profile["target"]]
    require_schemas(project_settings(), target.get("schema"), path)
    return {name: jinja.from_string(value).render() for name, value in target["server_side_parameters"].items()}


def _configuration() -> Path:
    """Return the folder of Spark's configuration: the project's own, or the package's."""
    own = Path("conf")
    return own if (own / "spark-defaults.conf").exists() else package() / "conf"


def _fetch_jars() -> None:
    """Fetch the jars, by a process of its own: its Spark has none of them."""
    fetched = subprocess.run([sys.executable, "-m", "highwater.spark.jars"], stdout=sys.stderr)
    if fetched.returncode:
        raise UsageError(f"without the jars in {JARS} nothing can be done.")


def session(recovering: bool = False, keeps_classes: bool = False, **settings: str):
    """Start Spark, or return the session that this process already has.

    Arguments:
        recovering: tables that the metastore does not know, and logs that are half, are no error.
        keeps_classes: Java keeps the classes that it loads for later commands, unless it has them.
        settings: further Spark settings, with `__` for dots (tests ask for fewer cores).
    Returns: the `SparkSession`; its current database is the schema that dbt builds into.
    Raises: UsageError when Java or the jars are missing, or the metastore has lost tables, or a power cut has left
            the log of a table in half.
    """
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    # also for a thread that did not start it, for which there is no active one
    with contextlib.suppress(PySparkRuntimeError):
        return SparkSession.active()
    require_java()
    if not list(JARS.glob("*.jar")):
        _fetch_jars()
    given = {name.replace("__", "."): value for name, value in settings.items()}
    # whoever writes would go on behind it; a reader, on a copy of the metastore, is told
    if METASTORE not in given and not recovering and (half := half_logs()):
        raise UsageError(f"nothing was done: {half}")
    if sys.stderr.isatty():
        print("starting Spark ...", file=sys.stderr)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    speak_utf8()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    warnings.filterwarnings("ignore", module="pyspark")
    # PySpark logs each analysis error as one line of 10 KB of JSON; whoever catches it reports it.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    builder = SparkSession.builder.appName("highwater").enableHiveSupport()
    log = lake() / "spark.log"
    _begin_logs(log)
    offset = log.stat().st_size if log.exists() else 0
    interrupted = signal.getsignal(signal.SIGINT)
    try:
        with java_output_in(log, 2), _configured(keeps_classes) as options:
            for name, value in _with_options({**profile_settings(), **given}, options).items():
                builder = builder.config(name, value)
            spark = builder.getOrCreate()
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, interrupted)  # PySpark has put its own there
            # before Hive opens the metastore, and before anything is written where the lake was
            repair_places(spark._jvm, spark.conf.get(METASTORE), spark.conf.get("spark.sql.warehouse.dir"))
            spark.sql("create schema if not exists raw")
            spark.sql("create schema if not exists lake")
            if METASTORE not in given:
                take_long_views(spark._jvm, spark.conf.get(METASTORE))
            close_before_writing(spark._jvm, spark.conf.get(METASTORE), options)
            spark.sql("use lake")
    except Exception as error:
        raise UsageError(_why_spark_did_not_start(error, log, offset)) from error
    # a reader, on a copy of the metastore, may meet somebody else's creation
    if METASTORE not in given:
        if not recovering:
            require_known_tables(spark)
        remove_unfinished_tables(spark)
    return spark


@contextlib.contextmanager
def _configured(keeps_classes: bool):
    """Let Spark start meanwhile with its configuration; yield the options by which Java has its kept classes."""
    configuration = Path(os.environ.get("SPARK_CONF_DIR") or _configuration())
    environment, options = kept_classes(configuration, keeps_classes)
    given = {"SPARK_CONF_DIR": str(configuration.resolve()), **environment}
    before = {name: os.environ.get(name) for name in given}
    os.environ |= given
    try:
        yield options
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            os.environ |= {name: value} if value is not None else {}


def _with_options(settings: dict[str, str], options: list[str]) -> dict[str, str]:
    """Return Spark's settings with options of Java before those that they have, which win."""
    given = [*options, *filter(None, [settings.get(JAVA_OPTIONS)])]
    return settings | ({JAVA_OPTIONS: " ".join(given)} if options else {})


# What Derby, Hive and Java say when they do not start; what it means, and what to do.
STARTS = [
    (r"XSDB6|Another instance of Derby", "another process has the metastore open; wait for it to end"),
    (
        r"service\.properties|XBM0A|XJ004|XJ040.*XSL|XSDB[^6]|Database '[^']*' not found",
        "its metastore is damaged; move it away, mv {lake}/metastore {lake}/metastore.damaged, and then register the "
        "tables from their folders: highwater recover",
    ),
    (
        r"PlatformMBeanFinder|Malformed input or input contains unmappable",
        "Java cannot read the path of this folder in this locale; set LC_ALL=C.UTF-8",
    ),
    (r"Could not reserve enough space|insufficient memory for the Java", "there is not enough memory for Java"),
]


def _why_spark_did_not_start(error: Exception, log: Path, offset: int) -> str:
    """Return a sentence with the real reason, which may stand only in the logs that Java writes.

    Arguments:
        log: of Java; derby.log is beside it. offset: where what this Java wrote begins.
    """
    said = faults.everything_said(error)
    written = _written(log, offset) + _written(lake() / "derby.log")
    known = next((why for kind, why in STARTS if re.search(kind, said + written)), None)
    if known is None:
        output = said if faults.is_known(said) or not faults.is_known(written) else written
        known = "{}. {}".format(*(words.rstrip(".") for words in faults.why_and_what_to_do(output)))
    known = known.replace("{lake}", shlex.quote(str(lake())))
    trace = faults.write_down("Spark did not start", said, written)
    return faults.masked(f"Spark did not start on the lake {lake()}: {known}. More is in {trace or 'no file'}.")


def _written(path: Path, offset: int = 0) -> str:
    """Return what a log holds from a place on, at most its last lines; nothing where it is not there."""
    try:
        with open(path, "rb") as file:
            file.seek(max(offset, path.stat().st_size - 20_000))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def speak_utf8() -> None:
    """Let the Java that starts read and write names of files in UTF-8, where a bare locale (cron's) would not."""
    locale = next((os.environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if os.environ.get(name)), "C")
    if locale in ("C", "POSIX"):
        os.environ["LC_ALL"] = "C.UTF-8"


def take_long_views(jvm, url: str) -> None:
    """Let the embedded metastore keep views of any length; other metastores do as they come.

    All of it is one transaction: killed meanwhile, the metastore is as it was, and the next start does it.

    Arguments:
        jvm: the Java that has Derby. url: of the metastore, as JDBC has it.
    """
    if not url.startswith("jdbc:derby:"):
        return
    with in_metastore(jvm, url) as connection:
        statement = connection.createStatement()
        for change in changes_for_long_views(_types_of_texts(connection)):
            statement.execute(change)


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

    Of commits that failed or were killed the halves are removed too, which nothing else would ever do.
    The metastore is this process's alone, so nobody is creating one now. A folder with committed rows stays, whatever
    the metastore says, and so does one without a Delta log, or with one that cannot be read.

    Arguments:
        spark: a session that may write.
    """
    for log in (lake() / "tables").glob("*.db/*/_delta_log"):
        for half in log.glob(".*.tmp*"):
            with contextlib.suppress(OSError):
                half.unlink()
        folder, commits = log.parent, list(log.glob("*.json"))
        is_older = len(commits) > 1 or any(log.glob("*.checkpoint*"))
        if is_older or any(map(_may_have_rows, commits)):
            continue
        schema = folder.parent.name.removesuffix(".db")
        if not spark.catalog.tableExists(f"{schema}.{folder.name}"):
            shutil.rmtree(folder)


def _may_have_rows(commit: Path) -> bool:
    try:
        return b'{"add":' in commit.read_bytes()
    except OSError:  # whoever asks that table is told
        return True


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


def _begin_logs(log: Path) -> None:
    """Begin a log anew that has grown large, and Derby's in any case, which does so itself when it gets that far."""
    with contextlib.suppress(OSError):
        (lake() / "derby.log").unlink(missing_ok=True)
        if log.stat().st_size > faults.LOG_BYTES:
            log.write_bytes(b"")


def _know_reconciliations(spark) -> None:
    """Make the results of `highwater reconcile` a table, in the copy of the metastore: it writes beside builds.

    Where they are damaged that is said, and the others can be asked.
    """
    folder = lake().resolve() / "reconciliations"
    if not (folder / "_delta_log").exists() or spark.catalog.tableExists("lake.reconciliations"):
        return
    try:
        with faults.doing("finding lake.reconciliations"):
            spark.sql(f"create table lake.reconciliations using delta location {sql_text(str(folder))}")
    except Exception as error:
        print(f"warning: {printable(faults.trouble_of_one(error))}", file=sys.stderr)


@contextlib.contextmanager
def reading_session():
    """Start Spark to read the lake while somebody else may be writing it: on a copy of its metastore.

    The tables themselves are read where they are; Delta readers need no lock.
    Raises: UsageError when there is no lake yet, or its metastore has lost tables.
    """
    if not (lake() / "metastore").exists():
        raise UsageError(lost(folders_of_tables()) or f"there is no lake in {lake()} yet; run: highwater build")
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
        if not is_being_written():  # somebody may be creating a table
            require_known_tables(spark)
            if half := half_logs():
                print(f"warning: {printable(half)}", file=sys.stderr)
        yield spark
        spark.stop()
