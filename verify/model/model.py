"""The level ``modelled``: a time for a named GPU without one, never to be taken for a measured speed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from verify.model.explain import explain, refuse_what_is_unsteady
from verify.model.launches import count
from verify.model.profiles import load_profile
from verify.sandbox import Limits
from verify.task import Task


def model(
    task: Task,
    source: str,
    *,
    toolkit: Path,
    folder: Path,
    limits: Limits,
    gpu: str,
    baseline_seconds: Callable[[], float] | None = None,
) -> dict[str, Any]:
    """The fields of a verdict at level ``modelled`` for one call at the task's timed size.

    ``gpu`` names a profile, ``folder`` is private and empty. ``baseline_seconds`` gives seconds of the sequential
    reference on one CPU core at the timed size: measured, and labelled so, while the candidate's own time is modelled.

    Raises :class:`~verify.model.launches.NoModel` where no time can be given, with the reason.
    """
    profile = load_profile(gpu)
    counted = count(task, source, toolkit=toolkit, folder=folder, limits=limits, gpu=profile.hardware)
    refuse_what_is_unsteady(counted)
    fields: dict[str, Any] = {}
    label = "none"
    if baseline_seconds is not None:
        label = "sequential reference, measured on one CPU core at the timed size"
        fields["modelled_baseline_seconds"] = baseline_seconds()
    terms = explain(counted, profile, label)
    seconds = float(terms["microseconds"]) * 1e-6
    fields |= {"modelled_seconds": seconds, "model_terms": terms}
    if baseline_seconds is not None:
        fields["modelled_speedup"] = fields["modelled_baseline_seconds"] / seconds
    return fields
