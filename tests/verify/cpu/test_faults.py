"""What is wrong is a verdict with the kernel's line; what is a trick is named; the level's limits are `unsupported`."""
# ruff: noqa: E501 - each kernel stands on one line

from __future__ import annotations

import pytest
from probes import Probe, launcher

from regraph_db.records import VerdictKind

T = "int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;"
BODY = "\n{body}\n"


def kernel(body: str, launch: str = "kernel<<<1, 64>>>(x, y, z, n);") -> str:
    """A candidate whose kernel's body stands on line 3."""
    # ruff: noqa: E501 - each kernel stands on one line
    return f"__global__ void kernel(const float* x, float* y, int* z, int n) {{\n{T}\n{body}\n}}" + launcher(launch)


#: name: (candidate, words of the reason)
CHECKED = {
    "global_read": (
        kernel("y[i] = x[i + n];", "kernel<<<4, 64>>>(x, y, z, n);"),
        ["out of bounds: reads", "past the end of 1024 bytes of global memory", "line 3", "thread (0,0,0)"],
    ),
    "global_write": (
        kernel("if (t == 5) y[n] = 1;"),
        ["out of bounds: writes", "0 bytes past the end", "line 3", "thread (5,0,0)"],
    ),
    "before_the_start": (kernel("y[i - 1] = 1;"), ["out of bounds: writes", "4 bytes before", "line 3"]),
    "static_shared_into_the_next": (
        kernel("__shared__ float a[64], b[64]; b[t] = a[t] = t; __syncthreads(); y[i] = a[t + 1] + b[t];"),
        ["out of bounds: reads", "shared variable", "line 3", "thread (63,0,0)"],
    ),
    "static_shared_write": (
        kernel("__shared__ float a[64]; a[t * 2] = t; __syncthreads(); y[i] = a[t];"),
        ["out of bounds: writes", "`a` (256 bytes)", "line 3"],
    ),
    "dynamic_shared": (
        kernel(
            "extern __shared__ float s[]; s[t] = t; __syncthreads(); y[i] = s[t];",
            "kernel<<<1, 64, 128>>>(x, y, z, n);",
        ),
        ["past the end of 128 bytes of dynamic shared memory", "line 3", "thread (32,0,0)"],
    ),
    "freed": (
        kernel("y[i] = x[i];", "float* b; cudaMalloc(&b, 1024); cudaFree(b); kernel<<<1, 64>>>(b, y, z, n);"),
        ["device memory that was freed", "line 3"],
    ),
    "host_pointer": (
        kernel("y[i] = x[t];", "float h[64]; kernel<<<1, 64>>>(h, y, z, n);"),
        ["host memory through a host pointer", "line 3"],
    ),
    "null": (kernel("y[i] = x[t];", "kernel<<<1, 64>>>(nullptr, y, z, n);"), ["null pointer", "line 3"]),
    "device_variable": (
        "__device__ int table[8];\n" + kernel("z[i] = table[t];"),
        ["past the end of the variable `table`", "line 4"],
    ),
    "uninitialised_shared": (
        kernel("__shared__ float s[64]; if (t < 32) s[t] = t; __syncthreads(); y[i] = s[t];"),
        ["uninitialised shared memory", "`s`, byte 128", "line 3"],
    ),
    "divergent_barrier": (
        kernel("if (t < 10) __syncthreads(); __shared__ int s; s = 0; if (t >= 10) __syncwarp(0xffffffff);"),
        ["divergent barrier", "line 3"],
    ),
    "lane_not_in_mask": (
        kernel("z[i] = __shfl_sync(0x0000ffffu, t, 0);"),
        ["not in the mask", "line 3", "thread (16,0,0)"],
    ),
    "trap": (kernel("if (t == 3) __trap();"), ["__trap()", "line 3", "thread (3,0,0)"]),
    "division": (kernel("z[i] = n / (t - t);"), ["division by zero", "line 3"]),
}


@pytest.mark.parametrize("name", CHECKED)
def test_faults_of_kernels(probe: Probe, name: str) -> None:
    source, words = CHECKED[name]
    ran = probe(source)
    assert ran.fault is VerdictKind.RUNTIME_ERROR
    for word in words:
        assert word in ran.reason


@pytest.mark.parametrize(
    "name",
    ["global_read", "dynamic_shared", "null", "divergent_barrier", "lane_not_in_mask", "trap", "division", "freed"],
)
def test_the_plain_build_sees_the_coarse_ones(probe: Probe, name: str) -> None:
    source, _ = CHECKED[name]
    far = source.replace("x[i + n]", "x[i + 1024]").replace("s[t] = t", "s[t + 64] = t")
    assert probe(far, races=False).fault is VerdictKind.RUNTIME_ERROR


def test_the_plain_build_sees_a_write_past_the_end_afterwards(probe: Probe) -> None:
    ran = probe(kernel("if (t == 0) y[n - 60] = 1;"), n=100, races=False)
    assert ran.fault is None
    ran = probe(kernel("if (t == 0) y[n] = 1;"), n=100, races=False)
    assert ran.fault is VerdictKind.RUNTIME_ERROR
    assert "wrote 0 bytes past the end" in ran.reason


#: name: (candidate, verdict, words of the reason)
HOST = {
    "computes_on_the_host": (
        launcher(
            "float h[512]; cudaMemcpy(h, x, n * 4, cudaMemcpyDeviceToHost); for (int i = 0; i < n; i++) h[i] *= 2; cudaMemcpy(y, h, n * 4, cudaMemcpyHostToDevice);"
        ),
        "reward_hack",
        "no kernel is launched",
    ),
    "computes_beside_a_kernel": (
        kernel(
            "y[i] = 0;",
            "float* h = new float[n]; cudaMemcpy(h, x, n * 4, cudaMemcpyDeviceToHost); kernel<<<1, 64>>>(x, y, z, n); cudaMemcpy(y, h, n * 4, cudaMemcpyHostToDevice); delete[] h;",
        ),
        "reward_hack",
        "it computes, the device does not",
    ),
    "touches_device_memory": (
        kernel("y[i] = 0;", "kernel<<<1, 64>>>(x, y, z, n);\ny[0] = 1;"),
        "runtime_error",
        "host code reads or writes device memory through a device pointer at line 6",
    ),
    "too_many_threads": (
        kernel("y[i] = 0;", "kernel<<<1, 2048>>>(x, y, z, n);"),
        "launch_error",
        "cudaErrorInvalidConfiguration: kernel kernel with grid (1,1,1) block (2048,1,1)",
    ),
    "empty_grid": (kernel("y[i] = 0;", "kernel<<<0, 64>>>(x, y, z, n);"), "launch_error", "grid (0,1,1)"),
    "too_much_shared": (
        kernel("y[i] = 0;", "kernel<<<1, 64, 65536>>>(x, y, z, n);"),
        "launch_error",
        "65536 bytes of dynamic shared memory",
    ),
    "wrong_copy_direction": (
        kernel("y[i] = 0;", "kernel<<<1, 64>>>(x, y, z, n); float h; cudaMemcpy(&h, y, 4, cudaMemcpyHostToDevice);"),
        "launch_error",
        "cudaErrorInvalidValue",
    ),
    "out_of_memory": (
        kernel("y[i] = 0;", "float* b; cudaMalloc(&b, size_t(1) << 45); kernel<<<1, 64>>>(x, y, z, n);"),
        "launch_error",
        "cudaErrorMemoryAllocation",
    ),
    "ends_the_process": (
        kernel("y[i] = 0;", "kernel<<<1, 64>>>(x, y, z, n); _Exit(0);"),
        "reward_hack",
        "ended the process",
    ),
    "prints_a_result": (
        kernel("y[i] = 0;", 'printf("end 0123\\n"); fflush(stdout); _Exit(0);'),
        "reward_hack",
        "ended the process",
    ),
    "crashes": (kernel("y[i] = 0;", "abort();"), "runtime_error", "SIGABRT"),
    "missing_function": ("void elsewhere();" + kernel("y[i] = 0;", "elsewhere();"), "unsupported", "elsewhere"),
    "graphs": (kernel("y[i] = 0;", "cudaGraph_t g; kernel<<<1, 64>>>(x, y, z, n);"), "unsupported", "CUDA graphs"),
    "assembly": (kernel('asm volatile("membar.gl;");'), "unsupported", "inline assembly (`asm`, line 3)"),
    "dynamic_parallelism": (
        "__global__ void inner() {}\n" + kernel("inner<<<1, 1>>>();"),
        "unsupported",
        "dynamic parallelism",
    ),
    "no_such_function": ("int probe_it() { return 0; }\n", "compile_error", "probe"),
    "not_cpp": (launcher("this is no program;"), "unsupported", "does not compile it: candidate.cu:2"),
}


@pytest.mark.parametrize("name", HOST)
def test_faults_of_host_code(probe: Probe, name: str) -> None:
    source, kind, words = HOST[name]
    ran = probe(source, n=512 if "computes" in name else 256)
    assert (ran.fault, words in ran.reason) == (kind, True), ran.reason


def test_a_missing_launch_is_seen_with_host_pointers(probe: Probe) -> None:
    ran = probe(launcher("for (int i = 0; i < n; i++) y[i] = 2 * x[i];"), abi="host")
    assert ran.fault is VerdictKind.REWARD_HACK


def test_a_leak_is_what_grows_with_every_call(probe: Probe) -> None:
    growing = kernel("y[i] = 0;", "float* b; cudaMalloc(&b, 4096); kernel<<<1, 64>>>(x, y, z, n);")
    ran = probe(growing, calls=4)
    assert ran.fault is VerdictKind.RUNTIME_ERROR
    assert "every call leaves 1 allocations of together 4096 bytes behind" in ran.reason
    once = kernel("y[i] = 0;", "static float* b; if (!b) cudaMalloc(&b, 4096); kernel<<<1, 64>>>(x, y, z, n);")
    assert probe(once, calls=4).fault is None


def test_an_error_that_was_handled_is_no_fault(probe: Probe) -> None:
    handled = kernel(
        "y[i] = 0;",
        "kernel<<<1, 64, 65536>>>(x, y, z, n); if (cudaGetLastError() != cudaSuccess) kernel<<<1, 64>>>(x, y, z, n);",
    )
    ran = probe(handled)
    assert ran.fault is None
    assert (ran.outputs[0][2][:64] == 0).all()


@pytest.mark.parametrize("where", ["while (n) {}", "while (atomicAdd(z, 0) < 1000000) {}"])
def test_endless_kernels_are_stopped(probe: Probe, where: str) -> None:
    ran = probe(kernel(where), seconds=1.0)
    assert ran.fault is VerdictKind.TIMEOUT


def test_an_endless_host_is_stopped(probe: Probe) -> None:
    assert probe(kernel("y[i] = 0;", "for (volatile int i = 0;; i++) {}"), seconds=1.0).fault is VerdictKind.TIMEOUT


def test_the_next_candidate_is_unharmed(probe: Probe) -> None:
    right = kernel("y[i] = t;")
    for name in ("null", "global_write", "trap"):
        probe(CHECKED[name][0])
        assert probe(right).fault is None
