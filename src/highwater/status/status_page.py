"""The status of the lake as one page: a table of every number, and charts over time."""

from highwater.catalog.pending import are_pending
from highwater.catalog.rendering import render
from highwater.catalog.tables import Trouble, by_itself
from highwater.runtime.project import utc_now
from highwater.status.status import compaction_of

BATCHES = """
    select landing_batch, min(landed_at) as landed_at, sum(read) as read, sum(applied) as applied,
        sum(superseded + duplicate) as passed_over, sum(rejected) as rejected
    from lake.ledger where table_name = '{entity}' group by feed, landing_batch order by landed_at
"""

UNITS = [("days", 86_400), ("hours", 3_600), ("minutes", 60), ("seconds", 1)]

LAGS = """
    select landed_at, unix_timestamp(landed_at) - unix_timestamp(max(changed_at)) as seconds
    from lake.`{entity}_changes` where changed_at is not null and not is_derived
    group by feed, landing_batch, landed_at order by landed_at
"""


def page(spark, found: list[dict]) -> str:
    """Return a self-contained HTML page; it needs neither a network nor another file.

    Arguments:
        found: what `status` returns; a table that cannot be drawn has its trouble added.
    """
    from plotly.offline import get_plotlyjs

    at = utc_now()
    charts = {}
    for row in found:
        chart = by_itself(lambda _, row=row: _chart(spark, row), "the history of {}")(row["table"])
        charts[row["table"]] = None if isinstance(chart, Trouble) else chart
        if isinstance(chart, Trouble):
            row["trouble"] = " ".join(filter(None, (row["trouble"], chart.sentence)))
    plotly = get_plotlyjs() if any(charts.values()) else ""
    return render("status.html", rows=found, charts=charts, at=at, plotly=plotly)


def pending_over_time(spark, entity: str) -> tuple[list, list]:
    """Return when how many changes were pending, since the newest compaction, and all compactions with their causes.

    Changes count from when they landed. Compactions are read from the history of the merged table, so they begin where
    Delta's log begins.
    """
    history = reversed(spark.sql(f"describe history lake.`{entity}_merged`").collect())
    compactions = [(commit.timestamp, cause) for commit in history if (cause := compaction_of(commit))]
    points = [(at, 0) for at, _ in compactions[-1:]]
    batches = spark.sql(
        f"select landed_at, count(*) as changes from lake.`{entity}_changes` "
        f"where {are_pending(spark, entity)} group by landed_at order by landed_at"
    ).collect()
    for batch in batches:
        points.append((batch.landed_at, (points[-1][1] if points else 0) + batch.changes))
    return points, compactions


def _chart(spark, row: dict) -> str | None:
    """Return the charts of one table as an element of a page; None where nothing has been built."""
    from plotly.graph_objects import Bar, Scatter
    from plotly.subplots import make_subplots

    if row["read"] is None:
        return None
    entity = row["table"]
    lags = spark.sql(LAGS.format(entity=entity)).collect()
    unit, seconds = next(
        unit for unit in UNITS if max((lag.seconds for lag in lags), default=0) >= 3 * unit[1] or unit[1] == 1
    )
    titles = ("Records per batch", "Pending changes and compactions", f"From the last change to its landing, {unit}")
    figure = make_subplots(rows=1, cols=3, subplot_titles=titles)
    batches = spark.sql(BATCHES.format(entity=entity)).collect()
    for name, colour in [("applied", "#2a9d8f"), ("passed_over", "#8d99ae"), ("rejected", "#d62828")]:
        label = {"passed_over": "superseded or duplicate"}.get(name, name)
        heights = [batch[name] for batch in batches]
        figure.add_trace(Bar(x=_times(batches), y=heights, name=label, marker_color=colour), 1, 1)
    points, compactions = pending_over_time(spark, entity) if row["base"] is not None else ([], [])
    times, counts = [at for at, _ in points], [pending for _, pending in points]
    line = {"shape": "hv", "color": "#264653"}
    figure.add_trace(Scatter(x=times, y=counts, name="pending", mode="lines+markers", line=line), 1, 2)
    marks = {
        "x": [at for at, _ in compactions],
        "y": [0] * len(compactions),
        "text": [cause for _, cause in compactions],
        "marker": {"symbol": "triangle-down", "size": 11, "color": "#e76f51"},
    }
    figure.add_trace(Scatter(**marks, name="compaction", mode="markers", hovertemplate="%{text}<br>%{x}"), 1, 2)
    delays = [lag.seconds / seconds for lag in lags]
    figure.add_trace(
        Scatter(x=_times(lags), y=delays, name="lag", mode="lines+markers", line={"color": "#6a4c93"}), 1, 3
    )
    figure.update_layout(
        barmode="stack", height=300, margin={"l": 50, "r": 20, "t": 40, "b": 40}, template="plotly_white"
    )
    figure.update_xaxes(type="date")
    figure.update_yaxes(rangemode="tozero")
    return figure.to_html(full_html=False, include_plotlyjs=False, config={"displayModeBar": False})


def _times(rows) -> list:
    return [row.landed_at for row in rows]
