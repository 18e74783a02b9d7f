// The CUDA runtime's functions that allocate, copy, launch and register, defined in the runner itself: the loader binds the
// candidate's calls to these first. Each counts and calls the real one.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <link.h>

#include <cstring>

#include "driver.h"
#include "watch.h"

namespace regraph {

Watch watch;
void* runtime = nullptr;

template <class F>
static F real(const char* name) {
    F found = (F)dlsym(runtime, name);
    if (!found) fault("the CUDA runtime lacks a function", name);
    return found;
}

static void count_copy(size_t bytes, cudaMemcpyKind kind, const void* to, const void* from) {
    if (kind == cudaMemcpyDefault) {
        cudaPointerAttributes at;
        auto ask = real<cudaError_t (*)(cudaPointerAttributes*, const void*)>("cudaPointerGetAttributes");
        bool to_device = ask(&at, to) == cudaSuccess && at.type == cudaMemoryTypeDevice;
        bool from_device = ask(&at, from) == cudaSuccess && at.type == cudaMemoryTypeDevice;
        kind = to_device == from_device ? cudaMemcpyDeviceToDevice : to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    }
    if (kind == cudaMemcpyDeviceToHost) watch.to_host += bytes;
    if (kind == cudaMemcpyHostToDevice) watch.to_device += bytes;
}

struct Segment {
    char* start;
    std::vector<char> initial;
};
static std::vector<Segment> segments;

// Writable segments of the candidate's library, without the part that the loader made read-only.
static int collect(dl_phdr_info* object, size_t, void* wanted) {
    const std::string& path = *(const std::string*)wanted;
    if (!object->dlpi_name || path != object->dlpi_name) return 0;
    uintptr_t from = 0, to = 0;
    for (int k = 0; k < object->dlpi_phnum; ++k) {
        const auto& h = object->dlpi_phdr[k];
        if (h.p_type == PT_GNU_RELRO) from = object->dlpi_addr + h.p_vaddr, to = (from + h.p_memsz + 4095) & ~(uintptr_t)4095;
    }
    for (int k = 0; k < object->dlpi_phnum; ++k) {
        const auto& h = object->dlpi_phdr[k];
        if (h.p_type != PT_LOAD || !(h.p_flags & PF_W)) continue;
        uintptr_t start = object->dlpi_addr + h.p_vaddr, end = start + h.p_memsz;
        if (start >= from && start < to) start = to;
        if (start < end) segments.push_back({(char*)start, std::vector<char>((char*)start, (char*)end)});
    }
    return 1;
}

void remember_state(const std::string& library) {
    using Address = cudaError_t (*)(void**, const void*);
    using Copy = cudaError_t (*)(void*, const void*, size_t, cudaMemcpyKind);
    for (auto& v : watch.variables) {
        if (real<Address>("cudaGetSymbolAddress")(&v.device, v.host) != cudaSuccess) v.device = nullptr;
        if (!v.device || v.bytes > (size_t)1 << 30) continue;
        v.initial.resize(v.bytes);
        if (real<Copy>("cudaMemcpy")(v.initial.data(), v.device, v.bytes, cudaMemcpyDeviceToHost) != cudaSuccess) v.initial.clear();
    }
    runtime_error();
    segments.clear();
    dl_iterate_phdr(collect, (void*)&library);
    if (segments.empty()) fault("the candidate's variables are not found", library.c_str());
}

bool restore_state() {
    if (real<cudaError_t (*)()>("cudaDeviceSynchronize")() != cudaSuccess) return false;
    for (auto& s : watch.streams) real<cudaError_t (*)(cudaStream_t)>("cudaStreamDestroy")((cudaStream_t)s.first);
    for (auto& e : watch.events) real<cudaError_t (*)(cudaEvent_t)>("cudaEventDestroy")((cudaEvent_t)e.first);
    for (auto& m : watch.memory) real<cudaError_t (*)(void*)>(m.second.second == 1 ? "cudaFreeHost" : "cudaFree")(m.first);
    watch.streams.clear(), watch.events.clear(), watch.memory.clear();
    for (auto& v : watch.variables)
        if (!v.initial.empty())
            real<cudaError_t (*)(void*, const void*, size_t, cudaMemcpyKind)>("cudaMemcpy")(v.device, v.initial.data(), v.bytes, cudaMemcpyHostToDevice);
    for (auto& s : segments) std::memcpy(s.start, s.initial.data(), s.initial.size());
    return forget_counts();
}

bool forget_counts() {
    watch.launches = watch.to_host = watch.to_device = 0;
    runtime_error();
    return true;
}

size_t held_bytes() {
    size_t sum = 0;
    for (auto& m : watch.memory) sum += m.second.first;
    for (auto& v : watch.variables) sum += v.bytes;
    return sum;
}

bool streams_busy() {
    for (auto& s : watch.streams)
        if (real<cudaError_t (*)(cudaStream_t)>("cudaStreamQuery")((cudaStream_t)s.first) == cudaErrorNotReady) return true;
    return false;
}

const char* runtime_error() {
    cudaError_t error = real<cudaError_t (*)()>("cudaGetLastError")();
    return error == cudaSuccess ? nullptr : real<const char* (*)(cudaError_t)>("cudaGetErrorName")(error);
}

}  // namespace regraph

using namespace regraph;

// One shim: declared as the runtime declares it, counting in BODY, which sees `result` of the real call.
#define SHIM(name, parameters, arguments, body)                                                       \
    extern "C" cudaError_t CUDARTAPI name parameters {                                                \
        static auto call = real<cudaError_t(*) parameters>(#name);                                    \
        cudaError_t result = call arguments;                                                          \
        if (result == cudaSuccess) { body; }                                                          \
        return result;                                                                                \
    }

SHIM(cudaMalloc, (void** p, size_t n), (p, n), watch.memory[*p] = std::make_pair(n, 0))
SHIM(cudaMallocAsync, (void** p, size_t n, cudaStream_t s), (p, n, s), watch.memory[*p] = std::make_pair(n, 2))
SHIM(cudaMallocManaged, (void** p, size_t n, unsigned f), (p, n, f), watch.memory[*p] = std::make_pair(n, 0))
SHIM(cudaMallocPitch, (void** p, size_t* pitch, size_t w, size_t h), (p, pitch, w, h), watch.memory[*p] = std::make_pair(*pitch * h, 0))
SHIM(cudaMallocHost, (void** p, size_t n), (p, n), watch.memory[*p] = std::make_pair(n, 1))
SHIM(cudaHostAlloc, (void** p, size_t n, unsigned f), (p, n, f), watch.memory[*p] = std::make_pair(n, 1))
SHIM(cudaFree, (void* p), (p), watch.memory.erase(p))
SHIM(cudaFreeAsync, (void* p, cudaStream_t s), (p, s), watch.memory.erase(p))
SHIM(cudaFreeHost, (void* p), (p), watch.memory.erase(p))
SHIM(cudaMemcpy, (void* to, const void* from, size_t n, cudaMemcpyKind k), (to, from, n, k), count_copy(n, k, to, from))
SHIM(cudaMemcpyAsync, (void* to, const void* from, size_t n, cudaMemcpyKind k, cudaStream_t s), (to, from, n, k, s), count_copy(n, k, to, from))
SHIM(cudaMemcpy2D, (void* to, size_t tp, const void* from, size_t fp, size_t w, size_t h, cudaMemcpyKind k), (to, tp, from, fp, w, h, k),
     count_copy(w* h, k, to, from))
SHIM(cudaMemcpy2DAsync, (void* to, size_t tp, const void* from, size_t fp, size_t w, size_t h, cudaMemcpyKind k, cudaStream_t s),
     (to, tp, from, fp, w, h, k, s), count_copy(w* h, k, to, from))
SHIM(cudaMemcpyFromSymbol, (void* to, const void* symbol, size_t n, size_t o, cudaMemcpyKind k), (to, symbol, n, o, k),
     watch.to_host += k == cudaMemcpyDeviceToHost ? n : 0)
SHIM(cudaStreamCreate, (cudaStream_t * s), (s), watch.streams[*s] = true)
SHIM(cudaStreamCreateWithFlags, (cudaStream_t * s, unsigned f), (s, f), watch.streams[*s] = true)
SHIM(cudaStreamCreateWithPriority, (cudaStream_t * s, unsigned f, int p), (s, f, p), watch.streams[*s] = true)
SHIM(cudaEventCreateWithFlags, (cudaEvent_t * e, unsigned f), (e, f), watch.events[*e] = true)
SHIM(cudaEventCreate, (cudaEvent_t * e), (e), watch.events[*e] = true)
SHIM(cudaEventDestroy, (cudaEvent_t e), (e), watch.events.erase(e))
SHIM(cudaLaunchKernel, (const void* f, dim3 g, dim3 b, void** a, size_t m, cudaStream_t s), (f, g, b, a, m, s), ++watch.launches)
SHIM(cudaLaunchCooperativeKernel, (const void* f, dim3 g, dim3 b, void** a, size_t m, cudaStream_t s), (f, g, b, a, m, s), ++watch.launches)
SHIM(cudaLaunchKernelExC, (const cudaLaunchConfig_t* c, const void* f, void** a), (c, f, a), ++watch.launches)
SHIM(__cudaLaunchKernel, (cudaKernel_t f, dim3 g, dim3 b, void** a, size_t m, cudaStream_t s), (f, g, b, a, m, s), ++watch.launches)

// A stream that is destroyed while it still works goes on working: it stays watched until it is done.
extern "C" cudaError_t CUDARTAPI cudaStreamDestroy(cudaStream_t s) {
    static auto call = real<cudaError_t (*)(cudaStream_t)>("cudaStreamDestroy");
    static auto query = real<cudaError_t (*)(cudaStream_t)>("cudaStreamQuery");
    if (query(s) == cudaErrorNotReady) return cudaSuccess;  // destroyed by restore_state
    watch.streams.erase(s);
    return call(s);
}

extern "C" void CUDARTAPI __cudaRegisterVar(void** handle, char* host, char* device, const char* name, int ext, size_t size, int constant, int global) {
    watch.variables.push_back({host, size, nullptr, {}});
    real<void (*)(void**, char*, char*, const char*, int, size_t, int, int)>("__cudaRegisterVar")(handle, host, device, name, ext, size, constant, global);
}

// Refused: what would outlive a call or reach other candidates. The text screens refuse these first.
#define REFUSE(name, parameters) \
    extern "C" cudaError_t CUDARTAPI name parameters { return cudaErrorNotPermitted; }
REFUSE(cudaDeviceReset, ())
REFUSE(cudaDeviceSetLimit, (cudaLimit, size_t))
REFUSE(cudaStreamSetAttribute, (cudaStream_t, cudaStreamAttrID, const cudaStreamAttrValue*))
