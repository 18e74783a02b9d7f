// what: host pointers handed to a kernel as they are (a GPU with heterogeneous memory management runs it, others do not)
// task: affine_host
// verdict: runtime_error launch_error
// levels: functional
// twin: host_pointers
__global__ void affine_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 3.0f * x[i] + 1.0f;
}

extern "C" void affine_host(const float* x, float* out, int n) { affine_kernel<<<(n + 255) / 256, 256>>>(x, out, n); }
