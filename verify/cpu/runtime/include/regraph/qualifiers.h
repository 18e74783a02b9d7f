// What nvcc's keywords mean to a C++ compiler. Included after NVIDIA's headers, which have their own host meanings for them.
#pragma once
#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __managed__
#undef __forceinline__
#undef __noinline__
#undef __launch_bounds__
#undef __maxnreg__
#undef __cluster_dims__
#undef __grid_constant__
#undef __restrict__
// Kernels stay functions of their own, so that an address always leads back to its kernel.
#define __global__ __attribute__((noinline))
#define __device__
#define __host__
// One block runs at a time on one OS thread: thread-local storage is the block's shared memory, a segment of its own whose
// variables the symbol table lists with their sizes.
#define __shared__ static thread_local
#define __constant__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __grid_constant__
#define __restrict__ __restrict
#define __builtin_assume(condition)

// Functions of ours that must not be seen by the instrumentation.
#define REGRAPH_RAW __attribute__((no_sanitize("thread"), no_sanitize_coverage, noinline))
// Functions that vanish into their callers, so that a fault in them has the caller's line.
#define REGRAPH_INLINE inline __attribute__((always_inline))
// Space between two shared variables, so that running past one is not reading the next. The translator places these.
#define REGRAPH_JOIN_(a, b) a##b
#define REGRAPH_JOIN(a, b) REGRAPH_JOIN_(a, b)
#define REGRAPH_RED_ZONE static thread_local ::regraph::RedZone REGRAPH_JOIN(regraph_red_zone_, __COUNTER__) __attribute__((used));
namespace regraph {
struct alignas(16) RedZone {
  char bytes[256];
};
}  // namespace regraph
