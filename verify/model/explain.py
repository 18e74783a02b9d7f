"""Why a candidate takes its modelled time, as JSON and as lines for a terminal."""

from __future__ import annotations

from typing import Any

from verify.model.formula import SECTOR, Occupancy, Terms, memset_terms, occupancy, terms
from verify.model.launches import STEADY, Counted, Launch, NoModel
from verify.model.profiles import Profile

#: What a term's name means, for a person.
MEANING = {
    "issue": "issuing instructions",
    "double": "float64 arithmetic",
    "units": "load/store units (uncoalesced accesses, bank conflicts)",
    "l2": "traffic to the L2 cache",
    "dram": "traffic to the memory",
    "atomics": "contended atomics",
    "blocks": "starting blocks",
    "latency": "waiting, too few warps to hide it",
    "launch": "launching",
}
_WORD = 4  #: bytes of an atomic update
_MOST_KERNELS = 8
_MOST_SITES = 5


def refuse_what_is_unsteady(counted: Counted) -> None:
    """Raises :class:`NoModel` where sampled blocks differ too much to stand for the others."""
    if not counted.launches and not counted.memsets:
        raise NoModel("it launches nothing at the timed size")
    for launch in counted.launches:
        if launch.sampled < launch.blocks and launch.spread / launch.sampled**0.5 > STEADY:
            raise NoModel(
                f"the work of the blocks of `{launch.kernel}` differs too much to be sampled "
                f"(relative spread {launch.spread:.1f})"
            )


def explain(counted: Counted, profile: Profile, baseline: str) -> dict[str, Any]:
    """The explanation that a verdict carries; every time in it is modelled, in microseconds."""
    by_kernel: dict[tuple[str, int, int, int], list[tuple[Launch, Terms]]] = {}
    for launch in counted.launches:
        key = (launch.kernel, launch.blocks, launch.threads, launch.dynamic_shared)
        by_kernel.setdefault(key, []).append((launch, terms(launch, profile)))
    memsets = [memset_terms(nbytes, profile) for nbytes in counted.memsets]
    kernels = [_kernel(group, occupancy(group[0][0], profile)) for group in by_kernel.values()]
    kernels.sort(key=lambda entry: -float(entry["microseconds"]))
    total = sum(float(entry["microseconds"]) for entry in kernels) + sum(term.microseconds for term in memsets)
    return {
        "modelled": True,
        "gpu": profile.name,
        "calibrated": profile.calibrated or "uncalibrated",
        "microseconds": round(total, 3),
        "binds": kernels[0]["binds"] if kernels else "launch",
        "launches": len(counted.launches),
        "memsets": {"count": len(memsets), "microseconds": round(sum(term.microseconds for term in memsets), 3)},
        "kernels": kernels[:_MOST_KERNELS],
        "baseline": baseline,
    }


def _kernel(group: list[tuple[Launch, Terms]], resident: Occupancy) -> dict[str, Any]:
    """One kernel with one configuration, its launches added up; ratios are of the first launch."""
    launch, first = group[0]
    n = launch.count
    requests = n["loads"] + n["stores"] + n["atomics"]
    named: dict[str, float] = {}
    for _, term in group:
        for name, value in {**term.named(), "launch": term.launch}.items():
            named[name] = named.get(name, 0.0) + value
    # Loads and stores only, as their sectors are; lanes that share a word are no more than all of its bytes.
    useful = max(0.0, n["useful_bytes"] - _WORD * n["atomic_lanes"])
    moved = SECTOR * (n["read_sectors"] + n["write_sectors"])
    return {
        "kernel": launch.kernel,
        "launches": len(group),
        "grid": launch.blocks,
        "block": launch.threads,
        "microseconds": round(sum(term.microseconds for _, term in group), 3),
        "terms": {name: round(value, 3) for name, value in sorted(named.items(), key=lambda item: -item[1])},
        "binds": first.binds,
        "sectors_per_request": round((n["read_sectors"] + n["write_sectors"]) / max(1.0, n["loads"] + n["stores"]), 2),
        "coalescing": round(min(1.0, useful / moved), 3) if moved else None,
        "bank_conflicts_per_request": round(n["conflicts"] / n["shared"], 3) if n["shared"] else 0.0,
        "atomic_updates": round(n["atomic_updates"]),
        "updates_of_hottest_line": round(n["hottest_line"]),
        "active_lanes": round(n["lanes"] / n["groups"] / 32, 3) if n["groups"] else None,
        "reuse": {"l1": _hit(n["l1_misses"], n["read_sectors"]), "l2": _hit(n["l2_read_misses"], n["l1_misses"])},
        "occupancy": {"warps": resident.warps, "blocks": resident.blocks, "limit": resident.limit},
        "registers": launch.resources.registers,
        "shared_bytes": launch.resources.shared + launch.dynamic_shared,
        "spilled_bytes": launch.resources.spilled,
        "loads_under_way": round(launch.in_flight, 1) if launch.resources.batches else None,
        "sampled_blocks": launch.sampled,
        "memory_requests": round(requests),
        "lines": [_site(site) for site in _by_line(launch)[:_MOST_SITES]],
    }


def _by_line(launch: Launch) -> list[dict[str, Any]]:
    """What each line's accesses of one kind cost together, the dearest first; an unrolled loop has many of them."""
    lines: dict[tuple[int, str], dict[str, Any]] = {}
    for site in launch.sites:
        sums = lines.setdefault((site["line"], site["kind"]), {"line": site["line"], "kind": site["kind"]})
        for name in ("requests", "sectors", "waves", "conflicts", "updates"):
            sums[name] = sums.get(name, 0.0) + float(site[name])
    return sorted(lines.values(), key=lambda sums: -(sums["sectors"] + 4 * (sums["waves"] + sums["updates"])))


def _hit(missed: float, asked: float) -> float | None:
    return round(1.0 - missed / asked, 3) if asked else None


def _site(site: dict[str, Any]) -> dict[str, Any]:
    requests = max(1.0, float(site["requests"]))
    entry: dict[str, Any] = {"line": site["line"], "access": site["kind"], "requests": round(requests)}
    if site["sectors"]:
        entry["sectors_per_request"] = round(site["sectors"] / requests, 2)
    if site["waves"]:
        entry["conflicts_per_request"] = round(site["conflicts"] / requests, 2)
    if site["updates"]:
        entry["updates_per_request"] = round(site["updates"] / requests, 2)
    return entry


def explanation_lines(model_terms: dict[str, Any]) -> list[str]:
    """The explanation as text: one table a kernel."""
    lines = [
        f"Modelled for {model_terms['gpu']} ({model_terms['calibrated']}): "
        f"{_duration(model_terms['microseconds'])}, not measured."
    ]
    for kernel in model_terms["kernels"]:
        times = "" if kernel["launches"] == 1 else f" x {kernel['launches']} launches"
        lines.append("")
        lines.append(
            f"{kernel['kernel']} <<<{kernel['grid']}, {kernel['block']}>>>{times}: "
            f"{_duration(kernel['microseconds'])}, bound by {MEANING[kernel['binds']]}"
        )
        for name, value in kernel["terms"].items():
            if value >= 0.01 * kernel["microseconds"]:
                lines.append(f"  {name:<8} {_duration(value):>10}  {MEANING[name]}")
        lines += [f"  {text}" for text in _facts(kernel)]
    return lines


def _facts(kernel: dict[str, Any]) -> list[str]:
    resident = kernel["occupancy"]
    facts = [
        f"occupancy: {resident['warps']} warps a multiprocessor, limited by {resident['limit']}; "
        f"{kernel['registers']} registers, {kernel['shared_bytes']} bytes of shared memory",
        f"global memory: {kernel['sectors_per_request']:g} sectors a request"
        + (f", {kernel['coalescing']:.0%} of the moved bytes are used" if kernel["coalescing"] is not None else ""),
    ]
    if kernel["reuse"]["l1"] is not None:
        second = kernel["reuse"]["l2"]
        facts.append(
            f"reuse: {kernel['reuse']['l1']:.0%} of loaded sectors found in L1"
            + (f", {second:.0%} of the rest in L2" if second is not None else "")
        )
    if kernel["bank_conflicts_per_request"] >= 0.05:
        facts.append(f"bank conflicts: {kernel['bank_conflicts_per_request']:g} extra turns a shared-memory request")
    if kernel["atomic_updates"]:
        facts.append(
            f"atomics: {kernel['atomic_updates']} updates, {kernel['updates_of_hottest_line']} of them of one line"
        )
    if kernel["active_lanes"] is not None and kernel["active_lanes"] < 0.9:
        facts.append(f"divergence: {kernel['active_lanes']:.0%} of the lanes active in memory requests")
    if kernel["binds"] == "latency" and kernel["loads_under_way"] is not None:
        facts.append(f"loads of one place under way before a thread waits: {kernel['loads_under_way']:g}")
    if kernel["spilled_bytes"]:
        facts.append(f"spills: {kernel['spilled_bytes']} bytes of registers a thread")
    for site in kernel["lines"]:
        details = [f"{site[key]:g} {name}" for key, name in _SITE_WORDS if key in site]
        facts.append(
            f"line {site['line'] or '?'}: {site['access']}, {site['requests']} requests"
            + (f", {', '.join(details)} each" if details else "")
        )
    return facts


_SITE_WORDS = (
    ("sectors_per_request", "sectors"),
    ("conflicts_per_request", "bank conflicts"),
    ("updates_per_request", "updates"),
)


def _duration(microseconds: float) -> str:
    return f"{microseconds / 1e3:.3g} ms" if microseconds >= 1e3 else f"{microseconds:.3g} us"
