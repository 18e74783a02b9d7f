// what: a constant table and a device counter that each call sets anew
// task: affine
// verdict: passed
// levels: functional gpu
__constant__ float coefficients[2] = {3.0f, 1.0f};
__device__ int written;

__global__ void reset() { written = 0; }
__global__ void apply(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = coefficients[0] * x[i] + coefficients[1];
    atomicAdd(&written, 1);
}

extern "C" void affine(const float* x, float* out, int n) {
    reset<<<1, 1>>>();
    apply<<<(n + 255) / 256, 256>>>(x, out, n);
}
