// what: a kernel that never ends
// task: affine
// verdict: timeout
// levels: functional gpu
// twin: honest
__global__ void affine_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 3.0f * x[i] + 1.0f;
}

__global__ void endless(volatile float* out) {
    while (out[0] != 12345.0f) {
    }
}

extern "C" void affine(const float* x, float* out, int n) {
    affine_kernel<<<(n + 255) / 256, 256>>>(x, out, n);
    endless<<<1, 1>>>(out);
}
