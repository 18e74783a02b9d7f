"""How a figure is written for a person."""

from __future__ import annotations


def figure(value: float | None) -> str:
    """Three significant digits, larger numbers whole and without an exponent; a dash for what is not known."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:.3g}"
