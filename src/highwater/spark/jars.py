"""Resolve the pinned jars once, through Spark's own resolver, and check every one by SHA-256.

Run by `make setup` as `python -m highwater.spark.jars`; does nothing when the jars are there and right. With `s3a` they
are those of a lake on S3. A process of its own, because the Java of its resolver has none of them.
"""

import hashlib
import os
import shutil
import sys
from pathlib import Path

from highwater.runtime.endings import leave_with_the_sentence
from highwater.runtime.errors import UsageError
from highwater.runtime.java import require_java
from highwater.runtime.package import link_package, package
from highwater.runtime.project import enter_project
from highwater.spark.spark import JARS, JARS_OF_S3A, java_output_in

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


FOR_S3A = ["org.apache.hadoop:hadoop-aws:3.4.2"]
FOR_S3A += [
    f"software.amazon.awssdk:{module}:2.29.52"
    for module in ("apache-client", "kms", "netty-nio-client", "s3", "s3-transfer-manager", "sts")
]
# Netty and the rest Spark has newer, and does not start with these. The bundle is all of AWS' SDK, 612 MB.
NOT_FOR_S3A = [
    "software.amazon.awssdk:bundle",
    "commons-codec:commons-codec",
    "commons-logging:commons-logging",
    "io.netty:*",
    "org.apache.httpcomponents:*",
    "org.slf4j:slf4j-api",
]
LOG_STORE = Path("java/logstore/highwater-logstore.jar")
PINNED, PINNED_S3A = "jars.sha256", "jars-s3a.sha256"


def pinned(listed: str = PINNED) -> dict[str, str]:
    """Return the pinned jars of a list in conf: file name to SHA-256.

    Arguments:
        listed: the name of the list. That for S3 has the log store of this version too.
    """
    lines = (package() / "conf" / listed).read_text().split("\n")
    digests = {name: digest for digest, name in (line.split() for line in lines if line)}
    return digests if listed == PINNED else digests | {LOG_STORE.name: _sha256(package() / LOG_STORE)}


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def differences(folder: Path, listed: str = PINNED) -> list[str]:
    """Return one sentence for each jar in `folder` that is missing, unknown or altered.

    Arguments:
        listed: the name of the list in conf that it is compared with.
    """
    expected = pinned(listed)
    found = {path.name: path for path in folder.glob("*.jar")}
    sentences = [f"{name} is missing" for name in expected if name not in found]
    sentences += [f"{name} is not in conf/{listed}" for name in found if name not in expected]
    for name in expected.keys() & found.keys():
        if _sha256(found[name]) != expected[name]:
            sentences.append(f"{name} has another SHA-256 than conf/{listed} says")
    return sorted(sentences)


def resolve() -> None:
    """Fetch the jars into `.spark/jars`.

    Raises: UsageError without network, or when a jar is not the pinned one.
    """
    if differences(JARS):
        what = "the jars of Delta Lake and of the drivers of PostgreSQL and MariaDB"
        _put(_fetched(what, 16, PACKAGES, SPARK_HAS), JARS, PINNED)


def fetch_for_s3a() -> None:
    """Fetch what a lake on S3 needs into `.spark/jars-s3a`: Hadoop's s3a, AWS' SDK, and our log store beside them.

    Raises: UsageError without network, when a jar is not the pinned one, or when there is no log store.
    """
    store = package() / LOG_STORE
    if not store.exists():
        raise UsageError(
            f"there is no {store}, without which two writers on S3 lose commits of each other. It is made by a JDK in "
            "the repository: make setup"
        )
    ours = JARS_OF_S3A / store.name
    if JARS_OF_S3A.is_dir() and not (ours.exists() and ours.read_bytes() == store.read_bytes()):
        beside = JARS_OF_S3A / f".{store.name}.{os.getpid()}"  # another command may have the one that is there open
        shutil.copy(store, beside)
        os.replace(beside, ours)
    if differences(JARS_OF_S3A, PINNED_S3A):
        jars = _fetched("the jars of S3: Hadoop's s3a and AWS' SDK", 14, FOR_S3A, SPARK_HAS + NOT_FOR_S3A)
        shutil.copy(store, jars)
        _put(jars, JARS_OF_S3A, PINNED_S3A)


def _fetched(what: str, megabytes: int, packages: list[str], left_out: list[str]) -> Path:
    """Return the folder of the jars that Spark's resolver finds for packages, with those that they need."""
    from pyspark.sql import SparkSession

    require_java()
    ivy = Path(".spark/ivy")
    shutil.rmtree(ivy, ignore_errors=True)
    os.environ.pop("SPARK_CONF_DIR", None)
    print(f"fetching {what} ({megabytes} MB, once) ...")
    log = Path(".spark/resolve.log")
    log.parent.mkdir(exist_ok=True)
    log.unlink(missing_ok=True)
    builder = SparkSession.builder.master("local[1]")
    for name, value in {
        "spark.jars.ivy": str(ivy),
        "spark.jars.ivySettings": str(package() / "conf/resolver.xml"),
        "spark.jars.packages": ",".join(packages),
        "spark.jars.excludes": ",".join(left_out),
        "spark.ui.enabled": "false",
    }.items():
        builder = builder.config(name, value)
    try:
        with java_output_in(log, 1, 2):  # the resolver reports every repository it asks
            builder.getOrCreate().stop()
    except Exception as error:
        raise UsageError(
            f"{what} could not be fetched. The first run needs the network (Maven Central); run the same command again "
            f"with it. The resolver's own words are in {log}."
        ) from error
    return ivy / "jars"


def _put(jars: Path, folder: Path, listed: str) -> None:
    """Copy fetched jars into a folder in place of what is there, when they are the pinned ones."""
    if wrong := differences(jars, listed):
        raise UsageError("the fetched jars are not the pinned ones: " + "; ".join(wrong) + ".")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(jars, folder)


def main() -> None:
    """Find the project and make sure of its jars."""
    enter_project()
    link_package()
    fetch_for_s3a() if sys.argv[1:] == ["s3a"] else resolve()


if __name__ == "__main__":
    leave_with_the_sentence(main)
