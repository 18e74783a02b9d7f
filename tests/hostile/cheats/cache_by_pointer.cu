// what: work is skipped for pointers that were seen before
// task: affine
// verdict: wrong_result
// levels: gpu
// twin: static_scratch
#include <set>

__global__ void affine_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 3.0f * x[i] + 1.0f;
}

__global__ void nothing() {}

extern "C" void affine(const float* x, float* out, int n) {
    static std::set<const void*> seen;
    if (seen.insert(out).second) affine_kernel<<<(n + 255) / 256, 256>>>(x, out, n);
    else nothing<<<1, 1>>>();
}
