// The CUDA runtime functions that a host launcher calls. Everything happens in program order on one stream.
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstring>

#include "counts.h"
#include "runtime.h"

using regraph::set_error;

namespace regraph {

static cudaError_t returned(cudaError_t code) {
  set_error(code);
  return code;
}

// Where a pointer of a copy leads; a device range must lie within one live allocation.
enum class Side { Host, Device, Broken };
static Side side_of(const void* pointer, size_t bytes) {
  if (!in_arena(pointer)) return Side::Host;
  const Allocation* allocation = allocation_at(pointer);
  const char* start = static_cast<const char*>(pointer);
  bool inside = allocation && allocation->live && start >= allocation->start && start + bytes <= allocation->start + allocation->bytes;
  return inside ? Side::Device : Side::Broken;
}

static bool is_argument(const void* pointer) {
  const Allocation* allocation = allocation_at(pointer);
  return allocation && allocation->argument;
}

static bool is_variable(const void* pointer) {
  const char* place = static_cast<const char*>(pointer);
  return place >= candidate.image && place < candidate.image_end && variable_at(static_cast<uint64_t>(place - candidate.base));
}

static bool kind_fits(Side to, Side from, bool to_variable, bool from_variable, int kind) {
  bool to_device = to == Side::Device || to_variable, from_device = from == Side::Device || from_variable;
  switch (kind) {
    case cudaMemcpyHostToHost: return to == Side::Host && from == Side::Host;
    case cudaMemcpyHostToDevice: return to_device && from == Side::Host;
    case cudaMemcpyDeviceToHost: return to == Side::Host && from_device;
    case cudaMemcpyDeviceToDevice: return to_device && from_device;
    default: return kind == cudaMemcpyDefault;
  }
}

int copy(void* to, const void* from, size_t bytes, int kind) {
  if (!bytes) return cudaSuccess;
  Side destination = side_of(to, bytes), source = side_of(from, bytes);
  if (destination == Side::Broken || source == Side::Broken) return returned(cudaErrorInvalidValue);
  if (!kind_fits(destination, source, is_variable(to), is_variable(from), kind)) return returned(cudaErrorInvalidValue);
  if (destination == Side::Device && source == Side::Host && !is_variable(from) && is_argument(to)) usage.host_to_argument += bytes;
  if (destination == Side::Host && is_argument(from)) usage.argument_to_host += bytes;
  if (destination == Side::Device && source == Side::Device) usage.set_on_device += bytes;
  open_device();
  memmove(to, from, bytes);
  close_device();
  return cudaSuccess;
}

static cudaError_t set_bytes(void* place, int value, size_t bytes) {
  if (!bytes) return cudaSuccess;
  if (side_of(place, bytes) != Side::Device && !is_variable(place)) return returned(cudaErrorInvalidValue);
  open_device();
  memset(place, value, bytes);
  close_device();
  usage.set_on_device += bytes;
  if (options.counted) counts_memset(bytes);
  return cudaSuccess;
}

static cudaError_t make(void** place, size_t bytes, bool managed) {
  if (!place) return returned(cudaErrorInvalidValue);
  *place = bytes ? allocate(bytes, false, managed) : nullptr;
  return *place || !bytes ? cudaSuccess : returned(cudaErrorMemoryAllocation);
}

static cudaError_t give_back(void* pointer) { return !pointer || release(pointer) ? cudaSuccess : returned(cudaErrorInvalidValue); }

struct Event {
  std::chrono::steady_clock::time_point when;
};

static cudaError_t attribute(int* value, cudaDeviceAttr which) {
  switch (which) {
    case cudaDevAttrMaxThreadsPerBlock: case cudaDevAttrMaxBlockDimX: case cudaDevAttrMaxBlockDimY: *value = 1024; break;
    case cudaDevAttrMaxBlockDimZ: *value = 64; break;
    case cudaDevAttrMaxGridDimX: *value = 0x7fffffff; break;
    case cudaDevAttrMaxGridDimY: case cudaDevAttrMaxGridDimZ: *value = 65535; break;
    case cudaDevAttrWarpSize: *value = 32; break;
    case cudaDevAttrMultiProcessorCount: *value = options.multiprocessors; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = 49152; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = 232448; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = 233472; break;
    case cudaDevAttrMaxRegistersPerBlock: case cudaDevAttrMaxRegistersPerMultiprocessor: *value = 65536; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = 2048; break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *value = 32; break;
    case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
    case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
    case cudaDevAttrL2CacheSize: *value = 50 << 20; break;
    case cudaDevAttrClockRate: *value = 1980000; break;
    case cudaDevAttrMemoryPoolsSupported: case cudaDevAttrManagedMemory: case cudaDevAttrUnifiedAddressing: *value = 1; break;
    default: *value = 0;
  }
  return cudaSuccess;
}

}  // namespace regraph

using namespace regraph;

extern "C" {

cudaError_t cudaMalloc(void** place, size_t bytes) { return make(place, bytes, false); }
cudaError_t cudaMallocAsync(void** place, size_t bytes, cudaStream_t) { return make(place, bytes, false); }
cudaError_t cudaMallocManaged(void** place, size_t bytes, unsigned) { return make(place, bytes, true); }
cudaError_t cudaMallocPitch(void** place, size_t* pitch, size_t width, size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return make(place, *pitch * height, false);
}
cudaError_t cudaFree(void* pointer) { return give_back(pointer); }
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) { return give_back(pointer); }
cudaError_t cudaMallocHost(void** place, size_t bytes) {
  *place = malloc(bytes ? bytes : 1);
  return *place ? cudaSuccess : returned(cudaErrorMemoryAllocation);
}
cudaError_t cudaHostAlloc(void** place, size_t bytes, unsigned) { return cudaMallocHost(place, bytes); }
cudaError_t cudaFreeHost(void* pointer) {
  free(pointer);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void*, size_t, unsigned) { return cudaSuccess; }
cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) { return static_cast<cudaError_t>(copy(to, from, bytes, kind)); }
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t) { return cudaMemcpy(to, from, bytes, kind); }
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, cudaMemcpyKind kind) {
  for (size_t row = 0; row < height; row++) {
    cudaError_t code = cudaMemcpy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width, kind);
    if (code) return code;
  }
  return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}
cudaError_t cudaMemset(void* place, int value, size_t bytes) { return set_bytes(place, value, bytes); }
cudaError_t cudaMemsetAsync(void* place, int value, size_t bytes, cudaStream_t) { return set_bytes(place, value, bytes); }
cudaError_t cudaMemset2D(void* place, size_t pitch, int value, size_t width, size_t height) {
  for (size_t row = 0; row < height; row++) {
    cudaError_t code = set_bytes(static_cast<char*>(place) + row * pitch, value, width);
    if (code) return code;
  }
  return cudaSuccess;
}
cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation) { return cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* all) {
  *free_bytes = options.arena / 2;
  *all = options.arena;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() { return static_cast<cudaError_t>(last_error()); }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return static_cast<cudaError_t>(last_error()); }
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGetLastError() { return static_cast<cudaError_t>(take_error()); }
cudaError_t cudaPeekAtLastError() { return static_cast<cudaError_t>(last_error()); }
const char* cudaGetErrorName(cudaError_t code) {
  switch (code) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    default: return "cudaErrorUnknown";
  }
}
const char* cudaGetErrorString(cudaError_t code) {
  switch (code) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    default: return "unknown error";
  }
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = reinterpret_cast<cudaStream_t>(new char);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return cudaStreamCreate(stream); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) { return cudaStreamCreate(stream); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete reinterpret_cast<char*>(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = reinterpret_cast<cudaEvent_t>(new Event);
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  reinterpret_cast<Event*>(event)->when = std::chrono::steady_clock::now();
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  auto elapsed = reinterpret_cast<Event*>(end)->when - reinterpret_cast<Event*>(start)->when;
  *milliseconds = std::chrono::duration<float, std::milli>(elapsed).count();
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete reinterpret_cast<Event*>(event);
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return device ? returned(cudaErrorInvalidDevice) : cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) { return attribute(value, which); }
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  strcpy(properties->name, "regraph CPU level");
  properties->totalGlobalMem = options.arena;
  properties->sharedMemPerBlock = 49152;
  properties->sharedMemPerBlockOptin = 232448;
  properties->sharedMemPerMultiprocessor = 233472;
  properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->maxBlocksPerMultiProcessor = 32;
  properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024;
  properties->maxThreadsDim[2] = 64;
  properties->maxGridSize[0] = 0x7fffffff;
  properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
  properties->multiProcessorCount = options.multiprocessors;
  properties->major = 9;
  properties->l2CacheSize = 50 << 20;
  return cudaSuccess;
}
}
