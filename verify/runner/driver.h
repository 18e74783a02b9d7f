// The CUDA driver, found at run time and kept in private pointers: the runner never calls the runtime that candidates use.
#pragma once
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace regraph {

[[noreturn]] inline void fault(const char* what, const char* detail) {
    std::fprintf(stderr, "fault: %s: %s\n", what, detail ? detail : "");
    std::_Exit(70);
}

struct DriverError {
    const char* what;
    const char* name;
};

#define REGRAPH_STRING_(x) #x
#define REGRAPH_STRING(x) REGRAPH_STRING_(x)
#define REGRAPH_DRIVER(call)                                                                                         \
    call(cuInit) call(cuDeviceGet) call(cuDevicePrimaryCtxRetain) call(cuCtxSetCurrent) call(cuCtxSynchronize)        \
    call(cuMemAlloc) call(cuMemFree) call(cuMemGetInfo) call(cuMemcpyHtoD) call(cuMemcpyDtoH) call(cuMemcpyDtoDAsync) \
    call(cuMemsetD32Async) call(cuEventCreate) call(cuEventRecord) call(cuEventSynchronize)                           \
    call(cuModuleLoad) call(cuModuleGetFunction) call(cuLaunchKernel) call(cuGetErrorName) call(cuDeviceGetAttribute) \
    call(cuDriverGetVersion) call(cuDeviceGetName) call(cuStreamSynchronize)

struct Driver {
#define REGRAPH_FIELD(name) decltype(&::name) name##_;
    REGRAPH_DRIVER(REGRAPH_FIELD)
#undef REGRAPH_FIELD
    decltype(&::cuCtxResetPersistingL2Cache) reset_l2 = nullptr;
    CUresult (*elapsed)(float*, CUevent, CUevent) = nullptr;

    Driver() {
        void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
        if (!library) fault("no driver", dlerror());
#define REGRAPH_FIND(name)                                                       \
    name##_ = (decltype(&::name))dlsym(library, REGRAPH_STRING(name));            \
    if (!name##_) fault("the driver lacks a function", REGRAPH_STRING(name));
        REGRAPH_DRIVER(REGRAPH_FIND)
#undef REGRAPH_FIND
        reset_l2 = (decltype(reset_l2))dlsym(library, "cuCtxResetPersistingL2Cache");
        elapsed = (decltype(elapsed))dlsym(library, "cuEventElapsedTime");
        if (!elapsed) fault("the driver lacks a function", "cuEventElapsedTime");
    }

    const char* name(CUresult result) const {
        const char* text = nullptr;
        cuGetErrorName_(result, &text);
        return text ? text : "unknown";
    }

    // Throws DriverError: our own fault, unless a candidate ran before and the device's error is its own.
    void must(CUresult result, const char* what) const {
        if (result != CUDA_SUCCESS) throw DriverError{what, name(result)};
    }
};

}  // namespace regraph
