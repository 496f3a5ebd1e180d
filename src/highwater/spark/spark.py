"""The one Spark session of a process, configured as dbt would: conf/ and the dbt profile."""

import atexit
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
import time
import warnings
import zipfile
from pathlib import Path

from highwater.catalog.feeds import sql_text
from highwater.catalog.tables import tables_in
from highwater.runtime import faults
from highwater.runtime.deployment import METASTORE, is_embedded, is_here, place
from highwater.runtime.deployment import settings as settings_of_deployment
from highwater.runtime.errors import UsageError
from highwater.runtime.java import require_java
from highwater.runtime.package import package
from highwater.runtime.printable import printable
from highwater.runtime.project import is_being_written, lake, stored
from highwater.runtime.state import files, reached_by
from highwater.spark.hadoop_files import HadoopFiles
from highwater.spark.java_classes import close_before_writing, kept_classes
from highwater.spark.lake_tables import (
    RECONCILIATIONS,
    half_logs,
    is_table,
    lost,
    newest_versions,
    require_known_tables,
)
from highwater.spark.places import in_metastore, repair_places

JARS = Path(".spark/jars")
JARS_OF_S3A = Path(".spark/jars-s3a")
SECONDS_OF_A_CREATION = 3600
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# where the metastore keeps the SQL of views; Derby gets columns of 32,700 characters for it
TEXTS_OF_VIEWS = ["VIEW_ORIGINAL_TEXT", "VIEW_EXPANDED_TEXT"]


def _configuration() -> Path:
    """Return the folder of Spark's configuration: the project's own, or the package's."""
    own = Path("conf")
    return own if (own / "spark-defaults.conf").exists() else package() / "conf"


def fetch_jars(*which: str) -> None:
    """Fetch jars, by a process of its own: its Spark has none of them."""
    fetched = subprocess.run([sys.executable, "-m", "highwater.spark.jars", *which], stdout=sys.stderr)
    if fetched.returncode:
        raise UsageError(f"without the jars in {JARS_OF_S3A if which else JARS} nothing can be done.")


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
        fetch_jars()
    given = {name.replace("__", "."): value for name, value in settings.items()}
    deployed, has_metastore = settings_of_deployment(), is_embedded() and METASTORE not in given
    if any("s3a:" in value for value in deployed.values()):
        fetch_jars("s3a")
    # whoever writes would go on behind it; a reader, on a copy of the metastore, is told
    if has_metastore and not recovering and (half := half_logs()):
        raise UsageError(f"nothing was done: {half}")
    if sys.stderr.isatty():
        print("starting Spark ...", file=sys.stderr)
    speak_utf8()
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if is_embedded():
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ["PYSPARK_PYTHON"] = sys.executable
    warnings.filterwarnings("ignore", module="pyspark")
    # PySpark logs each analysis error as one line of 10 KB of JSON; whoever catches it reports it.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    builder = SparkSession.builder.appName("highwater").enableHiveSupport()
    log = lake() / "spark.log"
    if not is_here():
        with contextlib.suppress(OSError):  # a project that may only be read
            lake().mkdir(parents=True, exist_ok=True)
    _begin_logs(log)
    offset = log.stat().st_size if log.exists() else 0
    interrupted = signal.getsignal(signal.SIGINT)
    try:
        with java_output_in(log, 2), _configured(keeps_classes) as options:
            configured = _for_executors(_with_options(deployed | given, options))
            if not is_embedded():
                _start_java_without_secrets(configured)
            for name, value in configured.items():
                builder = builder.config(name, value)
            spark = builder.getOrCreate()
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, interrupted)  # PySpark has put its own there
            if is_embedded():
                # before Hive opens the metastore, and before anything is written where the lake was
                repair_places(spark._jvm, spark.conf.get(METASTORE), spark.conf.get("spark.sql.warehouse.dir"))
            spark.sql("create schema if not exists raw")
            spark.sql("create schema if not exists lake")
            if has_metastore:
                take_long_views(spark._jvm, spark.conf.get(METASTORE))
            if is_embedded():
                close_before_writing(spark._jvm, spark.conf.get(METASTORE), options)
            spark.sql("use lake")
    except Exception as error:
        raise UsageError(_why_spark_did_not_start(error, log, offset)) from error
    if not _is_local(configured):
        spark.sparkContext.addPyFile(_zipped_package())
    # a reader, on a copy of the metastore, may meet somebody else's creation; elsewhere that is so without the lease
    if has_metastore:
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


def _is_local(settings: dict[str, str]) -> bool:
    return settings.get("spark.master", "local").startswith("local")


def _for_executors(settings: dict[str, str]) -> dict[str, str]:
    """Return Spark's settings with the jars that executors of other machines get from here, unless they say some."""
    jars = [str(jar.resolve()) for folder in (JARS, JARS_OF_S3A) for jar in sorted(folder.glob("*.jar"))]
    if _is_local(settings) or "spark.executor.extraClassPath" in settings:
        return settings
    return settings | {"spark.jars": ",".join([*filter(None, [settings.get("spark.jars")]), *jars])}


def _start_java_without_secrets(settings: dict[str, str]) -> None:
    """Start Java by settings, less those that are secret: everybody sees what is on a command line."""
    from pyspark import SparkConf, SparkContext

    shown = {name: value for name, value in settings.items() if not faults.IS_SECRET.search(name)}
    SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll([*shown.items()]))


def _zipped_package() -> str:
    """Return the Python package of this command as one file, which executors import."""
    own = Path(__file__).parents[1]
    target = Path(tempfile.mkdtemp(prefix="highwater-")) / "highwater.zip"
    with zipfile.ZipFile(target, "w") as package:
        for path in sorted(own.rglob("*.py")):
            if "package" not in path.relative_to(own).parts:
                package.write(path, path.relative_to(own.parent))
    atexit.register(shutil.rmtree, target.parent, ignore_errors=True)
    return str(target)


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
    return faults.masked(f"Spark did not start on the lake {place()}: {known}. More is in {trace or 'no file'}.")


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
    Whoever does so is alone: the metastore is this process's, or it has the lease. A folder with committed rows stays,
    whatever the metastore says, and so does one without a Delta log, or with one that cannot be read.

    Arguments:
        spark: a session that may write.
    """
    for schema in [name for name in files().names("tables") if name.endswith(".db")]:
        # a store at a URI takes its time to say what is in each folder
        known = () if is_here() else tables_in(spark, schema.removesuffix(".db"))
        for table in [name for name in files().names(f"tables/{schema}") if name.lower() not in known]:
            log = f"tables/{schema}/{table}/_delta_log"
            names = files().names(log)
            for half in [name for name in names if re.match(r"\..*\.tmp", name)] if is_here() else ():
                with contextlib.suppress(OSError):
                    files().remove(f"{log}/{half}")
            commits = [name for name in names if name.endswith(".json")]
            is_older = len(commits) > 1 or any(".checkpoint" in name for name in names)
            if not names and "_delta_log" not in files().names(f"tables/{schema}/{table}"):
                continue
            if is_older or any(_may_have_rows(f"{log}/{commit}") for commit in commits):
                continue
            # who writes without the lease may be creating it now
            if not is_embedded() and any(_is_new(f"{log}/{name}") for name in names):
                continue
            if not spark.catalog.tableExists(f"{schema.removesuffix('.db')}.{table}"):
                files().remove(f"tables/{schema}/{table}")


def _is_new(file: str) -> bool:
    _, written = files().state_of(file)
    return time.time() - written / 1e9 < SECONDS_OF_A_CREATION


def _may_have_rows(commit: str) -> bool:
    try:
        return b'{"add":' in (files().read(commit) or b"")
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
    if not is_table(RECONCILIATIONS) or spark.catalog.tableExists("lake.reconciliations"):
        return
    try:
        with faults.doing("finding lake.reconciliations"):
            spark.sql(f"create table lake.reconciliations using delta location {sql_text(stored(RECONCILIATIONS))}")
    except Exception as error:
        print(f"warning: {printable(faults.trouble_of_one(error))}", file=sys.stderr)


@contextlib.contextmanager
def reading_session():
    """Start Spark to read the lake while somebody else may be writing it: an embedded one on a copy of its metastore.

    The tables themselves are read where they are; Delta readers need no lock.
    Raises: UsageError when there is no lake yet, or its metastore has lost tables.
    """
    if not is_embedded():
        spark = session()
        _know_reconciliations(spark)
        yield spark
        return
    if not (lake() / "metastore").exists():
        raise UsageError(lost(newest_versions()) or f"there is no lake in {lake()} yet; run: highwater build")
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


reached_by(lambda: HadoopFiles(session(), place()))
