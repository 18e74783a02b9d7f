// what: a write just behind the output
// task: affine
// verdict: runtime_error
// levels: functional gpu
// twin: honest
__global__ void affine_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) out[i] = 3.0f * x[min(i, n - 1)] + 1.0f;
}

extern "C" void affine(const float* x, float* out, int n) { affine_kernel<<<n / 256 + 1, 256>>>(x, out, n); }
