// what: an error-checking macro that prints and exits, as most code has it
// task: affine
// verdict: passed
// levels: functional gpu
#include <cstdio>
#include <cstdlib>
#include <iostream>
#define CHECK(call)                                                             \
    do {                                                                        \
        cudaError_t error = (call);                                             \
        if (error != cudaSuccess) {                                             \
            fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(EXIT_FAILURE);                                                 \
        }                                                                       \
    } while (0)

__global__ void affine_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 3.0f * x[i] + 1.0f;
}

extern "C" void affine(const float* x, float* out, int n) {
    affine_kernel<<<(n + 255) / 256, 256>>>(x, out, n);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
}
