// what: a sum of every second element, scaled: right on average
// task: total
// verdict: wrong_result
// levels: functional gpu
// twin: several_kernels
__global__ void sample(const float* x, float* out, int n) {
    __shared__ float parts[256];
    float mine = 0.0f;
    for (int i = 2 * threadIdx.x; i < n; i += 512) mine += x[i];
    parts[threadIdx.x] = mine;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step) parts[threadIdx.x] += parts[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[0] = parts[0] * n / ((n + 1) / 2);
}

extern "C" void total(const float* x, float* out, int n) { sample<<<1, 256>>>(x, out, n); }
