// what: one value everywhere
// task: affine
// verdict: wrong_result
// levels: functional gpu
// twin: honest
__global__ void affine_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 1.0f;
}

extern "C" void affine(const float* x, float* out, int n) { affine_kernel<<<(n + 255) / 256, 256>>>(x, out, n); }
