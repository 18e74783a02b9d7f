// what: float4 loads where the pointers allow it, and the rest by one kernel
// task: affine
// verdict: passed
// levels: functional gpu
__global__ void wide(const float4* x, float4* out, int quarters, const float* tail, float* tail_out, int rest) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < quarters) {
        float4 v = x[i];
        out[i] = make_float4(3.0f * v.x + 1.0f, 3.0f * v.y + 1.0f, 3.0f * v.z + 1.0f, 3.0f * v.w + 1.0f);
    }
    if (i < rest) tail_out[i] = 3.0f * tail[i] + 1.0f;
}

extern "C" void affine(const float* x, float* out, int n) {
    int quarters = n / 4, rest = n % 4;
    wide<<<quarters / 256 + 1, 256>>>((const float4*)x, (float4*)out, quarters, x + 4 * quarters, out + 4 * quarters, rest);
}
