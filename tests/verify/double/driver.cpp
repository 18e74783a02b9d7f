// A CUDA driver without a GPU, for the tests of everything around one: device memory is host memory, and the runner's own
// kernels are loops. Linked as libcuda.so.1 and found by the real runner (runner.cpp), which it lets run end to end.
#include <cuda.h>
#undef cuEventElapsedTime

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

static CUresult sticky = CUDA_SUCCESS;  // what a lost GPU or a faulting kernel leaves behind

// Called by a test's candidate: from now on the device answers with `result` only.
extern "C" void double_break(int result) { sticky = (CUresult)result; }
extern "C" int double_broken() { return sticky; }

extern "C" {
CUresult cuInit(unsigned) { return sticky; }
CUresult cuDriverGetVersion(int* version) { return *version = CUDA_VERSION, CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice* device, int index) { return *device = index, index ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS; }
CUresult cuDeviceGetName(char* name, int size, CUdevice) { return std::strncpy(name, "a double", size), CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute, CUdevice) { return *value = 1 << 10, CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) { return *context = (CUcontext)8, CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxSynchronize() { return sticky; }
CUresult cuCtxResetPersistingL2Cache() { return CUDA_SUCCESS; }
CUresult cuMemGetInfo(size_t* free, size_t* total) { return *free = *total = size_t(8) << 30, CUDA_SUCCESS; }
CUresult cuMemAlloc(CUdeviceptr* p, size_t n) { return *p = (CUdeviceptr)std::aligned_alloc(256, (n + 255) / 256 * 256), sticky; }
CUresult cuMemFree(CUdeviceptr p) { return std::free((void*)p), sticky; }
CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t n) { return std::memcpy((void*)to, from, n), sticky; }
CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t n) { return std::memcpy(to, (void*)from, n), sticky; }
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream) { return std::memcpy((void*)to, (void*)from, n), sticky; }
CUresult cuMemsetD32Async(CUdeviceptr p, unsigned value, size_t count, CUstream) {
    for (size_t k = 0; k < count; ++k) ((uint32_t*)p)[k] = value;
    return sticky;
}
CUresult cuStreamSynchronize(CUstream) { return sticky; }
CUresult cuEventCreate(CUevent* event, unsigned) { return *event = (CUevent) new double(0), CUDA_SUCCESS; }
CUresult cuEventRecord(CUevent event, CUstream) {
    *(double*)event = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
    return CUDA_SUCCESS;
}
CUresult cuEventSynchronize(CUevent) { return sticky; }
CUresult cuEventElapsedTime(float* milliseconds, CUevent a, CUevent b) { return *milliseconds = *(double*)b - *(double*)a, sticky; }
CUresult cuModuleLoad(CUmodule* module, const char*) { return *module = (CUmodule)8, sticky; }
CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) { return *function = (CUfunction) new std::string(name), sticky; }
CUresult cuGetErrorName(CUresult result, const char** name) {
    *name = result == CUDA_ERROR_ECC_UNCORRECTABLE ? "CUDA_ERROR_ECC_UNCORRECTABLE"
            : result == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                                   : "CUDA_ERROR_UNKNOWN";
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void** given, void**) {
    const std::string& name = *(const std::string*)function;
    if (name == "digest") {
        auto data = *(const unsigned char**)given[0];
        auto bytes = *(uint64_t*)given[1];
        auto out = *(unsigned long long**)given[2];
        for (uint64_t k = 0; k < bytes; ++k) out[0] += (data[k] + 1) * (k + 1), out[1] += (data[k] ^ 85) * (k * k + 3);
    } else if (name == "overwritten") {
        auto data = *(const uint32_t**)given[0];
        for (uint64_t k = 0; k < *(uint64_t*)given[1]; ++k) **(unsigned long long**)given[3] += data[k] != *(uint32_t*)given[2];
    } else if (name == "delay") {
        std::this_thread::sleep_for(std::chrono::nanoseconds(*(uint64_t*)given[0]));
    }
    return sticky;
}
}
