// what: a read past the end of shared memory, in the hope of zeros
// task: total
// verdict: runtime_error wrong_result
// levels: functional
// twin: several_kernels
__global__ void sum(const float* x, float* out, int n) {
    __shared__ float parts[200];
    float mine = 0.0f;
    for (int i = threadIdx.x; i < n; i += 200) mine += x[i];
    parts[threadIdx.x] = mine;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step) parts[threadIdx.x] += parts[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[0] = parts[0];
}

extern "C" void total(const float* x, float* out, int n) { sum<<<1, 200>>>(x, out, n); }
