"""The result of a reconciliation as a table, JSON, JUnit or one HTML page."""

import json
import re
from dataclasses import asdict
from xml.etree import ElementTree

from highwater.catalog.feeds import sql_text
from highwater.catalog.rendering import render
from highwater.reconcile.verdict import (
    FAIL,
    INCONCLUSIVE,
    VERDICTS,
    Cause,
    Comparison,
    Reconciliation,
    Sample,
)
from highwater.runtime.printable import printable
from highwater.runtime.project import stored
from highwater.spark.lake_tables import RECONCILIATIONS

SHOWN = {
    "equal": "equal",
    "value_differs": "differ",
    "missing_in_lake": "missing",
    "extra_in_lake": "extra",
    "duplicate_in_lake": "twice in lake",
    "duplicate_in_export": "twice in export",
    "in_flight": "in flight",
    "stale": "stale",
    "differs_from_log": "not as logged",
}
NOT_OF_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
COLOURS = {
    "value_differs": "#e76f51",
    "missing_in_lake": "#6a4c93",
    "extra_in_lake": "#e9a23b",
    "duplicate_in_lake": "#457b9d",
    "duplicate_in_export": "#1d3557",
    "in_flight": "#8d99ae",
    "stale": "#bc6c25",
    "differs_from_log": "#d00000",
}


def show(found: Reconciliation) -> None:
    """Print the result for people."""
    import click

    from highwater.status.query import show_table

    click.echo(found.headline)
    for each in found.comparisons:
        click.echo(printable(f"{each.table}: {export_in_words(each)}"))
    show_table(
        ["table", "verdict", "rows in lake", "rows in export", *SHOWN.values()],
        [
            [each.table, each.verdict, _number(each.lake_rows), _number(each.export_rows)]
            + [_number(each.keys(verdict) if each.counts else None) for verdict in SHOWN]
            for each in found.comparisons
        ],
    )
    for each in found.comparisons:
        lines = [f"not checked: {words}" for words in each.not_checked]
        lines += [each.compared_with] if each.compared_with else []
        lines += each.notes
        lines += [f"{name}: {words}" for name, words in columns_in_words(each)]
        lines += [f"probably {cause_in_words(cause)}" for cause in each.causes]
        lines += [f"for example {sample_in_words(sample)}" for sample in each.samples[:3]]
        lines += [f"see them: {query}" for query in each.queries.values()]
        lines += [f"to repair {line}" for line in repairs_in_words(each)]
        for line in lines:
            click.echo(printable(f"{each.table}: {line}"))


def export_in_words(comparison: Comparison) -> str:
    """Return which export was compared: file, position, age and rows."""
    if comparison.export_file is None:
        return f"compared with {comparison.export}" if comparison.compared else "compared with no export"
    parts = f" ({len(comparison.export_parts):,} parts)" if len(comparison.export_parts) > 1 else ""
    position = f"position {comparison.position}" if comparison.position else "position unknown"
    rows = f"{comparison.export_records:,} row{'s'[: comparison.export_records != 1]}"
    taken = f"taken {comparison.taken_at} UTC, {comparison.age}"
    return f"export {comparison.export_file}{parts}, {position}, {taken}, {rows}"


def _number(value) -> str:
    return "–" if value is None else f"{value:,}"


def columns_in_words(comparison: Comparison) -> list[tuple[str, str]]:
    """Return for each column how many values differ, and how."""
    words = {
        "value": "other values",
        "null_in_export": "with a value in the lake and NULL in the export",
        "null_in_lake": "with NULL in the lake and a value in the export",
        "equal_by_rule": "equal by the declared rule only",
    }
    return [
        (name, ", ".join(f"{counts[what]:,} {said}" for what, said in words.items() if counts.get(what)))
        for name, counts in comparison.columns.items()
    ]


def cause_in_words(cause: Cause) -> str:
    """Return a cause with its evidence."""
    rows = f"{cause.rows:,}" + (f" of {cause.of:,}" if cause.of else "")
    column = f" in {cause.column}" if cause.column else ""
    return f"{cause.cause}{column}: {rows} {cause.evidence}"


def repairs_in_words(comparison: Comparison) -> list[str]:
    """Return what repairs the differences, a line for each command or statement; one that waits has none."""
    return [
        f"{repair.keys:,} {repair.verdict} ({repair.why}): {command}"
        for repair in comparison.repairs
        for command in repair.run or ["there is nothing to run yet"]
    ]


def sample_in_words(sample: Sample) -> str:
    """Return a difference on one line."""
    key = ", ".join(f"{name}={value}" for name, value in sample.key.items())
    words = f"{sample.verdict} {key}{', compared with the log' if sample.other == 'log' else ''}"
    for column in sample.columns:
        pair = [_quoted((side or {}).get(column)) for side in (sample.lake, sample.export)]
        words += f"; {column} is {pair[0]} in the lake, {pair[1]} in the {sample.other}"
    return words


def _quoted(value) -> str:
    return "NULL" if value is None else f"'{value}'"


def as_json(found: Reconciliation) -> str:
    """Return the result as one JSON document."""
    document = {
        "verdict": found.verdict,
        "run": found.run,
        "compared": [f"{each.table}: {export_in_words(each)}" for each in found.comparisons],
        "spark": found.spark,
        "highwater": found.highwater,
        "tables": [asdict(each) for each in found.comparisons],
    }
    return json.dumps(document, indent=2, ensure_ascii=False, default=str)


def as_junit(found: Reconciliation) -> str:
    """Return the result as JUnit's XML: a table that differs is a failure, one that was not checked an error."""

    def in_lines(lines: list[str]) -> str:
        return _of_xml("\n".join(map(printable, lines)))

    verdicts = [each.verdict for each in found.comparisons]
    suite = ElementTree.Element(
        "testsuite",
        name="highwater reconcile",
        timestamp=found.run.replace(" ", "T"),
        tests=str(len(verdicts)),
        failures=str(verdicts.count(FAIL)),
        errors=str(verdicts.count(INCONCLUSIVE)),
    )
    properties = ElementTree.SubElement(suite, "properties")
    for each in found.comparisons:
        value = _of_xml(export_in_words(each))
        ElementTree.SubElement(properties, "property", name=f"compared.{each.table}", value=value)
    for each in found.comparisons:
        case = ElementTree.SubElement(suite, "testcase", name=each.table, classname="reconcile", time=str(each.seconds))
        lines = [each.compared_with] if each.compared_with else []
        lines += [f"{verdict}: {each.keys(verdict):,} keys" for verdict in VERDICTS if each.keys(verdict)]
        lines += [f"to repair {line}" for line in repairs_in_words(each)]
        lines += [cause_in_words(cause) for cause in each.causes] + [sample_in_words(sample) for sample in each.samples]
        if each.verdict == FAIL:
            message = f"{each.differences:,} keys differ"
            ElementTree.SubElement(case, "failure", message=message).text = in_lines(lines + each.not_checked)
        elif each.verdict == INCONCLUSIVE:
            message = _of_xml("; ".join(each.not_checked))
            ElementTree.SubElement(case, "error", message=message).text = in_lines(lines)
        else:
            ElementTree.SubElement(case, "system-out").text = in_lines(lines)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode")


def _of_xml(text: str) -> str:
    """Return text without the characters that XML cannot hold."""
    return NOT_OF_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def page(spark, found: Reconciliation) -> str:
    """Return a self-contained HTML page; it needs neither a network nor another file."""
    from plotly.offline import get_plotlyjs

    charts = {each.table: _trend(spark, each.table) for each in found.comparisons}
    return render(
        "reconciliation.html",
        found=found,
        shown=SHOWN,
        charts=charts,
        export_in_words=export_in_words,
        columns_in_words=columns_in_words,
        cause_in_words=cause_in_words,
        repairs_in_words=repairs_in_words,
        plotly=get_plotlyjs(),
    )


def _trend(spark, table: str) -> str | None:
    """Return a chart of the differences in the runs so far; None before there are two."""
    from plotly.graph_objects import Bar, Figure

    runs = (
        spark.read.format("delta")
        .load(stored(RECONCILIATIONS))
        .where(f"table_name = {sql_text(table)}")
        .orderBy("run", ascending=False)
        .limit(50)
        .select("run", "verdict", "keys")
        .collect()[::-1]
    )
    if len(runs) < 2:
        return None
    figure, places = Figure(), list(range(len(runs)))
    times = [run.run.strftime("%Y-%m-%d %H:%M:%S") for run in runs]
    for verdict, colour in COLOURS.items():
        heights = [run["keys"].get(verdict, 0) for run in runs]
        if any(heights):
            figure.add_trace(
                Bar(
                    x=places, y=heights, name=SHOWN[verdict], marker_color=colour, hovertext=times,
                    hovertemplate="%{hovertext}: %{y}",
                )
            )  # fmt: skip
    if not figure.data:
        return None
    figure.update_layout(
        barmode="stack", height=260, margin={"l": 50, "r": 20, "t": 20, "b": 40}, showlegend=True,
        legend={"orientation": "h", "y": 1, "yanchor": "bottom"},
        paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)", font={"color": "#7a7f87"},
    )  # fmt: skip
    # every run has a place of its own; a few are named
    named = places[:: len(runs) // 5 + 1]
    figure.update_xaxes(tickvals=named, ticktext=[times[place][:16].replace(" ", "<br>") for place in named])
    figure.update_yaxes(rangemode="tozero", gridcolor="rgba(128,128,128,.25)")
    return figure.to_html(full_html=False, include_plotlyjs=False, config={"displayModeBar": False, "responsive": True})
