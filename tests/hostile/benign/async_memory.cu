// what: memory of the stream's pool and an asynchronous fill
// task: histogram
// verdict: passed
// levels: functional gpu
__global__ void count(const int* keys, int* counts, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&counts[keys[i]], 1);
}

extern "C" void histogram(const int* keys, int* counts, int n) {
    int* mine = nullptr;
    cudaMallocAsync(&mine, 64 * sizeof(int), 0);
    cudaMemsetAsync(mine, 0, 64 * sizeof(int), 0);
    count<<<min((n + 255) / 256, 256), 256>>>(keys, mine, n);
    cudaMemcpyAsync(counts, mine, 64 * sizeof(int), cudaMemcpyDeviceToDevice, 0);
    cudaFreeAsync(mine, 0);
}
