// Built-in variables, and kernel<<<grid, block, shared, stream>>>(arguments) as the translator rewrites it.
#pragma once
#include <regraph/interface.h>

// Read-only for the candidate (uint3 all: a dim3 has a constructor, so no compiler takes it for constant), so that the compiler keeps them in registers and does not instrument them. The runtime sets
// them whenever another simulated thread goes on; they live in the candidate's own library (anchor.cpp).
extern __attribute__((visibility("hidden"))) const uint3 threadIdx;
extern __attribute__((visibility("hidden"))) const uint3 blockIdx;
extern __attribute__((visibility("hidden"))) const uint3 blockDim;
extern __attribute__((visibility("hidden"))) const uint3 gridDim;
constexpr int warpSize = 32;

namespace regraph {

template <class Result, class... Parameters>
inline const void* address(Result (*kernel)(Parameters...)) {
  return reinterpret_cast<const void*>(kernel);
}

template <class Body>
__attribute__((no_sanitize("thread"), no_sanitize_coverage)) void call_body(void* body) {
  (*static_cast<Body*>(body))();
}

class Launch {
 public:
  Launch(unsigned line, const char* kernel, const void* address, dim3 grid, dim3 block, size_t shared = 0, cudaStream_t = nullptr)
      : configuration_{kernel, address, line, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared} {}

  template <class Call, class... Arguments>
  __attribute__((no_sanitize("thread"), no_sanitize_coverage)) void operator()(Call call, Arguments... arguments) {
    auto body = [&]() __attribute__((no_sanitize("thread"), no_sanitize_coverage)) { call(arguments...); };
    launch(configuration_, call_body<decltype(body)>, &body);
  }

 private:
  Configuration configuration_;
};

template <class T>
inline T* dynamic_shared_as() {
  return static_cast<T*>(dynamic_shared());
}

}  // namespace regraph
// The call operator of a launch runs on the simulated thread but reads its arguments from the host's stack: not instrumented.
#define REGRAPH_CALL(...) [&](auto... regraph_argument) __attribute__((no_sanitize("thread"), no_sanitize_coverage)) { __VA_ARGS__(regraph_argument...); }
