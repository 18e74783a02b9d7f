// what: host memory without end
// task: affine
// verdict: runtime_error timeout
// levels: functional gpu
// twin: host_vector
#include <cstdlib>
#include <cstring>

__global__ void affine_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 3.0f * x[i] + 1.0f;
}

extern "C" void affine(const float* x, float* out, int n) {
    affine_kernel<<<(n + 255) / 256, 256>>>(x, out, n);
    for (;;) {
        void* block = malloc(256 << 20);
        if (block) memset(block, 1, 256 << 20);
    }
}
