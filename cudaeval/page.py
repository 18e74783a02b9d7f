"""A report as one HTML page with plots; the page carries its scripts and asks no server for anything."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from cudaeval.metrics import Estimate
from cudaeval.report import Line, Report, notes, sections, tiers
from regraph_db.errors import EnvironmentFault

#: What notes quote as Markdown does.
_QUOTED, _CODE = re.compile(r"`([^`]+)`"), r"<code>\1</code>"
_STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; color: #1f2933; }
table { border-collapse: collapse; margin: 0.5rem 0 1.5rem; }
th, td { padding: 0.25rem 0.6rem; border-bottom: 1px solid #d9e2ec; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.scroll { overflow-x: auto; }
"""


def html(report: Report) -> str:
    """The page. Raises :class:`EnvironmentFault` when plotly is not installed."""
    try:
        import plotly.io
    except ImportError:
        raise EnvironmentFault("plotly is not installed.", fix="`pip install regraph[report]` brings it.") from None
    parts = []
    for number, figure in enumerate(figures(report)):
        parts.append(
            plotly.io.to_html(
                figure,
                full_html=False,
                include_plotlyjs=number == 0,
                div_id=f"plot-{number}",
                config={"displayModeBar": False, "responsive": True},
            )
        )
    for section in sections(report):
        heading = "".join(f"<th>{escape(cell)}</th>" for cell in section.headings)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in section.rows)
        parts.append(
            f'<h2>{escape(section.title)}</h2><div class="scroll"><table><tr>{heading}</tr>{body}</table></div>'
        )
    said = "".join(f"<p>{_QUOTED.sub(_CODE, escape(note))}</p>" for note in notes(report))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>CUDAEval report</title>'
        f"<style>{_STYLE}</style></head><body><h1>CUDAEval report</h1>{said}{''.join(parts)}</body></html>\n"
    )


def figures(report: Report) -> list[Any]:
    """The plots: solved share and speedup by strategy and tier, best so far against budget; without speed
    only the first."""
    found = [_bars(report, "pass_at_k", f"pass@{report.k} by tier", "share of tasks solved")]
    if report.speed:
        found.append(
            _bars(report, "speedup_at_k", f"speedup@{report.k} by tier (failed = 0), {report.speed}", "speedup")
        )
        found.append(_curves(report))
    return found


def _bars(report: Report, figure: str, title: str, axis: str) -> Any:
    import plotly.graph_objects as go

    shown = tiers(report)
    plot = go.Figure()
    for line in report.lines:
        estimates = [_estimate(line, tier, figure) for tier in shown]
        plot.add_bar(
            name=report.name(line),
            x=shown,
            y=[e.value if e else None for e in estimates],
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [e.high - e.value if e else None for e in estimates],
                "arrayminus": [e.value - e.low if e else None for e in estimates],
            },
        )
    plot.update_layout(title=title, barmode="group", yaxis_title=axis, template="plotly_white")
    return plot


def _estimate(line: Line, tier: str, figure: str) -> Estimate | None:
    summary = line.summaries.get(tier)
    found: Estimate | None = getattr(summary, figure) if summary is not None else None
    return found


def _curves(report: Report) -> Any:
    import plotly.graph_objects as go

    plot = go.Figure()
    # Curves of strategies that found the same lie on one another: the later ones are thinner, so that all are seen.
    for place, line in enumerate(report.lines):
        if line.curve:
            plot.add_scatter(
                name=report.name(line),
                x=[calls for calls, _ in line.curve],
                y=[speedup for _, speedup in line.curve],
                mode="lines",
                line={"shape": "hv", "width": 2 + 0.8 * (len(report.lines) - 1 - place)},
            )
    plot.update_layout(
        title=f"Best so far, mean over tasks (unsolved = 0), speedups {report.speed}",
        xaxis_title="generator calls",
        yaxis_title="speedup",
        template="plotly_white",
    )
    return plot
