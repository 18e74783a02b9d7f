"""Right kernels of every construct that the level offers: the right values, and no alarm."""
# ruff: noqa: E501 - each kernel stands on one line

from __future__ import annotations

import numpy as np
import pytest
from probes import SIGNATURE, Probe, launcher

X = np.arange(256, dtype=np.float32)
K = (np.arange(256) * 7 % 256).astype(np.int32)
T = "int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;"

#: name: (candidate, expected y or None, expected z or None); y and z are -1 before.
KERNELS: dict[str, tuple[str, object, object]] = {
    "map": (
        f"__global__ void k(const float* x, float* y, int n) {{ {T} if (i < n) y[i] = 2 * x[i]; }}"
        + launcher("k<<<(n + 63) / 64, 64>>>(x, y, n);"),
        2 * X,
        None,
    ),
    "two_dimensions": (
        "__global__ void k(float* y) { y[(blockIdx.y * 4 + threadIdx.y) * 16 + threadIdx.x] = 100 * blockIdx.y + 10 * threadIdx.y + threadIdx.x + blockDim.y + gridDim.y; }"
        + launcher("k<<<dim3(1, 4), dim3(16, 4)>>>(y);"),
        [100 * b + 10 * r + c + 8 for b in range(4) for r in range(4) for c in range(16)],
        None,
    ),
    "static_shared": (
        f"__global__ void k(const float* x, float* y) {{ __shared__ float s[64]; {T} s[t] = x[i]; __syncthreads(); y[i] = s[63 - t]; }}"
        + launcher("k<<<4, 64>>>(x, y);"),
        X.reshape(4, 64)[:, ::-1].ravel(),
        None,
    ),
    "dynamic_shared": (
        f"__global__ void k(const float* x, float* y) {{ extern __shared__ float s[]; {T} s[t] = x[i]; __syncthreads(); y[i] = s[63 - t]; }}"
        + launcher("k<<<4, 64, 64 * sizeof(float)>>>(x, y);"),
        X.reshape(4, 64)[:, ::-1].ravel(),
        None,
    ),
    "large_dynamic_shared": (
        f"__global__ void k(const float* x, float* y) {{ extern __shared__ float s[]; {T} s[t * 100] = x[i]; __syncthreads(); y[i] = s[(255 - t) * 100]; }}"
        + launcher(
            "cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 102400); k<<<1, 256, 102400>>>(x, y);"
        ),
        X[::-1],
        None,
    ),
    "file_scope_dynamic_shared": (
        f"extern __shared__ int s[];\n__global__ void k(const int* k, int* z) {{ {T} s[t] = k[i]; __syncthreads(); z[i] = s[t ^ 1]; }}"
        + launcher("k<<<4, 64, 256>>>(index, z);"),
        None,
        K.reshape(-1, 2)[:, ::-1].ravel(),
    ),
    "template_kernel": (
        f"template <int N, class V> __global__ void k(V* y) {{ {T} y[i] = N + t; }}"
        + launcher("k<7><<<1, 256>>>(y); k<3, int><<<1, 256>>>(z);"),
        7 + X,
        np.arange(256) + 3,
    ),
    "kernel_pointer": (
        f"__global__ void k(int* z) {{ {T} z[i] = t; }}" + launcher("void (*p)(int*) = k; p<<<1, 256>>>(z);"),
        None,
        np.arange(256),
    ),
    "launch_in_macro": (
        f"__global__ void k(int* z) {{ {T} z[i] = t; }}\n#define RUN(kernel, ...) kernel<<<1, 256>>>(__VA_ARGS__)"
        + launcher("RUN(k, z);"),
        None,
        np.arange(256),
    ),
    "shuffles": (
        f"__global__ void k(float* y, int* z) {{ {T} float v = t; for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o); y[i] = v; z[i] = __shfl_down_sync(~0u, t, 1, 8) + __shfl_up_sync(~0u, t, 1, 8) + __shfl_sync(~0u, t, 2, 8); }}"
        + launcher("k<<<1, 256>>>(y, z);"),
        np.repeat(X.reshape(-1, 32).sum(1), 32),
        [(t + 1 if t % 8 < 7 else t) + (t - 1 if t % 8 > 0 else t) + t // 8 * 8 + 2 for t in range(256)],
    ),
    "votes": (
        f"__global__ void k(int* z) {{ {T} int c = __syncthreads_count(t < 40), o = __syncthreads_or(t == 3), a = __syncthreads_and(t < 255); unsigned b = __ballot_sync(~0u, t % 3 == 0); z[i] = c + o + a + __popc(b) + __any_sync(~0u, t == 5) + __all_sync(~0u, t >= 0); }}"
        + launcher("k<<<1, 256>>>(z);"),
        None,
        [
            40 + 1 + 0 + sum(t % 3 == 0 for t in range(w * 32, w * 32 + 32)) + (w == 0) + 1
            for w in range(8)
            for _ in range(32)
        ],
    ),
    "reductions_and_matches": (
        f"__global__ void k(float* y, int* z) {{ {T} z[i] = __reduce_add_sync(~0u, t) + __reduce_max_sync(~0u, -t) + (int)__reduce_or_sync(~0u, 1u << (t & 3)); int same; __match_all_sync(~0u, 5, &same); y[i] = __popc(__match_any_sync(~0u, t & 3)) + same; }}"
        + launcher("k<<<1, 256>>>(y, z);"),
        np.full(256, 9),
        [sum(range(w * 32, w * 32 + 32)) - w * 32 + 15 for w in range(8) for _ in range(32)],
    ),
    "half_warp_masks": (
        f"__global__ void k(int* z) {{ {T} if (t % 32 < 16) z[i] = __shfl_xor_sync(0x0000ffffu, t, 1); else z[i] = __shfl_xor_sync(0xffff0000u, t, 2); }}"
        + launcher("k<<<1, 256>>>(z);"),
        None,
        [t ^ 1 if t % 32 < 16 else t ^ 2 for t in range(256)],
    ),
    "early_exit": (
        f"__global__ void k(int* z) {{ __shared__ int s[64]; {T} if (t >= 60) return; s[t] = t; __syncthreads(); z[i] = s[59 - t]; }}"
        + launcher("k<<<1, 64>>>(z);"),
        None,
        [59 - t if t < 60 else -1 for t in range(256)],
    ),
    "warp_synchronous": (
        f"__global__ void k(const float* x, float* y) {{ __shared__ float s[64]; {T} s[t] = x[t]; __syncthreads(); if (t < 32) for (int d = 32; d; d >>= 1) {{ float v = t < d ? s[t] + s[t + d] : 0; __syncwarp(); if (t < d) s[t] = v; __syncwarp(); }} if (t == 0) y[0] = s[0]; }}"
        + launcher("k<<<1, 64>>>(x, y);"),
        [2016, *[-1] * 255],
        None,
    ),
    "integer_atomics": (
        "__global__ void k(int* z) { atomicAdd(&z[0], 2); atomicMax(&z[1], (int)threadIdx.x); atomicMin(&z[2], -(int)threadIdx.x); atomicOr((unsigned*)&z[3], 1u << (threadIdx.x & 7)); atomicAnd(&z[4], 255); atomicXor(&z[5], 1); atomicExch(&z[6], 9); atomicCAS(&z[7], -1, 5); atomicInc((unsigned*)&z[8], 9u); atomicSub(&z[9], 1); }"
        + launcher("k<<<1, 64>>>(z);"),
        None,
        [127, 63, -63, -1, 255, -1, 9, 5, 3, -65, *[-1] * 246],
    ),
    "floating_atomics": (
        "__device__ double total; __global__ void a(const float* x) { atomicAdd(&total, (double)x[threadIdx.x]); } __global__ void b(float* y) { y[0] = total; total = 0; }\n"
        "__global__ void c(float* y) { atomicAdd(&y[1], 0.5f); atomicAdd((half2*)&y[2], half2(1, 2)); }"
        + launcher("cudaMemsetAsync(y, 0, 16); a<<<1, 256>>>(x); b<<<1, 1>>>(y); c<<<1, 64>>>(y);"),
        None,
        None,
    ),
    "shared_histogram": (
        f"__global__ void k(const int* k, int* z, int n) {{ __shared__ int s[16]; {T} if (t < 16) s[t] = 0; __syncthreads(); if (i < n) atomicAdd(&s[k[i] & 15], 1); __syncthreads(); if (t < 16) atomicAdd(&z[t], s[t]); }}"
        + launcher("k<<<4, 64>>>(index, z, n);"),
        None,
        [15] * 16 + [-1] * 240,
    ),
    "last_block_with_fence": (
        "__device__ unsigned done; __device__ float part[4];\n"
        f"__global__ void k(const float* x, float* y) {{ __shared__ float s[64]; __shared__ bool last; {T} s[t] = x[i]; __syncthreads(); for (int d = 32; d; d >>= 1) {{ if (t < d) s[t] += s[t + d]; __syncthreads(); }} if (t == 0) {{ part[blockIdx.x] = s[0]; __threadfence(); last = atomicAdd(&done, 1u) == gridDim.x - 1; }} __syncthreads(); if (last && t == 0) {{ y[0] = part[0] + part[1] + part[2] + part[3]; done = 0; }} }}"
        + launcher("k<<<4, 64>>>(x, y);"),
        [X.sum(), *[-1] * 255],
        None,
    ),
    "same_value_by_many": (
        f"__global__ void k(const float* x, int* z) {{ {T} if (x[i] > 3) z[0] = 1; }}"
        + launcher("k<<<4, 64>>>(x, z);"),
        None,
        [1, *[-1] * 255],
    ),
    "bytes_in_shared": (
        f"__global__ void k(int* z) {{ __shared__ unsigned char s[64]; {T} s[t] = t; __syncthreads(); z[i] = s[63 - t]; }}"
        + launcher("k<<<1, 64>>>(z);"),
        None,
        [63 - t if t < 64 else -1 for t in range(256)],
    ),
    "local_array": (
        f"__global__ void k(const int* k, int* z) {{ int own[8]; {T} for (int j = 0; j < 8; j++) own[(j * k[i]) & 7] = j; z[i] = own[0] >= 0; }}"
        + launcher("k<<<4, 64>>>(index, z);"),
        None,
        np.ones(256),
    ),
    "constant_memory": (
        "__constant__ float c[4];\n__constant__ const int one = 1;\n"
        f"__global__ void k(float* y) {{ {T} y[i] = c[t & 3] + one; }}"
        + launcher("float h[4] = {1, 2, 3, 4}; cudaMemcpyToSymbol(c, h, sizeof h); k<<<4, 64>>>(y);"),
        2 + np.arange(256) % 4,
        None,
    ),
    "device_variables": (
        "__device__ int table[256];\n"
        f"__global__ void a(const int* k) {{ {T} table[i] = k[i]; }} __global__ void b(int* z) {{ {T} z[i] = table[255 - i]; }}"
        + launcher("a<<<4, 64>>>(index); b<<<4, 64>>>(z);"),
        None,
        K[::-1],
    ),
    "symbol_address": (
        "__device__ int table[256];\n"
        f"__global__ void b(int* z) {{ {T} z[i] = table[i] + 1; }}"
        + launcher(
            "void* p; cudaGetSymbolAddress(&p, table); cudaMemcpy(p, index, sizeof table, cudaMemcpyDeviceToDevice); b<<<4, 64>>>(z);"
        ),
        None,
        K + 1,
    ),
    "vector_types": (
        f"__global__ void k(const float* x, float* y) {{ {T} float4 v = reinterpret_cast<const float4*>(x)[i]; reinterpret_cast<float4*>(y)[i] = make_float4(v.w, v.z, v.y, v.x); }}"
        + launcher("k<<<1, 64>>>(x, y);"),
        X.reshape(-1, 4)[:, ::-1].ravel(),
        None,
    ),
    "half": (
        "#include <cuda_fp16.h>\n"
        f"__global__ void k(const float* x, float* y) {{ {T} __half2 h = __floats2half2_rn(x[i], 2.0f); h = __hfma2(h, h, __float2half2_rn(1.0f)); y[i] = t < 32 ? __low2float(h) + __half2float(hexp(__float2half(0.0f))) : __high2float(h); }}"
        + launcher("k<<<4, 64>>>(x, y);"),
        None,
        None,
    ),
    "bfloat16": (
        "#include <cuda_bf16.h>\n"
        f"__global__ void k(const float* x, float* y) {{ {T} __nv_bfloat16 b = __float2bfloat16(x[i]); y[i] = __bfloat162float(b + __float2bfloat16(1.0f)); }}"
        + launcher("k<<<1, 64>>>(x, y);"),
        [*(X[:64] + 1), *[-1] * 192],
        None,
    ),
    "math": (
        f"__global__ void k(const float* x, float* y, int* z) {{ {T} y[i] = rsqrtf(x[i] + 1) * sqrtf(x[i] + 1) + __expf(0.f) + __fdividef(4.f, 2.f) + fmaf(1, 2, 3) + __saturatef(x[i] + 1) + min(3.f, 4.f) + exp2f(1); z[i] = __clz(1) + __ffs(8) + __popc(255) + (__brev(1u) >> 31) + max(2, 1) + __float2int_rn(2.5f) + __mulhi(1 << 30, 4); }}"
        + launcher("k<<<4, 64>>>(x, y, z);"),
        np.full(256, 1 + 1 + 2 + 5 + 1 + 3 + 2),
        np.full(256, 31 + 4 + 8 + 1 + 2 + 2 + 1),
    ),
    "cache_hints": (
        f"__global__ void k(const float* x, float* y) {{ {T} __stcs(&y[i], __ldg(&x[i]) + __ldcs(x + i)); }}"
        + launcher("k<<<4, 64>>>(x, y);"),
        2 * X,
        None,
    ),
    "cooperative_groups": (
        "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\nnamespace cg = cooperative_groups;\n"
        f"__global__ void k(int* z) {{ auto block = cg::this_thread_block(); auto tile = cg::tiled_partition<16>(block); {T} int sum = cg::reduce(tile, t, cg::plus<int>()); int part = tile.shfl_down(t, 4); block.sync(); int odd = 0; if (t & 1) {{ auto active = cg::coalesced_threads(); odd = active.size() * 1000 + active.thread_rank(); }} z[i] = sum + (tile.thread_rank() < 12 ? part - t : 0) + odd; }}"
        + launcher("k<<<1, 256>>>(z);"),
        None,
        [
            sum(range(t // 16 * 16, t // 16 * 16 + 16))
            + (4 if t % 16 < 12 else 0)
            + (16000 + t % 32 // 2 if t & 1 else 0)
            for t in range(256)
        ],
    ),
    "several_kernels_and_a_buffer": (
        f"__global__ void a(const float* x, float* b) {{ {T} b[i] = x[i] + 1; }} __global__ void b(const float* b, float* y) {{ {T} y[i] = b[255 - i]; }}"
        + launcher(
            "float* buffer; cudaMalloc(&buffer, n * sizeof(float)); a<<<4, 64>>>(x, buffer); b<<<4, 64>>>(buffer, y); cudaFree(buffer);"
        ),
        X[::-1] + 1,
        None,
    ),
    "streams_and_events": (
        f"__global__ void a(float* y) {{ {T} y[i] += 1; }}"
        + launcher(
            "cudaStream_t s; cudaEvent_t e; cudaStreamCreate(&s); cudaEventCreate(&e); a<<<4, 64, 0, s>>>(y); cudaEventRecord(e, s); cudaStreamWaitEvent(0, e, 0); a<<<4, 64>>>(y); cudaStreamSynchronize(s); cudaEventDestroy(e); cudaStreamDestroy(s);"
        ),
        np.ones(256),
        None,
    ),
    "device_properties": (
        f"__global__ void k(int* z, int v) {{ {T} z[i] = v; }}"
        + launcher(
            "cudaDeviceProp p; cudaGetDeviceProperties(&p, 0); int blocks = 0; cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, 64, 0); k<<<4, 64>>>(z, p.warpSize + (p.multiProcessorCount > 0) + (blocks > 0));"
        ),
        None,
        np.full(256, 34),
    ),
    "launch_function": (
        f"__global__ void k(int* z, int v) {{ {T} z[i] = v + t; }}"
        + launcher("int v = 5; void* arguments[] = {&z, &v}; cudaLaunchKernel(k, dim3(4), dim3(64), arguments, 0, 0);"),
        None,
        5 + np.arange(256) % 64,
    ),
    "spin_lock": (
        "__device__ int lock;\n"
        f"__global__ void k(int* z) {{ {T} bool won = false; while (!won) {{ if (atomicCAS(&lock, 0, 1) == 0) {{ int old = atomicAdd(&z[0], 0); atomicExch(&z[0], old + 1); __threadfence(); atomicExch(&lock, 0); won = true; }} }} }}"
        + launcher("k<<<1, 64>>>(z);"),
        None,
        [63, *[-1] * 255],
    ),
    "memcpy_in_a_kernel": (
        f"__global__ void k(const float* x, float* y, int n) {{ {T} if (t == 0) memcpy(y, x, n * sizeof(float)); }}"
        + launcher("k<<<1, 32>>>(x, y, n);"),
        X,
        None,
    ),
}


@pytest.mark.parametrize("races", [True, False], ids=["checked", "plain"])
@pytest.mark.parametrize("name", KERNELS)
def test_right_kernels_are_right(probe: Probe, name: str, races: bool) -> None:
    source, y, z = KERNELS[name]
    ran = probe(source, races=races, calls=2)
    assert (ran.fault, ran.reason) == (None, "")
    assert len(ran.outputs) == 2
    for x_after, k_after, y_after, z_after in ran.outputs:
        np.testing.assert_array_equal(x_after, X)
        np.testing.assert_array_equal(k_after, K)
        if y is not None:
            np.testing.assert_allclose(y_after, np.asarray(y, np.float32), rtol=1e-6)
        if z is not None:
            np.testing.assert_array_equal(z_after, np.asarray(z, np.int32))


def test_double_and_half_atomics(probe: Probe) -> None:
    y = probe(KERNELS["floating_atomics"][0]).outputs[0][2]
    assert y[0] == X.sum()
    assert y[1] == 32
    np.testing.assert_array_equal(y[2:3].view(np.float16), [64, 128])


def test_half_rounds_once(probe: Probe) -> None:
    y = probe(KERNELS["half"][0]).outputs[0][2].reshape(4, 64)
    wanted = (X.astype(np.float64) ** 2 + 1).astype(np.float16).astype(np.float32).reshape(4, 64)
    np.testing.assert_array_equal(y[:, :32], wanted[:, :32] + 1)
    np.testing.assert_array_equal(y[:, 32:], 5)


def test_host_pointers(probe: Probe) -> None:
    body = """float* d; cudaMalloc(&d, 2 * n * sizeof(float)); cudaMemcpy(d, x, n * sizeof(float), cudaMemcpyHostToDevice);
        k<<<(n + 63) / 64, 64>>>(d, d + n, n); cudaMemcpy(y, d + n, n * sizeof(float), cudaMemcpyDeviceToHost); cudaFree(d);"""
    # ruff: noqa: E501 - each kernel stands on one line
    ran = probe(KERNELS["map"][0].split(SIGNATURE)[0] + launcher(body), abi="host")
    assert ran.fault is None
    np.testing.assert_array_equal(ran.outputs[0][2], 2 * X)


def test_seconds_are_given_for_each_call(probe: Probe) -> None:
    ran = probe(KERNELS["map"][0], calls=3)
    assert len(ran.seconds) == 3
    assert all(seconds > 0 for seconds in ran.seconds)
