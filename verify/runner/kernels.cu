// Our own device code: digests of arrays, the guard count, a delay, and the two kernels that measure a GPU's peaks.
// Compiled to a cubin and loaded through the driver, so that nothing of it can be interposed.
#include <cstdint>

__device__ inline uint64_t mixed(uint64_t x) {  // the finaliser of splitmix64
    x ^= x >> 30, x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27, x *= 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

// Adds to out[0], out[1] two sums over (place, word): equal arrays give equal digests, whatever the order of blocks.
extern "C" __global__ void digest(const uint32_t* data, uint64_t bytes, unsigned long long* out) {
    uint64_t words = (bytes + 3) / 4, first = 0, second = 0;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < words; i += (uint64_t)gridDim.x * blockDim.x) {
        uint32_t word = data[i];
        if (i == words - 1 && bytes % 4) word &= (1u << (8 * (bytes % 4))) - 1;
        uint64_t value = mixed(((uint64_t)word << 32 | (uint32_t)i) + 0x9e3779b97f4a7c15ull * (i + 1));
        first += value, second += mixed(value ^ 0xd1b54a32d192ed03ull);
    }
    for (int step = 16; step; step /= 2) {
        first += __shfl_down_sync(0xffffffffu, first, step);
        second += __shfl_down_sync(0xffffffffu, second, step);
    }
    if (threadIdx.x % 32 == 0) atomicAdd(out, first), atomicAdd(out + 1, second);
}

// Counts words that are not `value`: writes into the space between arrays.
extern "C" __global__ void overwritten(const uint32_t* data, uint64_t words, uint32_t value, unsigned long long* out) {
    uint64_t found = 0;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < words; i += (uint64_t)gridDim.x * blockDim.x)
        found += data[i] != value;
    if (found) atomicAdd(out, found);
}

// Keeps the default stream busy, so that work which does not wait for it runs too early and is seen.
extern "C" __global__ void delay(uint64_t nanoseconds) {
    uint64_t start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < nanoseconds);
}

extern "C" __global__ void copy(const uint4* from, uint4* to, uint64_t count) {
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count; i += (uint64_t)gridDim.x * blockDim.x) to[i] = from[i];
}

extern "C" __global__ void empty() {}

// 16 independent chains of fused multiply-adds a thread: 2 * 16 * rounds operations.
extern "C" __global__ void multiply_add(float* out, float a, float b, int rounds) {
    float x[16];
#pragma unroll
    for (int k = 0; k < 16; ++k) x[k] = threadIdx.x + k;
    for (int r = 0; r < rounds; ++r)
#pragma unroll
        for (int k = 0; k < 16; ++k) x[k] = __fmaf_rn(x[k], a, b);
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 16; ++k) sum += x[k];
    if (sum == 12345.678f) out[threadIdx.x] = sum;
}
