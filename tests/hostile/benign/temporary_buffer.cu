// what: a temporary buffer, allocated and freed in the call
// task: affine
// verdict: passed
// levels: functional gpu
__global__ void triple(const float* x, float* t, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) t[i] = 3.0f * x[i];
}
__global__ void add_one(const float* t, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = t[i] + 1.0f;
}

extern "C" void affine(const float* x, float* out, int n) {
    float* t = nullptr;
    cudaMalloc(&t, n * sizeof(float));
    triple<<<(n + 255) / 256, 256>>>(x, t, n);
    add_one<<<(n + 255) / 256, 256>>>(t, out, n);
    cudaFree(t);
}
