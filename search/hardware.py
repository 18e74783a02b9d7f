"""What a prompt tells a model about the GPU: FSR's hardware data (arXiv 2506.09092)."""

from __future__ import annotations

import re
from typing import Any

from regraph_db.errors import RegraphError

#: Name fragment: compute capability, SMs, shared memory per SM in KiB, bandwidth in GB/s; from NVIDIA's data sheets.
_KNOWN = {
    "h200": ("9.0", 132, 228, 4800),
    "h100": ("9.0", 132, 228, 3350),
    "a100": ("8.0", 108, 164, 2039),
    "3090 ti": ("8.6", 84, 100, 1008),
    "3090": ("8.6", 82, 100, 936),
    "4090": ("8.9", 128, 100, 1008),
    "l40s": ("8.9", 142, 100, 864),
    "l4": ("8.9", 58, 100, 300),
    "t4": ("7.5", 40, 64, 320),
    "1660 s": ("7.5", 22, 64, 336),
}
_WARP = 32


def gpu_text(judge: Any) -> str:
    """The GPU that ``judge`` times on, or the one it models, in one line."""
    try:
        gpu = judge.gpu
    except (RegraphError, AttributeError):
        model = str(getattr(getattr(judge, "settings", None), "model_gpu", "") or "h200")
        return described(f"NVIDIA {model.upper()}")
    return described(gpu.name, re.sub(r"^sm_(\d+)(\d)[af]?$", r"\1.\2", gpu.architecture))


def described(name: str, capability: str = "") -> str:
    """A GPU by its driver's name; what the table does not know is left out."""
    found = next((facts for fragment, facts in _KNOWN.items() if fragment in name.lower()), None)
    if found is None:
        return ", ".join([name, *([f"compute capability {capability}"] if capability else []), f"warp size {_WARP}"])
    known, units, shared, bandwidth = found
    return (
        f"{name}, compute capability {capability or known}, {units} SMs, {shared} KiB shared memory per SM, "
        f"warp size {_WARP}, {bandwidth} GB/s"
    )
