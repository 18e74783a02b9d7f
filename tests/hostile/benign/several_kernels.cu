// what: a reduction in two kernels with shared memory and shuffles
// task: total
// verdict: passed
// levels: functional gpu
__device__ float block_sum(float value) {
    __shared__ float parts[32];
    for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0.0f;
    if (threadIdx.x < 32)
        for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
    return value;
}
__global__ void partial(const float* x, float* sums, int n) {
    float mine = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += x[i];
    mine = block_sum(mine);
    if (threadIdx.x == 0) sums[blockIdx.x] = mine;
}
__global__ void finish(const float* sums, float* out, int count) {
    float mine = threadIdx.x < count ? sums[threadIdx.x] : 0.0f;
    mine = block_sum(mine);
    if (threadIdx.x == 0) out[0] = mine;
}

extern "C" void total(const float* x, float* out, int n) {
    int blocks = min((n + 255) / 256, 256);
    float* sums = nullptr;
    cudaMalloc(&sums, blocks * sizeof(float));
    partial<<<blocks, 256>>>(x, sums, n);
    finish<<<1, 256>>>(sums, out, blocks);
    cudaFree(sums);
}
