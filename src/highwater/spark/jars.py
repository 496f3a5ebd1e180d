"""Resolve the pinned jars once, through Spark's own resolver, and check every one by SHA-256.

Run by `make setup` as `python -m highwater.spark.jars`; does nothing when the jars are there and right.
"""

import hashlib
import os
import shutil
from pathlib import Path

from highwater.runtime.endings import leave_with_the_sentence
from highwater.runtime.errors import UsageError
from highwater.runtime.java import require_java
from highwater.runtime.package import link_package, package
from highwater.runtime.project import enter_project
from highwater.spark.spark import JARS, java_output_in

PACKAGES = [
    "io.delta:delta-spark_4.1_2.13:4.4.0",
    "org.postgresql:postgresql:42.7.9",
    "org.mariadb.jdbc:mariadb-java-client:3.5.11",
]
# Spark ships these itself; a second copy on the class path would shadow its own.
SPARK_HAS = [
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "org.apache.hadoop:hadoop-client",
    "org.apache.parquet:parquet-hadoop",
    "org.slf4j:slf4j-api",
    "org.apache.logging.log4j:*",
    "com.fasterxml.jackson.core:*",
    "com.google.code.findbugs:jsr305",
    "org.checkerframework:checker-qual",
]


def pinned() -> dict[str, str]:
    """Return the pinned jars of conf/jars.sha256: file name to SHA-256."""
    lines = (package() / "conf/jars.sha256").read_text().split("\n")
    return {name: digest for digest, name in (line.split() for line in lines if line)}


def differences(folder: Path) -> list[str]:
    """Return one sentence for each jar in `folder` that is missing, unknown or altered."""
    expected = pinned()
    found = {path.name: path for path in folder.glob("*.jar")}
    sentences = [f"{name} is missing" for name in expected if name not in found]
    sentences += [f"{name} is not in conf/jars.sha256" for name in found if name not in expected]
    for name in expected.keys() & found.keys():
        if hashlib.sha256(found[name].read_bytes()).hexdigest() != expected[name]:
            sentences.append(f"{name} has another SHA-256 than conf/jars.sha256 says")
    return sorted(sentences)


def resolve() -> None:
    """Fetch the jars into `.spark/jars`.

    Raises: UsageError without network, or when a jar is not the pinned one.
    """
    if not differences(JARS):
        return
    from pyspark.sql import SparkSession

    require_java()
    ivy = Path(".spark/ivy")
    shutil.rmtree(ivy, ignore_errors=True)
    shutil.rmtree(JARS, ignore_errors=True)
    os.environ.pop("SPARK_CONF_DIR", None)
    print("fetching the jars of Delta Lake and of the drivers of PostgreSQL and MariaDB (16 MB, once) ...")
    log = Path(".spark/resolve.log")
    log.parent.mkdir(exist_ok=True)
    log.unlink(missing_ok=True)
    builder = SparkSession.builder.master("local[1]")
    for name, value in {
        "spark.jars.ivy": str(ivy),
        "spark.jars.ivySettings": str(package() / "conf/resolver.xml"),
        "spark.jars.packages": ",".join(PACKAGES),
        "spark.jars.excludes": ",".join(SPARK_HAS),
        "spark.ui.enabled": "false",
    }.items():
        builder = builder.config(name, value)
    try:
        with java_output_in(log, 1, 2):  # the resolver reports every repository it asks
            builder.getOrCreate().stop()
    except Exception as error:
        raise UsageError(
            "the jars of Delta Lake and the drivers could not be fetched. The first run needs the network "
            f"(Maven Central); run the same command again with it. The resolver's own words are in {log}."
        ) from error
    wrong = differences(ivy / "jars")
    if wrong:
        raise UsageError("the fetched jars are not the pinned ones: " + "; ".join(wrong) + ".")
    shutil.copytree(ivy / "jars", JARS)


def main() -> None:
    """Find the project and make sure of its jars."""
    enter_project()
    link_package()
    resolve()


if __name__ == "__main__":
    leave_with_the_sentence(main)
