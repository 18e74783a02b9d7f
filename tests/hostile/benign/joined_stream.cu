// what: a second stream that waits for the first and is waited for
// task: affine
// verdict: passed
// levels: functional gpu
__global__ void affine_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 3.0f * x[i] + 1.0f;
}

extern "C" void affine(const float* x, float* out, int n) {
    cudaStream_t side;
    cudaEvent_t before, after;
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&before, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&after, cudaEventDisableTiming);
    cudaEventRecord(before, 0);
    cudaStreamWaitEvent(side, before, 0);
    affine_kernel<<<(n + 255) / 256, 256, 0, side>>>(x, out, n);
    cudaEventRecord(after, side);
    cudaStreamWaitEvent(0, after, 0);
    cudaEventDestroy(before);
    cudaEventDestroy(after);
    cudaStreamDestroy(side);
}
