// what: host pointers, and the last element is not copied back
// task: affine_host
// verdict: wrong_result
// levels: functional gpu
// twin: host_pointers
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
    cudaMemcpy(out, device + n, bytes - sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(device);
}
