// Templates over the runtime library's C functions, as <cuda_runtime.h> has them, and symbols.
#pragma once
#include <cuda_runtime_api.h>

template <class T>
inline cudaError_t cudaMalloc(T** place, size_t bytes) { return ::cudaMalloc(reinterpret_cast<void**>(place), bytes); }
template <class T>
inline cudaError_t cudaMallocAsync(T** place, size_t bytes, cudaStream_t stream) { return ::cudaMallocAsync(reinterpret_cast<void**>(place), bytes, stream); }
template <class T>
inline cudaError_t cudaMallocHost(T** place, size_t bytes, unsigned = 0) { return ::cudaMallocHost(reinterpret_cast<void**>(place), bytes); }
template <class T>
inline cudaError_t cudaHostAlloc(T** place, size_t bytes, unsigned flags) { return ::cudaHostAlloc(reinterpret_cast<void**>(place), bytes, flags); }
template <class T>
inline cudaError_t cudaMallocManaged(T** place, size_t bytes, unsigned flags = cudaMemAttachGlobal) { return ::cudaMallocManaged(reinterpret_cast<void**>(place), bytes, flags); }
template <class T>
inline cudaError_t cudaMallocPitch(T** place, size_t* pitch, size_t width, size_t height) { return ::cudaMallocPitch(reinterpret_cast<void**>(place), pitch, width, height); }

inline cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned flags) { return cudaEventCreateWithFlags(event, flags); }

template <class T>
inline cudaError_t cudaMemcpyToSymbol(T& symbol, const void* from, size_t bytes, size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  return static_cast<cudaError_t>(regraph::copy(reinterpret_cast<char*>(const_cast<std::remove_cv_t<T>*>(&symbol)) + offset, from, bytes, kind));
}
template <class T>
inline cudaError_t cudaMemcpyToSymbolAsync(T& symbol, const void* from, size_t bytes, size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyHostToDevice, cudaStream_t = nullptr) {
  return cudaMemcpyToSymbol(symbol, from, bytes, offset, kind);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbol(void* to, T& symbol, size_t bytes, size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  return static_cast<cudaError_t>(regraph::copy(to, reinterpret_cast<const char*>(&symbol) + offset, bytes, kind));
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbolAsync(void* to, T& symbol, size_t bytes, size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyDeviceToHost, cudaStream_t = nullptr) {
  return cudaMemcpyFromSymbol(to, symbol, bytes, offset, kind);
}
template <class T>
inline cudaError_t cudaGetSymbolAddress(void** place, T& symbol) {
  *place = const_cast<void*>(reinterpret_cast<const void*>(&symbol));
  return cudaSuccess;
}
template <class T>
inline cudaError_t cudaGetSymbolSize(size_t* bytes, const T& symbol) {
  *bytes = sizeof symbol;
  return cudaSuccess;
}

template <class F>
inline cudaError_t cudaFuncSetAttribute(F* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  return static_cast<cudaError_t>(regraph::set_dynamic_shared_limit(reinterpret_cast<const void*>(kernel), value));
}
template <class F>
inline cudaError_t cudaFuncSetCacheConfig(F*, cudaFuncCache) { return cudaSuccess; }
template <class F>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, F*) {
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  return cudaSuccess;
}
template <class F>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, F, int threads, size_t shared) {
  *blocks = regraph::occupancy(threads, shared);
  return cudaSuccess;
}
template <class F>
inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int* least_grid, int* block, F, size_t shared = 0, int limit = 0) {
  *block = limit > 0 && limit < 256 ? limit : 256;
  int multiprocessors = 0;
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0);
  *least_grid = multiprocessors * regraph::occupancy(*block, shared);
  return cudaSuccess;
}

namespace regraph {
template <class... Parameters, size_t... Index>
inline void launch_from_array(Launch launch, void (*kernel)(Parameters...), void** arguments, std::index_sequence<Index...>) {
  launch(REGRAPH_CALL(kernel), *static_cast<std::remove_reference_t<Parameters>*>(arguments[Index])...);
}
}  // namespace regraph
template <class... Parameters>
inline cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments, size_t shared = 0, cudaStream_t stream = nullptr) {
  regraph::launch_from_array(regraph::Launch(0, "cudaLaunchKernel", regraph::address(kernel), grid, block, shared, stream), kernel, arguments,
                             std::index_sequence_for<Parameters...>{});
  return cudaPeekAtLastError();
}
