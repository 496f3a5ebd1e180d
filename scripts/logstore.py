"""Compile Delta's log store for S3 into its jar, the same bytes every time: `scripts/logstore.py JAR`.

Needs javac of a JDK, and the jars of Spark and Delta Lake, which `make setup` fetches.
"""

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pyspark

SOURCES = Path("java/logstore")
# a file of a jar has a time, which is no matter here
TIME = (1980, 1, 1, 0, 0, 0)


def compiled(sources: Path, folder: Path) -> list[Path]:
    """Return the classes that javac makes of Java sources, in a folder.

    Raises: SystemExit without javac, and when it finds an error.
    """
    jars = [*Path(pyspark.__file__).parent.glob("jars/hadoop-client-*.jar"), *Path(".spark/jars").glob("*storage*.jar")]
    options = ["--release", "17", "-Xlint:all,-classfile", "-Werror", "-cp", os.pathsep.join(map(str, jars))]
    try:
        subprocess.run(["javac", *options, "-d", folder, *sources.rglob("*.java")], check=True)
    except FileNotFoundError:
        sys.exit("highwater: there is no javac; the log store for s3a: is compiled by a JDK of version 17 or newer.")
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
    return sorted(folder.rglob("*.class"))


def main(jar: Path) -> None:
    """Make the jar, whole or not at all."""
    with TemporaryDirectory(dir=jar.parent) as working:
        classes = Path(working, "classes")
        with zipfile.ZipFile(Path(working, jar.name), "w") as archive:
            for path in compiled(SOURCES, classes):
                archive.writestr(zipfile.ZipInfo(path.relative_to(classes).as_posix(), TIME), path.read_bytes())
        os.replace(Path(working, jar.name), jar)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
