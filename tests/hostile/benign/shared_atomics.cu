// what: a histogram with atomics in shared memory
// task: histogram
// verdict: passed
// levels: functional gpu
__global__ void clear(int* counts) { counts[threadIdx.x] = 0; }
__global__ void count(const int* keys, int* counts, int n) {
    __shared__ int mine[64];
    if (threadIdx.x < 64) mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&mine[keys[i]], 1);
    __syncthreads();
    if (threadIdx.x < 64) atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
}

extern "C" void histogram(const int* keys, int* counts, int n) {
    clear<<<1, 64>>>(counts);
    count<<<min((n + 255) / 256, 256), 256>>>(keys, counts, n);
}
