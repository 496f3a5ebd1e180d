"""The files that the project is given, from the folder `templates`."""

from jinja2 import Environment, PackageLoader

from highwater.catalog.columns import Column, in_docs
from highwater.catalog.feeds import jinja_text, sql_text
from highwater.catalog.yaml_files import in_yaml
from highwater.runtime.package import is_the_project


def render(name: str, **values) -> str:
    """Return a file of the folder `templates` with these values in it."""
    jinja = Environment(
        loader=PackageLoader("highwater"),
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    jinja.filters |= {"yaml": in_yaml, "sql_text": sql_text, "jinja": jinja_text, "docs": in_docs}
    jinja.globals["column_line"] = column_line
    # generic tests of a package are called by its name, and those of the project as they are
    jinja.globals["of_package"] = lambda: "" if is_the_project() else "highwater."
    return jinja.get_template(name).render(**values)


def column_line(column: Column) -> str:
    """Return the entry of a column in a declaration; a long description stands in a line of its own."""
    parts = [f"name: {in_yaml(column.name)}", f"data_type: {in_yaml(column.data_type)}"]
    if column.settings:
        settings = ", ".join(f"{name}: {in_yaml(value)}" for name, value in column.settings.items())
        parts.append(f"config: {{meta: {{{settings}}}}}")
    line = f"- {{{', '.join(parts)}"
    if not column.comment:
        return f"{line}}}"
    described = f"description: {in_yaml(column.description)}}}"
    return f"{line}, {described}" if len(line) + len(described) < 100 else f"{line},\n   {described}"
