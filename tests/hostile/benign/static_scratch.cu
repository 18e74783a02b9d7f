// what: scratch memory that is allocated at the first call and kept
// task: affine
// verdict: passed
// levels: gpu
__global__ void triple(const float* x, float* t, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) t[i] = 3.0f * x[i];
}
__global__ void add_one(const float* t, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = t[i] + 1.0f;
}

extern "C" void affine(const float* x, float* out, int n) {
    static float* scratch = nullptr;
    static int room = 0;
    if (n > room) {
        if (scratch) cudaFree(scratch);
        cudaMalloc(&scratch, n * sizeof(float));
        room = n;
    }
    triple<<<(n + 255) / 256, 256>>>(x, scratch, n);
    add_one<<<(n + 255) / 256, 256>>>(scratch, out, n);
}
