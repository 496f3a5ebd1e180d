"""The metastore of a lake that several machines share: a database of a server, with the schema of Spark's own Hive.

At PostgreSQL, Hive waits for ever when it makes the schema itself: the tables that it lacks are made on a second
connection, which waits for the transaction of the first. So the schema is made beforehand.
"""

import contextlib
import re
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from highwater.runtime import faults
from highwater.runtime.deployment import METASTORE
from highwater.runtime.errors import CheckError, UsageError
from highwater.runtime.java import java_command, require_java
from highwater.spark.java_classes import FOLDER
from highwater.spark.places import in_transaction, rows_of

OPTIONS = "spark.hadoop.javax.jdo.option."
URL = METASTORE
DRIVER, USER, PASSWORD = (
    f"{OPTIONS}{name}" for name in ("ConnectionDriverName", "ConnectionUserName", "ConnectionPassword")
)
# the schema of Hive 2.3.10; Hive refuses an older one
VERSION = (2, 3, 0)
SECONDS_TO_CONNECT = 10
SECONDS_OF_AN_ANSWER = 30
SECONDS_TO_MAKE = 300
# what bounds the wait for a server, in seconds, as the driver of its kind names it
LIMITS = {
    "postgresql": {
        "loginTimeout": SECONDS_TO_CONNECT,
        "connectTimeout": SECONDS_TO_CONNECT,
        "socketTimeout": SECONDS_OF_AN_ANSWER,
    },
}
OF_JDO = {
    "javax.jdo.PersistenceManagerFactoryClass": "org.datanucleus.api.jdo.JDOPersistenceManagerFactory",
    # as Hive itself has them, or its tables would have other names
    "datanucleus.identifierFactory": "datanucleus1",
    "datanucleus.rdbms.useLegacyNativeValueStrategy": "true",
    "datanucleus.schema.autoCreateAll": "true",
    "datanucleus.connectionPoolingType": "None",
    "datanucleus.plugin.pluginRegistryBundleCheck": "LOG",
}
# Hive makes the first of these itself, for which its user would need the right to; the second says that all is there
LAST = (
    """create table if not exists "SEQUENCE_TABLE" (
        "SEQUENCE_NAME" varchar(255) primary key, "NEXT_VAL" bigint not null
    )""",
    f"""insert into "VERSION" ("VER_ID", "SCHEMA_VERSION", "VERSION_COMMENT")
        values (1, '{".".join(map(str, VERSION))}', 'made by highwater')""",
)
MODEL = "org.apache.hadoop.hive.metastore.model"


@dataclass(frozen=True)
class State:
    """What a metastore is found to be.

    Attributes:
        is_reached: the database answers. has_schema: Hive can work with it. sentence: says so, and what to do.
    """

    is_reached: bool
    has_schema: bool
    sentence: str


def state(settings: dict[str, str], jvm=None) -> State:
    """Return whether the database of a metastore can be reached, and has the schema that Spark's Hive asks for.

    Arguments:
        settings: of Spark, among them the URL, the driver and the user of the metastore.
        jvm: a Java that has the driver; None: one is started for it.
    Raises: UsageError when a setting is missing or wrong.
    """
    _require(settings)
    with contextlib.ExitStack() as stack:
        jvm = jvm or stack.enter_context(_java())
        try:
            found = _version(jvm, settings)
        except CheckError as error:
            return State(False, False, str(error))
    where = f"The metastore {_place(settings)}"
    if not found:
        return State(True, False, f"{where} does not have the schema of Hive yet, or only a part of it.")
    if _numbers(found) < VERSION:
        wanted = ".".join(map(str, VERSION))
        return State(True, False, f"{where} has the schema of Hive {found}; let Hive's schematool make {wanted} of it.")
    return State(True, True, f"{where} has the schema of Hive {found}.")


def make_schema(settings: dict[str, str]) -> None:
    """Make the schema of Hive in an empty database; a killed attempt is completed, a whole one stays as it is.

    The row that tells the schema's version is written last; with it Hive's own verification of the schema may stay on.

    Arguments:
        settings: see `state`.
    Raises: UsageError, see `state`. CheckError when the database cannot be reached, or refuses the tables.
    """
    _require(settings)
    with _java() as jvm:
        if _version(jvm, settings):
            return
        with _saying(f"The schema of the metastore {_place(settings)} was not made", settings):
            _make_tables(jvm, settings)
            with in_transaction(_connection(jvm, settings)) as connection:
                for statement in LAST:
                    connection.createStatement().execute(statement)


def _require(settings: dict[str, str]) -> None:
    missing = [name for name in (URL, DRIVER, USER) if not settings.get(name)]
    if missing:
        raise UsageError(
            f"the metastore needs the Spark setting {missing[0]}; set it in the target of the dbt profile."
        )
    if _kind(settings) not in LIMITS:
        raise UsageError(
            f"{URL} is {_place(settings)}; a metastore that machines share is in PostgreSQL: "
            "jdbc:postgresql://<host>:<port>/<database>."
        )


def _kind(settings: dict[str, str]) -> str:
    return settings[URL].removeprefix("jdbc:").partition(":")[0]


def _place(settings: dict[str, str]) -> str:
    """Return the URL without what may be a secret."""
    return faults.masked(re.split("[?;]", settings[URL])[0])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


@contextlib.contextmanager
def _java() -> Iterator:
    """Start a Java with Spark's jars and the drivers for some moments; what hangs in it is ended with it.

    Secrets go to it through its socket, never through its command line.
    """
    import pyspark
    from py4j import java_gateway, protocol
    from py4j.java_gateway import JavaGateway

    require_java()
    jars = Path(pyspark.__file__).parent / "jars"
    gateway = JavaGateway.launch_gateway(
        jarpath=str(next(jars.glob("py4j-*.jar"))),
        classpath=f"{jars}/*:{FOLDER / 'jars'}/*",
        javaopts=["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
        java_path=java_command(),
        enable_auth=True,
        die_on_exit=True,
    )
    limit = threading.Timer(SECONDS_TO_MAKE, gateway.java_process.kill)
    limit.start()
    # PySpark, once it has a session, takes errors of every Java for those of its own
    of_pyspark, java_gateway.get_return_value = java_gateway.get_return_value, protocol.get_return_value
    try:
        yield gateway.jvm
    finally:
        java_gateway.get_return_value = of_pyspark
        limit.cancel()
        gateway.shutdown()
        gateway.java_process.kill()
        gateway.java_process.wait()


@contextlib.contextmanager
def _saying(what: str, settings: dict[str, str]) -> Iterator[None]:
    """Let what Java throws be a sentence without the password. Raises: CheckError."""
    from py4j.protocol import Py4JError, Py4JNetworkError

    try:
        yield
    except Py4JNetworkError:
        raise CheckError(f"{what}: Java did not answer within {SECONDS_TO_MAKE} seconds, or ended.") from None
    except Py4JError as error:
        reason = faults.reason(faults.everything_said(error)).rstrip(".")
        if password := settings.get(PASSWORD):
            reason = reason.replace(password, "***")
        raise CheckError(faults.masked(f"{what}: {reason}.")) from None


def _connection(jvm, settings: dict[str, str]):
    properties = jvm.java.util.Properties()
    named = {"user": settings[USER], "password": settings.get(PASSWORD, ""), **LIMITS[_kind(settings)]}
    for name, value in named.items():
        properties.setProperty(name, str(value))
    try:
        # the driver manager asks the caller's class loader, which Spark's gateway is not
        driver = getattr(jvm, settings[DRIVER])()
    except TypeError:
        raise UsageError(
            f"{DRIVER} is {settings[DRIVER]}, and no jar has it; the one for PostgreSQL is org.postgresql.Driver."
        ) from None
    connection = driver.connect(settings[URL], properties)
    if connection is None:
        raise UsageError(f"{DRIVER} is {settings[DRIVER]}, which is not the one for {URL}, {_place(settings)}.")
    return connection


def _version(jvm, settings: dict[str, str]) -> str | None:
    """Return which schema a database says it has; None: none, or the making of one was not ended.

    Raises: CheckError when it does not answer.
    """
    with (
        _saying(f"The metastore {_place(settings)} cannot be reached", settings),
        in_transaction(_connection(jvm, settings)) as connection,
    ):
        (found,) = rows_of(connection, "select to_regclass('\"VERSION\"')")[0]
        rows = rows_of(connection, 'select "SCHEMA_VERSION" from "VERSION"') if found else []
    return rows[0][0] if rows else None


def _make_tables(jvm, settings: dict[str, str]) -> None:
    properties = jvm.java.util.Properties()
    own = {name.removeprefix("spark.hadoop."): settings.get(name, "") for name in (URL, DRIVER, USER, PASSWORD)}
    for name, value in {**OF_JDO, **own}.items():
        properties.setProperty(name, value)
    names = jvm.java.util.HashSet()
    for name in _classes():
        names.add(name)
    factory = jvm.javax.jdo.JDOHelper.getPersistenceManagerFactory(properties)
    factory.getNucleusContext().getStoreManager().createSchemaForClasses(names, jvm.java.util.Properties())


def _classes() -> list[str]:
    """Return the classes of Hive whose objects a metastore keeps."""
    import pyspark

    (jar,) = Path(pyspark.__file__).parent.glob("jars/hive-metastore-*.jar")
    with zipfile.ZipFile(jar) as files:
        declared = files.read("package.jdo").decode()
    return [f"{MODEL}.{name}" for name in re.findall(r'<class name="(\w+)"', declared)]
