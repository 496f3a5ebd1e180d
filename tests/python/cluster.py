"""Servers of a lake that several machines share, on the loopback address."""

from highwater.spark import metastore
from servers import PASSWORD, USER

METASTORE = "metastore"


def metastore_settings(server) -> dict[str, str]:
    """What Spark's Hive needs to keep its tables in the database of a PostgreSQL server."""
    return {
        metastore.URL: f"jdbc:postgresql://127.0.0.1:{server.port}/{METASTORE}",
        metastore.DRIVER: "org.postgresql.Driver",
        metastore.USER: USER,
        metastore.PASSWORD: PASSWORD,
    }
