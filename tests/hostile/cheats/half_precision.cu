// what: half precision inside a float task
// task: affine
// verdict: wrong_result
// levels: functional gpu
// twin: honest
#include <cuda_fp16.h>

__global__ void affine_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __half2float(__hadd(__hmul(__float2half(3.0f), __float2half(x[i])), __float2half(1.0f)));
}

extern "C" void affine(const float* x, float* out, int n) { affine_kernel<<<(n + 255) / 256, 256>>>(x, out, n); }
