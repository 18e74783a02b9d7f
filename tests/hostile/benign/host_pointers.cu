// what: host pointers, as the task wants them: the candidate allocates, copies in, launches, copies back and frees
// task: affine_host
// verdict: passed
// levels: functional gpu
__global__ void affine_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 3.0f * x[i] + 1.0f;
}

extern "C" void affine_host(const float* x, float* out, int n) {
    float* device = nullptr;
    size_t bytes = sizeof(float) * n;
    cudaMalloc((void**)&device, 2 * bytes);
    cudaMemcpy(device, x, bytes, cudaMemcpyHostToDevice);
    affine_kernel<<<(n + 255) / 256, 256>>>(device, device + n, n);
    cudaMemcpy(out, device + n, bytes, cudaMemcpyDeviceToHost);
    cudaFree(device);
}
