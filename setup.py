"""What the wheel has beside Python: the dbt package, which the repository has at its top, and what Java needs."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

# of models, those about all tables; the others are examples
BROUGHT = [
    "dbt_project.yml",
    "conf",
    "java/logstore/highwater-logstore.jar",  # by `make wheel`
    "macros",
    "models/docs.md",
    "models/operations",
    "profiles",
    "tests/generic",
]
# what this project gives to the package, and every other one of its own
TABLES = "macros/operations/logged_tables.sql"
NO_TABLES = "{%- macro default__logged_tables() -%}\n    {{ return([]) }}\n{%- endmacro -%}\n"


class WithPackage(build_py):
    """Build the Python modules, and the dbt package beside them."""

    def run(self):
        """Copy the package into the wheel; an editable installation has it where it is."""
        super().run()
        if self.editable_mode:
            return
        package = Path(self.build_lib, "highwater/package")
        shutil.rmtree(package, ignore_errors=True)
        for name in BROUGHT:
            target = package / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if Path(name).is_dir():
                shutil.copytree(name, target, ignore=shutil.ignore_patterns(".*"))
            else:
                shutil.copy(name, target)
        (package / TABLES).write_text(NO_TABLES)


setup(cmdclass={"build_py": WithPackage})
