"""The judge's table of settings, ``[verify]`` in regraph.toml, ``REGRAPH_VERIFY__…`` in the environment."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from regraph_db.settings import Section, cores


class VerifySettings(Section):
    """How candidates are compiled, run and timed."""

    nvcc: Path | None = Field(
        None, description="the nvcc to use; default: the wheels of `regraph[cuda]`, then PATH, then /usr/local/cuda"
    )
    host_compiler: str = Field(
        "g++", description="the C++ compiler of references, of the CPU level and of nvcc's host half"
    )
    arch: str = Field(
        "",
        pattern=r"^(sm_\d+[af]?)?$",
        description="architecture to compile for, e.g. sm_90; default: the GPU's, or sm_90 where there is none",
    )
    level: Literal["", "compile", "functional", "modelled", "gpu"] = Field(
        "", description="the level to judge at; default: the best this machine has"
    )
    gpu: int = Field(0, ge=0, description="which GPU to use")
    model_gpu: str = Field("h200", description="the GPU profile of modelled times")
    jobs: int = Field(
        default_factory=cores, ge=1, le=512, description="candidates compiled at once; default: the number of cores"
    )
    compile_seconds: float = Field(60.0, gt=0, description="deadline of one compilation")
    compile_memory: int = Field(4 << 30, gt=0, description="bytes of memory that one compilation may use")
    run_memory: int = Field(8 << 30, gt=0, description="bytes of host memory that one run of a candidate may use")
    log_characters: int = Field(4000, ge=200, description="how much of a compiler's or runner's words a verdict keeps")
    cache_bytes: int = Field(
        4 << 30, ge=0, description="cap of each of the judge's caches; the longest unused entries go first"
    )
    timing_seconds: float = Field(5.0, gt=0, description="time limit of the timing of one candidate on a GPU")
    timing_samples: int = Field(20, ge=3, description="least timed samples of candidate and baseline")
    timing_error: float = Field(0.01, gt=0, description="relative standard error at which the timing stops")
    hidden: bool = Field(True, description="also judge at the hidden sizes")
    seed: int = Field(0, ge=0, description="seed of the inputs; the judge derives the hidden ones from it")
