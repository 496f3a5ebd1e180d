"""A live database, by the JDBC driver that Spark reads it with."""

import os
import re
from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import unquote

from highwater.runtime.errors import CheckError, UsageError
from highwater.runtime.printable import UNPRINTABLE

SECRET = re.compile(r"(pass|pwd|secret|token)\w*\s*=", re.IGNORECASE)


# what a value of PostgreSQL looks like as text depends on these
FORMS_OF_TEXT = (
    "set search_path = pg_catalog",
    "set datestyle = 'ISO'",
    "set lc_monetary = 'C'",
    "set timezone = 'UTC'",
    "set bytea_output = 'hex'",
    "set extra_float_digits = 1",
    "set intervalstyle = 'postgres'",
)


@dataclass(frozen=True)
class Kind:
    """A kind of database.

    Attributes:
        name: as its URLs have it. driver: the class of its JDBC driver. forms: statements that a connection begins
            with; what a value looks like as text depends on them.
    """

    name: str
    driver: str
    forms: tuple[str, ...]


POSTGRES = Kind("postgresql", "org.postgresql.Driver", FORMS_OF_TEXT)
MYSQL = Kind(
    "mariadb",
    "org.mariadb.jdbc.Driver",
    (
        "set sql_mode = ''",
        "set time_zone = '+00:00'",
        "set names utf8mb4",
        "set session transaction isolation level repeatable read",
    ),
)
KINDS = {"postgresql": POSTGRES, "mysql": MYSQL, "mariadb": MYSQL}


def _prefix(feed: str) -> str:
    return f"HIGHWATER_{feed.partition('_')[2].upper()}"


def _has_secret(url: str) -> bool:
    """Return whether a URL carries a password or a user, however it is spelt: `PASSWORD=`, `pass%77ord=`, `u%40db`."""
    spelt = ""
    while spelt != url:
        spelt, url = url, unquote(url)
    return "@" in url.partition("?")[0] or bool(SECRET.search(url))


def _kind_of(url: str) -> Kind | None:
    """Return the kind of the database of a URL."""
    found = re.match(r"jdbc:(\w+)://", url)
    return KINDS.get(found[1]) if found else None


def connection_settings(feed: str, kinds: Iterable[Kind] = (POSTGRES,)) -> dict[str, str]:
    """Return what Spark's JDBC reader needs to reach the database of a feed, from the environment.

    Arguments:
        feed: `<vendor>_<system>`; the system names the variables, `HIGHWATER_SHOP_URL` for `changelog_shop`.
        kinds: of databases that are allowed.
    Raises: UsageError naming the variable that is missing or wrong.
    """
    prefix = _prefix(feed)
    url = os.environ.get(f"{prefix}_URL", "")
    if _has_secret(url):
        raise UsageError(
            f"{prefix}_URL carries a user or a password; put them into {prefix}_USER and {prefix}_PASSWORD, "
            "where no log shows them."
        )
    kind = _kind_of(url)
    if kind not in kinds:
        found = f"is {url.partition('?')[0]!r}" if url else "is not set"
        allowed = " or ".join(
            f"jdbc:{name}://<host>:<port>/<database>" for name, each in KINDS.items() if each in kinds
        )
        raise UsageError(f"{prefix}_URL {found}; it must say where the database is: {allowed}.")
    user = os.environ.get(f"{prefix}_USER")
    if not user:
        raise UsageError(f"{prefix}_USER is not set; it must be a user of the database.")
    # the driver of MariaDB is the one for MySQL too
    url = re.sub("^jdbc:mysql:", "jdbc:mariadb:", url)
    settings = {"url": url, "user": user, "driver": kind.driver}
    password = os.environ.get(f"{prefix}_PASSWORD")
    return settings | ({"password": password} if password else {})


class Database:
    """One connection; what runs on it is one transaction until `commit`.

    Arguments:
        kinds: of databases that are allowed.
    Attributes:
        kind: what it is of. java: Java's classes. connection: JDBC's.
    Raises: UsageError naming what it was asked with when the database is not reached or does not let the user in.
    """

    def __init__(self, spark, feed: str, kinds: Iterable[Kind] = (POSTGRES,)):
        self.feed, self.spark, self.java = feed, spark, spark.sparkContext._jvm
        settings = connection_settings(feed, kinds)
        self.kind = _kind_of(settings["url"])
        properties = self.java.java.util.Properties()
        for name in ("user", "password"):
            if name in settings:
                properties.setProperty(name, settings[name])
        try:
            with self.errors():
                # the driver manager asks the caller's class loader, which Spark's gateway is not
                driver = getattr(self.java, self.kind.driver)()
                self.connection = driver.connect(settings["url"], properties)
                self.connection.setAutoCommit(False)
        except CheckError as error:
            prefix, is_set = _prefix(feed), "is set" if "password" in settings else "is not set"
            raise UsageError(
                f"{str(error).rstrip('.')}. It was asked with {prefix}_URL={settings['url'].partition('?')[0]}, "
                f"{prefix}_USER={settings['user']}; {prefix}_PASSWORD {is_set}."
            ) from None
        for form in self.kind.forms:
            self.run(form)
        self.commit()

    @contextmanager
    def errors(self):
        """Raise what the driver says as a CheckError."""
        from py4j.protocol import Py4JJavaError

        try:
            yield
        except Py4JJavaError as error:
            words = " ".join((error.java_exception.getMessage() or "no reason given").split())
            password = os.environ.get(f"{_prefix(self.feed)}_PASSWORD")
            words = re.sub(rf"(?<!\w){re.escape(password)}(?!\w)", "…", words) if password else words
            raise CheckError(f"the database of {self.feed} says: {words}") from None

    def run(self, sql: str, *parameters) -> int:
        """Run a statement; return how many rows it changed."""
        with self.errors():
            statement = self._prepared(sql, parameters)
            count = statement.executeUpdate()
            statement.close()
        return count

    def rows(self, sql: str, *parameters) -> list[tuple]:
        """Run a query; return its rows, every value as text."""
        with self.errors():
            statement = self._prepared(sql, parameters)
            found, rows = statement.executeQuery(), []
            width = found.getMetaData().getColumnCount()
            while found.next():
                rows.append(tuple(found.getString(place) for place in range(1, width + 1)))
            statement.close()
        return rows

    def texts(self, sql: str) -> list[str | None]:
        """Run a query of one column of text; return its rows, which may be many."""
        from pyspark.sql import DataFrame

        spark, java = self.spark, self.java
        with self.errors():
            statement = self._prepared(sql, ())
            found = statement.executeQuery()
            # what Spark makes of a result, for a call from Python for each row would take most of the time
            schema = java.org.apache.spark.sql.types.StructType.fromDDL("line string")
            rows = java.org.apache.spark.sql.execution.datasources.jdbc.JdbcUtils.resultSetToRows(found, schema)
            rows = java.scala.jdk.javaapi.CollectionConverters.asJava(rows.toSeq())
            lines = DataFrame(spark._jsparkSession.createDataFrame(rows, schema), spark).collect()
            statement.close()
        return [line for (line,) in lines]

    @property
    def is_postgres(self) -> bool:
        """Whether it is PostgreSQL."""
        return self.kind is POSTGRES

    def name(self) -> str | None:
        """Return the name of the database of MySQL that is connected to."""
        return self.rows("select database()")[0][0]

    def has_table(self, schema: str, table: str) -> bool:
        """Return whether it has a table or view that its user may see."""
        return bool(
            self.rows(
                "select 1 from information_schema.tables where table_schema = ? and table_name = ?", schema, table
            )
        )

    def has(self, relation: str) -> bool:
        """Return whether a table or view is there, by its quoted name."""
        return self.rows("select to_regclass(?) is not null", relation) == [("t",)]

    def _prepared(self, sql: str, parameters):
        statement = self.connection.prepareStatement(sql)
        for place, value in enumerate(parameters, 1):
            if isinstance(value, int):
                statement.setLong(place, value)
            else:
                statement.setString(place, value)
        return statement

    def commit(self) -> None:
        """End the transaction."""
        with self.errors():
            self.connection.commit()

    def rollback(self) -> None:
        """Undo the transaction."""
        with self.errors():
            self.connection.rollback()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self.errors():
            self.connection.rollback()
            self.connection.close()


def reason_of(error: Exception) -> str:
    """Return the line of an error of Spark's reader in which the database says what is wrong."""
    lines = [line.strip() for line in str(error).splitlines()]
    reason = next((line for line in lines if "PSQLException: " in line), lines[0])
    return reason.rpartition("PSQLException: ")[2]


def quoted(name: str) -> str:
    """Return a name as PostgreSQL reads it exactly."""
    return '"' + name.replace('"', '""') + '"'


def text_in_postgres(text: str) -> str:
    """Return a text as PostgreSQL reads it exactly, in quotes and on one line."""
    doubled = text.replace("'", "''")
    if not UNPRINTABLE.search(text):
        return f"'{doubled}'"
    return "E'" + UNPRINTABLE.sub(lambda found: f"\\U{ord(found[0]):08x}", doubled.replace("\\", "\\\\")) + "'"
