// A CUDA runtime to go with driver.cpp: what the tests' candidates and the runner's shims ask for. A kernel is a host function
// that is handed its argument array.
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>

extern "C" int double_broken();

static cudaError_t state() { return double_broken() ? cudaErrorUnknown : cudaSuccess; }

extern "C" {
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorName(cudaError_t) { return "cudaErrorUnknown"; }
cudaError_t cudaDeviceSynchronize() { return state(); }
cudaError_t cudaMalloc(void** p, size_t n) { return *p = std::malloc(n), state(); }
cudaError_t cudaFree(void* p) { return std::free(p), state(); }
cudaError_t cudaMemcpy(void* to, const void* from, size_t n, cudaMemcpyKind) { return std::memcpy(to, from, n), state(); }
cudaError_t cudaLaunchKernel(const void* kernel, dim3, dim3, void** arguments, size_t, cudaStream_t) {
    return ((void (*)(void**))kernel)(arguments), state();
}
}
