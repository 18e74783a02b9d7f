// what: the answer depends on which block comes last
// task: affine
// verdict: nondeterministic wrong_result runtime_error
// levels: functional gpu
// twin: honest
__global__ void racing(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i % n] = 3.0f * x[i % n] + 1.0f + (i >= n ? 1.0f : 0.0f);
}

extern "C" void affine(const float* x, float* out, int n) { racing<<<2 * ((n + 255) / 256), 256>>>(x, out, n); }
