"""Classes that Java has loaded once, kept in a file from which every later start takes them (decision 32)."""

import hashlib
import os
import shlex
import time
from pathlib import Path

from highwater.runtime.java import java_command

FOLDER = Path(".spark")
# Java keeps classes only while every folder on its class path is empty; Spark puts its configuration there.
NO_CONFIGURATION = FOLDER / "conf"
# what of a configuration can be given to Java in another way
GIVEN_OTHERWISE = {"spark-defaults.conf", "log4j2.properties", "jars.sha256", "jars-s3a.sha256", "resolver.xml"}
# Java writes the first bytes of an archive last
BYTES_OF_HEADER = 4
SECONDS_OF_WRITING = 600
WRITE = "-XX:ArchiveClassesAtExit="


def kept_classes(configuration: Path, writes: bool) -> tuple[dict[str, str], list[str]]:
    """Return how Spark starts so that Java takes its classes from the archive, or writes it when it ends.

    An archive is of one Java, one PySpark, and one set of jars; Java itself refuses one that does not fit, silently.

    Arguments:
        configuration: the folder of Spark's configuration.
        writes: there may be no archive, and this command loads what others will: write it.
    Returns: environment variables for Spark's start, and options of Java; none where the configuration holds more than
             ours (a `hive-site.xml`), which Java reads from its class path alone, and where nothing can be written.
    Example: `kept_classes(Path("conf"), writes=True)[1][-1]` is `-XX:ArchiveClassesAtExit=.spark/classes-….jsa`.
    """
    if os.environ.get("PYSPARK_SUBMIT_ARGS") or not _is_given_otherwise(configuration):
        return {}, []
    try:
        NO_CONFIGURATION.mkdir(exist_ok=True)
        archive = _option_of_archive(_archive(), writes)
    except OSError:  # a project that may only be read
        return {}, []
    # Java splits its options at blanks, which an address has none of
    logging = (configuration / "log4j2.properties").resolve().as_uri()
    arguments = shlex.join(["--properties-file", str(configuration / "spark-defaults.conf"), "pyspark-shell"])
    return (
        {"SPARK_CONF_DIR": str(NO_CONFIGURATION), "PYSPARK_SUBMIT_ARGS": arguments},
        [f"-Dlog4j2.configurationFile={logging}", "-Xlog:cds*=off", *archive],
    )


def _is_given_otherwise(configuration: Path) -> bool:
    """Return whether a configuration has only what can be given without a folder on the class path."""
    files = {file.name for file in configuration.glob("*")}
    return "spark-defaults.conf" in files and files <= GIVEN_OTHERWISE


def _archive() -> Path:
    """Return the archive's file, whose name tells of which Java, PySpark and jars it is."""
    import pyspark

    jars = [*Path(pyspark.__file__).parent.glob("jars/*.jar"), *FOLDER.glob("jars*/*.jar")]
    files = [Path(java_command()).resolve(), *sorted(jars)]
    states = "\n".join(f"{file} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files)
    return FOLDER / f"classes-{hashlib.sha256(states.encode()).hexdigest()[:16]}.jsa"


def _option_of_archive(archive: Path, writes: bool) -> list[str]:
    if whole := _whole(archive):
        return [f"-XX:SharedArchiveFile={whole}"]
    if not writes or (archive.exists() and time.time() - archive.stat().st_mtime < SECONDS_OF_WRITING):
        return []
    for older in FOLDER.glob("classes-*.jsa"):
        older.unlink()
    archive.touch()  # so that nobody else writes it meanwhile
    return [f"{WRITE}{archive}"]


def _whole(archive: Path) -> Path | None:
    """Return the archive, once it is written, under a name that ends in its size; None: it is not there, or not whole.

    Java crashes by one that lacks its end, as an interrupted copy leaves it; such a one is removed.
    """
    if archive.exists():
        with archive.open("rb") as file:
            if any(file.read(BYTES_OF_HEADER)):
                archive.rename(FOLDER / f"{archive.stem}-{archive.stat().st_size}.jsa")
    for kept in FOLDER.glob(f"{archive.stem}-*.jsa"):
        if kept.stat().st_size == int(kept.stem.rpartition("-")[2]):
            return kept
        kept.unlink()
    return None


def close_before_writing(jvm, url: str, options: list[str]) -> None:
    """Let a Java that ends close its embedded metastore before it writes classes, which takes some ten seconds.

    Whoever comes next finds the metastore open to him. That holds for a command that was killed too.

    Arguments:
        jvm: the Java. url: of the metastore, as JDBC has it. options: see kept_classes; it may write nothing.
    """
    if not url.startswith("jdbc:derby:") or not any(option.startswith(WRITE) for option in options):
        return
    metastore = jvm.org.apache.derby.jdbc.BasicEmbeddedDataSource40()
    metastore.setDatabaseName(url.removeprefix("jdbc:derby:;databaseName=").split(";")[0])
    metastore.setShutdownDatabase("shutdown")
    closing = jvm.java.beans.EventHandler.create(
        jvm.java.lang.Class.forName("java.lang.Runnable"), metastore, "getConnection"
    )
    jvm.java.lang.Runtime.getRuntime().addShutdownHook(jvm.java.lang.Thread(closing))
