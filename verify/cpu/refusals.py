"""CUDA C++ that the CPU level cannot run, told from the source's tokens: such a candidate is unsupported, not wrong."""

from __future__ import annotations

import re

from verify.cpu.tokens import lex

_WORDS = {
    **dict.fromkeys(("asm", "__asm__", "__asm"), "inline assembly"),
    **dict.fromkeys(("cub", "thrust"), "cub or thrust"),
    **dict.fromkeys(("wmma", "nvcuda", "mma_sync"), "tensor cores"),
    **dict.fromkeys(
        (
            "tex1D",
            "tex2D",
            "tex3D",
            "tex1Dfetch",
            "texture",
            "cudaTextureObject_t",
            "cudaSurfaceObject_t",
            "surf2Dread",
            "surf2Dwrite",
        ),
        "textures and surfaces",
    ),
    **dict.fromkeys(("this_grid", "grid_group", "cudaLaunchCooperativeKernel"), "grid-wide barriers"),
    **dict.fromkeys(
        ("this_cluster", "cluster_group", "__cluster_dims__", "cudaLaunchKernelEx", "cudaLaunchKernelExC"),
        "thread block clusters",
    ),
    **dict.fromkeys(
        ("memcpy_async", "__pipeline_memcpy_async", "__pipeline_commit", "cuda_pipeline"),
        "asynchronous copies (cp.async)",
    ),
    **dict.fromkeys(("__managed__",), "managed variables"),
    **dict.fromkeys(("cudaGraph_t", "cudaGraphLaunch", "cudaStreamBeginCapture"), "CUDA graphs"),
}
_HEADERS = [
    (r"cub/|thrust/", "cub or thrust"),
    (r"mma\.h$|crt/mma", "tensor cores"),
    (
        r"cuda/(barrier|pipeline|semaphore|latch|atomic|ptx|annotated_ptr|std/atomic|std/barrier)|cuda_(pipeline|awbarrier)|cooperative_groups/memcpy_async",
        "libcu++'s barriers, pipelines and atomics",
    ),
    (r"cublas|cufft|cusparse|curand|cusolver|cudnn|cutlass|cute/", "a library"),
    (r"^cuda\.h$|nvrtc", "the driver API"),
]
_INCLUDE = re.compile(r"#\s*include\s*[<\"]([^>\"]+)")


def unsupported(source: str) -> str:
    """What in ``source`` this level does not run, with its line; empty when nothing is known to stand against it."""
    line = 1
    for token in lex(source):
        if token.kind == "word" and token.text in _WORDS:
            return f"{_WORDS[token.text]} (`{token.text}`, line {line})"
        if token.kind == "directive" and (include := _INCLUDE.search(token.text)):
            for pattern, name in _HEADERS:
                if re.search(pattern, include.group(1)):
                    return f"{name} (`{include.group(1)}`, line {line + token.text[: include.start()].count(chr(10))})"
        line += token.text.count("\n")
    return ""
