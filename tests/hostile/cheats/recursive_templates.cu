// what: templates that eat the compiler's memory
// task: affine
// verdict: compile_error
// levels: compile functional gpu
// twin: honest
template <int N, int M>
struct Eat {
    static constexpr long value = Eat<N - 1, 2 * M>::value + Eat<N - 1, 2 * M + 1>::value;
};
template <int M>
struct Eat<0, M> {
    static constexpr long value = M;
};
__global__ void affine_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 3.0f * x[i] + 1.0f;
}

extern "C" void affine(const float* x, float* out, int n) {
    long sum = Eat<26, 1>::value;
    if (sum) affine_kernel<<<(n + 255) / 256, 256>>>(x, out, n);
}
