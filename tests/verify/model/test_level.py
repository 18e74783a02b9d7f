"""The level as a user meets it: a right kernel's time is called modelled wherever it shows, and what lies outside the
model gets a reason and never a number."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from regraph_db.cli import regraph
from regraph_db.records import Level, VerdictKind
from verify.judge import Judge
from verify.settings import VerifySettings
from verify.task import load_task

pytestmark = pytest.mark.nvcc
AFFINE = Path(__file__).parents[1] / "tasks" / "affine"
CALL = '\nextern "C" void affine(const float* x, float* out, int n) { kernel<<<(n + 255) / 256, 256>>>(x, out, n); }\n'
PLAIN = """__global__ void kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    BODY
    if (i < n) out[i] = 3.0f * x[i] + 1.0f;
}
"""


def kernel(body: str = "", head: str = "") -> str:
    """The right kernel with more in front of it and within it."""
    return head + PLAIN.replace("BODY", body) + CALL


WMMA = kernel(
    "if (n < 0) { nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> sum; "
    "nvcuda::wmma::fill_fragment(sum, 0.0f); out[0] = sum.x[0]; }",
    "#include <mma.h>\n",
)
MMA = kernel(
    'float d = 0; if (n < 0) { asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 '
    '{%0,%0,%0,%0}, {%1,%1,%1,%1}, {%1,%1}, {%0,%0,%0,%0};" : "+f"(d) : "r"(i)); out[0] = d; }'
)
TMA = kernel(head="#include <cuda/barrier>\n__device__ void later(cuda::barrier<cuda::thread_scope_block>&);\n")
TENSOR_MAP = kernel(head="#include <cuda.h>\n__device__ void later(const CUtensorMap*);\n")
CP_ASYNC = kernel(
    "__shared__ float tile[256]; if (i < n) __pipeline_memcpy_async(tile + threadIdx.x, x + i, 4); "
    "__pipeline_commit(); __pipeline_wait_prior(0);",
    "#include <cuda_pipeline.h>\n",
)
TEXTURE = kernel(head="__device__ float read(cudaTextureObject_t from, int i) { return tex1Dfetch<float>(from, i); }\n")
#: One sampled block in sixteen works four thousand times as long as the others.
UNSTEADY = kernel("float more = 0; if (blockIdx.x > 15500) { for (int k = 0; k < 4000; k++) more += x[i % 32 + k]; "
                  "if (more == 0.12345f) out[i] = more; }")  # fmt: skip
MANY = PLAIN.replace("BODY", "") + CALL.replace(
    "kernel<<<", "for (int k = 0; k < (n > 1 << 20 ? 600 : 1); k++) kernel<<<"
)


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    with Judge(VerifySettings(compile_seconds=120), cache_folder=tmp_path_factory.mktemp("cache")) as one:
        if Level.MODELLED not in (one.best_level, Level.MODELLED) or one.best_level is Level.COMPILE:
            pytest.skip("the CPU level does not run on this machine")
        yield one


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        pytest.param(WMMA, "tensor cores", id="wmma"),
        pytest.param(MMA, "inline assembly", id="mma"),
        pytest.param(TMA, "barriers", id="tma barrier"),
        pytest.param(TENSOR_MAP, "driver API", id="tma tensor map"),
        pytest.param(CP_ASYNC, "asynchronous copies|pipelines", id="cp.async"),
        pytest.param(TEXTURE, "textures", id="texture"),
        pytest.param(UNSTEADY, "no model .*differs too much to be sampled", id="unsteady"),
        pytest.param(MANY, "no model .*more than 512 kernels", id="many launches"),
    ],
)
def test_what_lies_outside_the_model_gets_a_reason_and_no_number(judge: Judge, source: str, reason: str) -> None:
    verdict = judge.judge(load_task(AFFINE), source, Level.MODELLED)
    assert verdict.modelled_seconds is None and verdict.modelled_speedup is None and not verdict.model_terms
    assert verdict.speedup is None and verdict.candidate_seconds is None
    assert verdict.level is not Level.MODELLED or verdict.verdict is VerdictKind.UNSUPPORTED
    assert verdict.verdict in (VerdictKind.UNSUPPORTED, VerdictKind.PASSED), verdict.reason
    assert re.search(reason, verdict.reason), verdict.reason


def test_a_modelled_time_is_called_so_and_no_field_of_a_measured_one_is_set(judge: Judge) -> None:
    verdict = judge.judge(load_task(AFFINE), kernel(), Level.MODELLED)
    assert (verdict.verdict, verdict.level) == (VerdictKind.PASSED, Level.MODELLED), verdict.reason
    assert verdict.modelled_seconds and verdict.modelled_speedup
    assert verdict.speedup is None and verdict.candidate_seconds is None and verdict.baseline_seconds is None
    terms = verdict.model_terms
    assert terms["modelled"] is True and terms["gpu"] == "h200" and "measured on one CPU core" in terms["baseline"]
    (entry,) = terms["kernels"]
    assert entry["sectors_per_request"] == 4 and entry["coalescing"] == 1
    assert {line["line"] for line in entry["lines"]} == {4}
    assert sum(entry["terms"].values()) >= entry["microseconds"] * 0.99


def test_the_same_kernel_gives_the_same_time_again(judge: Judge, tmp_path: Path) -> None:
    first = judge.judge(load_task(AFFINE), kernel(), Level.MODELLED)
    with Judge(VerifySettings(compile_seconds=120), cache_folder=tmp_path) as other:
        again = other.judge(load_task(AFFINE), kernel(), Level.MODELLED)
    assert again.modelled_seconds == first.modelled_seconds


def test_the_command_says_modelled_in_text_and_in_json(tmp_path: Path) -> None:
    file = tmp_path / "affine.cu"
    file.write_text(kernel())
    call = ["verify", str(AFFINE), str(file), "--level", "modelled"]
    told = CliRunner().invoke(regraph, call)
    assert told.exit_code == 0, told.output
    assert "GPU time modelled, not measured" in told.output and "Modelled for h200" in told.output
    document = json.loads(CliRunner().invoke(regraph, [*call, "--json"]).output)
    assert document["level"] == "modelled" and document["modelled_seconds"] > 0
    assert document["speedup"] is None and document["candidate_seconds"] is None
