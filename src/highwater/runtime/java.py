"""The Java that Spark will start. Needs nothing but Python: `make setup` asks for it before it downloads anything."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from highwater.runtime.endings import leave_with_the_sentence
from highwater.runtime.errors import UsageError

JAVA_AT_LEAST = 17


def java_command() -> str | None:
    """Return the Java that Spark will start: that of JAVA_HOME, or else of PATH; None: there is none on PATH."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else shutil.which("java")


def require_java() -> None:
    """Check that the Java which Spark will start is there and new enough.

    Raises: UsageError naming the Java that was found, or saying that none was.
    """
    home, java = os.environ.get("JAVA_HOME"), java_command()
    wanted = f"Install Java {JAVA_AT_LEAST} or newer and put it on PATH, or set JAVA_HOME to it."
    if not java or not Path(java).exists():
        where = f"JAVA_HOME is {home}, but there is no bin/java in it" if home else "no java on PATH"
        raise UsageError(f"Spark needs Java, and {where}. {wanted}")
    answer = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', answer)
    if not found:
        raise UsageError(f"{java} does not say which Java it is. {wanted}")
    if int(found[1]) < JAVA_AT_LEAST:
        raise UsageError(f"Spark needs Java {JAVA_AT_LEAST}, and {java} is Java {found[1]}. {wanted}")


if __name__ == "__main__":
    leave_with_the_sentence(require_java)
