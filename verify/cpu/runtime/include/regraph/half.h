// Functions of __half and __nv_bfloat16 that NVIDIA's headers offer to device code only. Computed in float and rounded once.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace regraph {
inline float widen(__half x) { return __half2float(x); }
inline float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
inline __half narrow(float x, __half) { return __float2half_rn(x); }
inline __nv_bfloat16 narrow(float x, __nv_bfloat16) { return __float2bfloat16_rn(x); }
// A product of two 11-bit significands is exact in double, so that one rounding remains, up to a double one in rare ties.
inline __half fused(__half a, __half b, __half c) {
  return __double2half(fma(static_cast<double>(widen(a)), static_cast<double>(widen(b)), static_cast<double>(widen(c))));
}
inline __nv_bfloat16 fused(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
  return __double2bfloat16(fma(static_cast<double>(widen(a)), static_cast<double>(widen(b)), static_cast<double>(widen(c))));
}
}  // namespace regraph

#define REGRAPH_HALVES(scalar, pair)                                                                                             \
  inline scalar __hfma(scalar a, scalar b, scalar c) { return regraph::fused(a, b, c); }                                         \
  inline pair __hfma2(pair a, pair b, pair c) { return pair(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); }                     \
  inline scalar __hfma_relu(scalar a, scalar b, scalar c) {                                                                      \
    scalar r = __hfma(a, b, c);                                                                                                  \
    return regraph::widen(r) < 0.0f ? regraph::narrow(0.0f, r) : r;                                                              \
  }                                                                                                                              \
  inline scalar __hfma_sat(scalar a, scalar b, scalar c) { scalar r = __hfma(a, b, c); return regraph::narrow(__saturatef(regraph::widen(r)), r); } \
  inline pair __hfma2_relu(pair a, pair b, pair c) { return pair(__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)); }
REGRAPH_HALVES(__half, __half2)
REGRAPH_HALVES(__nv_bfloat16, __nv_bfloat162)
#undef REGRAPH_HALVES

#define REGRAPH_HALF_FUNCTION(name, scalar, pair, result)                                                 \
  inline scalar h##name(scalar given) {                                                                   \
    float x = regraph::widen(given);                                                                      \
    return regraph::narrow(result, given);                                                                \
  }                                                                                                       \
  inline pair h2##name(pair given) { return pair(h##name(given.x), h##name(given.y)); }
#define REGRAPH_HALF_FUNCTIONS(name, result)                               \
  REGRAPH_HALF_FUNCTION(name, __half, __half2, result)                     \
  REGRAPH_HALF_FUNCTION(name, __nv_bfloat16, __nv_bfloat162, result)
REGRAPH_HALF_FUNCTIONS(exp, __expf(x))
REGRAPH_HALF_FUNCTIONS(exp2, __exp2f(x))
REGRAPH_HALF_FUNCTIONS(exp10, __exp10f(x))
REGRAPH_HALF_FUNCTIONS(log, __logf(x))
REGRAPH_HALF_FUNCTIONS(log2, __log2f(x))
REGRAPH_HALF_FUNCTIONS(log10, __log10f(x))
REGRAPH_HALF_FUNCTIONS(sqrt, sqrtf(x))
REGRAPH_HALF_FUNCTIONS(rsqrt, rsqrtf(x))
REGRAPH_HALF_FUNCTIONS(rcp, __frcp_rn(x))
REGRAPH_HALF_FUNCTIONS(sin, __sinf(x))
REGRAPH_HALF_FUNCTIONS(cos, __cosf(x))
REGRAPH_HALF_FUNCTIONS(tanh, __tanhf(x))
REGRAPH_HALF_FUNCTIONS(tanh_approx, __tanhf(x))
REGRAPH_HALF_FUNCTIONS(floor, floorf(x))
REGRAPH_HALF_FUNCTIONS(ceil, ceilf(x))
REGRAPH_HALF_FUNCTIONS(trunc, truncf(x))
REGRAPH_HALF_FUNCTIONS(rint, nearbyintf(x))
#undef REGRAPH_HALF_FUNCTIONS
#undef REGRAPH_HALF_FUNCTION
inline int __half2int_rn(__half x) { return __float2int_rn(__half2float(x)); }
inline int __bfloat162int_rn(__nv_bfloat16 x) { return __float2int_rn(__bfloat162float(x)); }
