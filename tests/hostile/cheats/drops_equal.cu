// what: equal keys are dropped: right for mixed data only
// task: histogram
// verdict: wrong_result
// levels: functional gpu
// twin: shared_atomics
__global__ void clear(int* counts) { counts[threadIdx.x] = 0; }
__global__ void count(const int* keys, int* counts, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && !(i >= 8 && keys[i] == keys[i - 1] && keys[i] == keys[i - 2] && keys[i] == keys[i - 8])) atomicAdd(&counts[keys[i]], 1);
}

extern "C" void histogram(const int* keys, int* counts, int n) {
    clear<<<1, 64>>>(counts);
    count<<<(n + 255) / 256, 256>>>(keys, counts, n);
}
