"""``regraph technique``: what the graph knows, and which words mean which technique."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from regraph_db.cli import json_option, print_json, store_option

if TYPE_CHECKING:
    from regraph_db.records import Alias, Transition
    from regraph_db.store import GraphStore


@click.group()
def technique() -> None:
    """Show what the graph knows, and decide which words mean which technique.

    \b
    Example:
      regraph technique list
      regraph technique alias "double buffering" "software pipelining"
    """


@technique.command(name="list")
@store_option
@json_option
def list_(store: str | None, as_json: bool) -> None:
    """List every technique with its examples, trajectories and mean measured gain (log2 of the time ratio).

    \b
    Example:
      regraph technique list --json
    """
    with _open(store) as graph:
        named = _aliases(graph)
        gains = _mean_gains(graph.transitions())
        listed: list[dict[str, Any]] = [
            {
                "name": t.name,
                "examples": examples,
                "trajectories": trajectories,
                "mean_gain": gains.get(t.name),
                "aliases": named.get(t.name, []),
            }
            for t, examples, trajectories in graph.techniques()
        ]
    if as_json:
        print_json(listed)
        return
    if not listed:
        click.echo("The graph knows no technique yet: `regraph ingest add` puts trajectories into it.")
        return
    rows = [
        [
            row["name"],
            str(row["examples"]),
            str(row["trajectories"]),
            _gain(row["mean_gain"]),
            ", ".join(row["aliases"]),
        ]
        for row in listed
    ]
    _table(["technique", "examples", "trajectories", "mean gain", "also called"], rows)


@technique.command()
@click.argument("name")
@store_option
@json_option
def show(name: str, store: str | None, as_json: bool) -> None:
    """Show one technique: what comes before it, what comes after it, what it is also called.

    \b
    Example:
      regraph technique show "shared memory tiling"
    """
    with _open(store) as graph:
        wanted = _known(graph, name)
        transitions = graph.transitions()
        found, examples, trajectories = next(entry for entry in graph.techniques() if entry[0].name == wanted)
        document: dict[str, Any] = {
            **found.model_dump(),
            "examples": examples,
            "trajectories": trajectories,
            "mean_gain": _mean_gains(transitions).get(wanted),
            "aliases": _aliases(graph).get(wanted, []),
            "before": [_edge(t) for t in transitions if t.after == wanted],
            "after": [_edge(t) for t in transitions if t.before == wanted],
        }
    if as_json:
        print_json(document)
        return
    click.echo(f"{wanted}: {document['description'] or 'no description'}")
    click.echo(f"{examples} examples in {trajectories} trajectories, mean gain {_gain(document['mean_gain'])}.")
    if document["aliases"]:
        click.echo("Also called: " + ", ".join(document["aliases"]) + ".")
    edges = [*document["before"], *document["after"]]
    _table(["before", "after", "examples", "mean gain"], [_cells(edge) for edge in edges])


@technique.command()
@click.argument("target", metavar="TO")
@click.option("--from", "source", metavar="NAME", default="init", help="Where the path starts.  [default: init]")
@store_option
@json_option
@click.pass_context
def path(ctx: click.Context, target: str, source: str, store: str | None, as_json: bool) -> None:
    """Show the likeliest way to a technique, by the share of examples that went each way; exit code 1 when there is
    none.

    \b
    Example:
      regraph technique path "tensor cores"
    """
    with _open(store) as graph:
        start, end = (name if name == "init" else _known(graph, name) for name in (source, target))
        found = likeliest_path(graph.transitions(), start, end)
    if as_json:
        print_json({"from": start, "to": end, "path": None if found is None else [_edge(t) for t in found]})
    elif found is None:
        click.echo(f"The graph knows no way from {start} to {end}.", err=True)
    else:
        _table(["before", "after", "examples", "mean gain"], [_cells(_edge(t)) for t in found])
    if found is None:
        ctx.exit(1)


@technique.command()
@click.argument("name", metavar="A")
@click.argument("target", metavar="B")
@click.option("--new", is_flag=True, help="B may be a name that the graph does not know yet.")
@store_option
@json_option
def alias(name: str, target: str, new: bool, store: str | None, as_json: bool) -> None:
    """Decide that A names technique B; the whole graph follows, and `unalias` takes it back.

    \b
    Example:
      regraph technique alias "double buffering" "software pipelining"
    """
    import getpass

    from regraph_db.names import normalise
    from regraph_db.records import Alias

    with _open(store) as graph:
        after = normalise(target) if new else _known(graph, target)
        decision = Alias(alias=normalise(name), technique=after, author=f"person:{getpass.getuser()}")
        graph.put_aliases([decision], replace=True)
    if as_json:
        print_json(decision)
    else:
        click.echo(f"{decision.alias} now names {decision.technique}.")


@technique.command()
@click.argument("name", metavar="A")
@store_option
@json_option
def unalias(name: str, store: str | None, as_json: bool) -> None:
    """Take the decision about A back; the graph is then as if it had never been made.

    \b
    Example:
      regraph technique unalias "double buffering"
    """
    from regraph_db.errors import NotFound
    from regraph_db.names import normalise

    with _open(store) as graph:
        gone = graph.revoke_alias(name) or graph.revoke_alias(normalise(name))
    if gone is None:
        raise NotFound(
            f"nothing was decided about `{name}`.", fix="`regraph technique review --all` lists every decision."
        )
    if as_json:
        print_json(gone)
    else:
        click.echo(f"{gone.alias} no longer names {gone.technique}.")


@technique.command()
@click.option("--all", "every", is_flag=True, help="List every decision, not only the doubtful ones.")
@click.option(
    "--accept", "accepted", metavar="A", multiple=True, help="Call the decision about A right; may be repeated."
)
@store_option
@json_option
def review(every: bool, accepted: Sequence[str], store: str | None, as_json: bool) -> None:
    """List the doubtful decisions about names, with who decided and how sure.

    \b
    Example:
      regraph technique review
      regraph technique review --accept "async copies"
    """
    from regraph_db.errors import NotFound
    from regraph_db.names import normalise

    with _open(store) as graph:
        known = {one.alias: one for one in graph.aliases()}
        chosen: list[Alias] = []
        for name in accepted:
            one = known.get(name) or known.get(normalise(name))
            if one is None:
                raise NotFound(f"nothing was decided about `{name}`.")
            chosen.append(one.model_copy(update={"review": False}))
        if chosen:
            graph.put_aliases(chosen, replace=True)
        listed = graph.aliases(review=None if every else True)
    if as_json:
        print_json(listed)
        return
    if not listed:
        click.echo(
            f"No decision is doubtful; `--all` lists all {len(known)}."
            if known
            else "No decision about names yet: `regraph ingest add` and `regraph technique alias` make them."
        )
        return
    rows = [[a.alias, a.technique, a.author, "" if a.score is None else f"{a.score:.2f}"] for a in listed]
    _table(["words", "technique", "decided by", "score"], rows)


def likeliest_path(transitions: Sequence[Transition], start: str, end: str) -> list[Transition] | None:
    """The path of the greatest product of shares of examples; ``None`` where there is none, empty from a node to
    itself."""
    leaving: dict[str, list[Transition]] = {}
    for transition in transitions:
        if transition.statistics.examples:
            leaving.setdefault(transition.before, []).append(transition)
    queue: list[tuple[float, int, str]] = [(0.0, 0, start)]
    reached: dict[str, Transition | None] = {}
    came: dict[int, Transition | None] = {0: None}
    while queue:
        cost, ticket, name = heapq.heappop(queue)
        if name in reached:
            continue
        reached[name] = came[ticket]
        if name == end:
            break
        total = sum(t.statistics.examples for t in leaving.get(name, ()))
        for transition in leaving.get(name, ()):
            came[len(came)] = transition
            step = -math.log(transition.statistics.examples / total)
            heapq.heappush(queue, (cost + step, len(came) - 1, transition.after))
    if end not in reached:
        return None
    found: list[Transition] = []
    while (last := reached[found[0].before if found else end]) is not None:
        found.insert(0, last)
    return found


def _open(url: str | None) -> GraphStore:
    from regraph_db.opening import open_store
    from regraph_db.settings import load

    return open_store(load({"store": url}))


def _known(graph: GraphStore, name: str) -> str:
    """The technique that a person's words name. Raises :class:`NotFound` with the nearest names."""
    import difflib

    from regraph_db.errors import NotFound
    from regraph_db.names import normalise, resolve

    names = {entry[0].name for entry in graph.techniques()}
    table = {a.alias: a.technique for a in graph.aliases()}
    for words in (name, normalise(name)):
        found = resolve(words, table)
        if found in names:
            return found
    near = difflib.get_close_matches(normalise(name), names, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(f'`{n}`' for n in near)}?" if near else "`regraph technique list` lists them."
    raise NotFound(f"the graph knows no technique `{name}`.", fix=hint)


def _aliases(graph: GraphStore) -> dict[str, list[str]]:
    """The aliases of each technique, chains followed."""
    from regraph_db.names import resolve

    table = {a.alias: a.technique for a in graph.aliases()}
    named: dict[str, list[str]] = {}
    for name in sorted(table):
        if (end := resolve(name, table)) != name:
            named.setdefault(end, []).append(name)
    return named


def _mean_gains(transitions: Sequence[Transition]) -> dict[str, float]:
    """The mean gain over every transition into a technique."""
    sums: dict[str, tuple[int, float]] = {}
    for transition in transitions:
        s = transition.statistics
        count, total = sums.get(transition.after, (0, 0.0))
        sums[transition.after] = (count + s.gain_count, total + s.gain_sum)
    return {name: total / count for name, (count, total) in sums.items() if count}


def _edge(transition: Transition) -> dict[str, Any]:
    s = transition.statistics
    return {"before": transition.before, "after": transition.after, "examples": s.examples, "mean_gain": s.mean_gain}


def _cells(edge: dict[str, Any]) -> list[str]:
    return [edge["before"], edge["after"], str(edge["examples"]), _gain(edge["mean_gain"])]


def _gain(value: float | None) -> str:
    return "not measured" if value is None else f"{value:+.2f}"


def _table(heads: list[str], rows: list[list[str]]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(*heads, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*map(escape, row))
    Console().print(table)
