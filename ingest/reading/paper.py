"""The ReGraphT authors' files (arXiv 2510.19873): lines of kernels and step lists, and the graph as one JSON
document."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ingest.reading.draft import Draft, Rejection

#: Names under which a kernel's line may carry its steps.
STEP_FIELDS = ("steps", "trajectory", "process")

_LOST = "its beginning was lost when the file was written (edges that introduce a technique were not saved)"


def is_kernel(value: object) -> bool:
    """Whether a line is one of the authors' kernels, ``{index, name, kernel}``."""
    return isinstance(value, dict) and {"name", "kernel"} <= value.keys()


def kernel_draft(kernel: Mapping[str, Any], steps: Sequence[Any], where: str) -> Draft:
    """One kernel with its step list; a kernel's name there is its function's."""
    return Draft(where, {"function": kernel["name"], "source": kernel["kernel"], "steps": list(steps)}, strict=False)


def is_graph(value: object) -> bool:
    """Whether a document is the authors' graph, ``{"node": [...], "edge": [...]}``."""
    return isinstance(value, dict) and isinstance(value.get("node"), list) and isinstance(value.get("edge"), list)


def read_graph(graph: Mapping[str, Any], where: str) -> Iterator[Draft | Rejection]:
    """The trajectories that the graph was merged from, as far as the file still holds them.

    Examples of one kernel are chained where one's code after is the next one's code before. The authors' writer
    leaves out
    every edge that introduced its target; a chain that such an edge preceded gets that one step back, with the code
    that
    the chain starts from, when the edge came from the root or from the end of another chain of the same kernel.
    """
    try:
        names = {node["index"]: str(node["name"]) for node in graph["node"]}
        first_source = {node["index"]: (node.get("in") or [None])[0] for node in graph["node"]}
        saved = {(edge["src"], edge["tgt"]) for edge in graph["edge"]}
        links = _links(graph["edge"], names)
    except (KeyError, TypeError, AttributeError) as error:
        yield Rejection(where, f"the graph lacks or mistypes a field: {error}")
        return
    root = min(names, default=0)
    for kernel, examples in links.items():
        chains = _chains(examples, root)
        whole = [chain for chain in chains if chain[0]["src"] == root]
        for chain in (chain for chain in chains if chain[0]["src"] != root):
            node = chain[0]["src"]
            before = first_source.get(node)
            bridge = {"tgt": node, "after": chain[0]["before"]}
            if before is None or (before, node) in saved:
                yield Rejection(f"{where}, kernel {kernel}", _LOST, [_step(link, names) for link in chain])
            elif before == root:
                whole.append([bridge, *chain])
            elif (head := next((each for each in whole if each[-1]["tgt"] == before), None)) is not None:
                head.extend([bridge, *chain])
            else:
                yield Rejection(f"{where}, kernel {kernel}", _LOST, [_step(link, names) for link in chain])
        for chain in whole:
            source = chain[0].get("before", "")
            steps = [_step(link, names) for link in chain]
            yield Draft(
                f"{where}, kernel {kernel}", {"function": kernel, "source": source, "steps": steps}, strict=False
            )


def _links(edges: Sequence[Mapping[str, Any]], names: Mapping[int, str]) -> dict[str, list[dict[str, Any]]]:
    """The examples by kernel, each with its edge's ends."""
    links: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for edge in edges:
        names[edge["src"]], names[edge["tgt"]]  # an edge between unknown nodes is a KeyError, reported by the caller
        for example in edge["examples"]:
            links[str(example["name"])].append({**example, "src": edge["src"], "tgt": edge["tgt"]})
    return links


def _chains(examples: list[dict[str, Any]], root: int) -> list[list[dict[str, Any]]]:
    """Split one kernel's examples into maximal chains, those that start at the root first."""
    following: dict[tuple[int, str], list[int]] = defaultdict(list)
    reached: set[tuple[int, str]] = set()
    for i, example in enumerate(examples):
        following[example["src"], example["before"]].append(i)
        reached.add((example["tgt"], example["after"]))
    used: set[int] = set()

    def is_start(example: Mapping[str, Any]) -> bool:
        return example["src"] == root or (example["src"], example["before"]) not in reached

    def priority(i: int) -> tuple[bool, bool]:
        return (examples[i]["src"] != root, not is_start(examples[i]))

    chains = []
    for start in sorted(range(len(examples)), key=priority):
        if start in used:
            continue
        chain = []
        here: int | None = start
        while here is not None:
            used.add(here)
            chain.append(examples[here])
            key = (examples[here]["tgt"], examples[here]["after"])
            here = next((i for i in following[key] if i not in used), None)
        chains.append(chain)
    return chains


def _step(link: Mapping[str, Any], names: Mapping[int, str]) -> dict[str, Any]:
    return {
        "think": link.get("think", ""),
        "method": names[link["tgt"]],
        "detail": link.get("detail", ""),
        "code": link["after"],
    }
