"""``regraph doctor``: what this machine has, what is missing, and the command that brings it."""

from __future__ import annotations

from collections.abc import Iterator

import click

from regraph_db.cli import json_option, print_json

_MARKS = {"ok": "✓", "missing": "✗", "limited": "!"}


@click.command()
@click.option("--settings", "show_settings", is_flag=True, help="List every setting with its value instead.")
@json_option
@click.pass_context
def doctor(ctx: click.Context, show_settings: bool, as_json: bool) -> None:
    """Examine this machine: one line for each part, and how to get what is missing.

    Ends with 0 when kernels can be searched for here (a store, nvcc and a level that runs them), 1 when not.

    \b
    Example:
      regraph doctor
      regraph doctor --settings
    """
    if show_settings:
        rows = list(_settings())
        if as_json:
            print_json(rows)
            return
        for row in rows:
            click.echo(f"{row['setting']} = {row['value']!r}\n    {row['description']}")
        return
    from verify.examination import examine

    findings = examine()
    if as_json:
        print_json([vars(finding) for finding in findings])
    else:
        width = max(len(finding.part) for finding in findings)
        for finding in findings:
            click.echo(f"{_MARKS[finding.state]} {finding.part:{width}}  {finding.detail}")
            if finding.fix and finding.state != "ok":
                click.echo(f"  {'':{width}}  → {finding.fix}")
    if any(finding.state == "missing" and finding.needed for finding in findings):
        ctx.exit(1)


def _settings() -> Iterator[dict[str, object]]:
    """Every setting: its name in regraph.toml, its value here, its meaning."""
    from regraph_db.settings import Settings, load, section, section_model, sections

    tables = [("", Settings, load())]
    for name in sorted(sections()):
        model = section_model(name)
        tables.append((name, model, section(name, model)))  # type: ignore[arg-type]
    for name, model, values in tables:
        for key, field in model.model_fields.items():
            yield {
                "setting": f"{name}.{key}" if name else key,
                "variable": f"REGRAPH_{name.upper()}__{key.upper()}" if name else f"REGRAPH_{key.upper()}",
                "value": _plain(getattr(values, key)),
                "default": _plain(field.get_default(call_default_factory=True, validated_data={})),
                "description": field.description or "",
            }


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | float | str | type(None)) else str(value)
