// Device functions on numbers that C++ does not have. Fast intrinsics compute the exact function: closer than a GPU's.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

// CUDA's own overloads; not templates, so that they win over std::min and std::max.
#define REGRAPH_EXTREMES(result, left, right)        \
  constexpr result min(left a, right b) {             \
    result first = a, second = b;                     \
    return second < first ? second : first;           \
  }                                                   \
  constexpr result max(left a, right b) {             \
    result first = a, second = b;                     \
    return first < second ? second : first;           \
  }
REGRAPH_EXTREMES(int, int, int)
REGRAPH_EXTREMES(unsigned, unsigned, unsigned)
REGRAPH_EXTREMES(unsigned, int, unsigned)
REGRAPH_EXTREMES(unsigned, unsigned, int)
REGRAPH_EXTREMES(long, long, long)
REGRAPH_EXTREMES(unsigned long, unsigned long, unsigned long)
REGRAPH_EXTREMES(unsigned long, long, unsigned long)
REGRAPH_EXTREMES(unsigned long, unsigned long, long)
REGRAPH_EXTREMES(long long, long long, long long)
REGRAPH_EXTREMES(unsigned long long, unsigned long long, unsigned long long)
REGRAPH_EXTREMES(unsigned long long, long long, unsigned long long)
REGRAPH_EXTREMES(unsigned long long, unsigned long long, long long)
#undef REGRAPH_EXTREMES
// A NaN loses against a number, as fminf and fmaxf have it.
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline double min(float a, double b) { return fmin(a, b); }
inline double max(float a, double b) { return fmax(a, b); }
inline double min(double a, float b) { return fmin(a, b); }
inline double max(double a, float b) { return fmax(a, b); }
inline unsigned umin(unsigned a, unsigned b) { return min(a, b); }
inline unsigned umax(unsigned a, unsigned b) { return max(a, b); }

// Functions that a GPU computes in its special-function units. Under the model they stay calls, to be counted as such.
#ifdef REGRAPH_COUNTED
#define REGRAPH_SPECIAL static REGRAPH_RAW __attribute__((unused))
#else
#define REGRAPH_SPECIAL inline
#endif
REGRAPH_SPECIAL float regraph_special_exp(float x) { return expf(x); }
REGRAPH_SPECIAL float regraph_special_exp2(float x) { return exp2f(x); }
REGRAPH_SPECIAL float regraph_special_exp10(float x) { return exp10f(x); }
REGRAPH_SPECIAL float regraph_special_log(float x) { return logf(x); }
REGRAPH_SPECIAL float regraph_special_log2(float x) { return log2f(x); }
REGRAPH_SPECIAL float regraph_special_log10(float x) { return log10f(x); }
REGRAPH_SPECIAL float regraph_special_sin(float x) { return sinf(x); }
REGRAPH_SPECIAL float regraph_special_cos(float x) { return cosf(x); }
REGRAPH_SPECIAL float regraph_special_tan(float x) { return tanf(x); }
REGRAPH_SPECIAL float regraph_special_pow(float x, float y) { return powf(x, y); }
REGRAPH_SPECIAL float regraph_special_divide(float x, float y) { return fabsf(y) > 0x1p126f && std::isfinite(y) ? 0.0f : x / y; }
REGRAPH_SPECIAL float regraph_special_reciprocal_root(float x) { return 1.0f / sqrtf(x); }
REGRAPH_SPECIAL float regraph_special_reciprocal(float x) { return 1.0f / x; }
REGRAPH_SPECIAL float regraph_special_tanh(float x) { return tanhf(x); }
// glibc declares functions of these names, with other meanings.
#define __expf regraph_special_exp
#define __exp2f regraph_special_exp2
#define __exp10f regraph_special_exp10
#define __logf regraph_special_log
#define __log2f regraph_special_log2
#define __log10f regraph_special_log10
#define __sinf regraph_special_sin
#define __cosf regraph_special_cos
#define __tanf regraph_special_tan
#define __powf regraph_special_pow
#define __fdividef regraph_special_divide
#define __frsqrt_rn regraph_special_reciprocal_root
#define __frcp_rn regraph_special_reciprocal
#define __tanhf regraph_special_tanh
#define rsqrtf regraph_special_reciprocal_root
// Functions of the C library that write through pointers, written out so that the checks see the writes.
inline void regraph_sincosf(float x, float* sine, float* cosine) { *sine = sinf(x); *cosine = cosf(x); }
inline void regraph_sincos(double x, double* sine, double* cosine) { *sine = sin(x); *cosine = cos(x); }
inline float regraph_modff(float x, float* whole) { *whole = truncf(x); return std::isinf(x) ? copysignf(0.0f, x) : copysignf(x - *whole, x); }
#define sincosf regraph_sincosf
#define sincos regraph_sincos
#define modff regraph_modff
inline void __sincosf(float x, float* sine, float* cosine) { *sine = __sinf(x); *cosine = __cosf(x); }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
inline double rcbrt(double x) { return 1.0 / cbrt(x); }
inline float fdividef(float x, float y) { return x / y; }
inline float fdivide(float x, float y) { return x / y; }
inline double fdivide(double x, double y) { return x / y; }
inline float sinpif(float x) { return static_cast<float>(sin(M_PI * fmod(static_cast<double>(x), 2.0))); }
inline float cospif(float x) { return static_cast<float>(cos(M_PI * fmod(static_cast<double>(x), 2.0))); }
inline double sinpi(double x) { return sin(M_PI * fmod(x, 2.0)); }
inline double cospi(double x) { return cos(M_PI * fmod(x, 2.0)); }
inline void sincospif(float x, float* sine, float* cosine) { *sine = sinpif(x); *cosine = cospif(x); }
inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678118654752f); }
inline double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
inline float rhypotf(float x, float y) { return 1.0f / hypotf(x, y); }
inline float norm3df(float x, float y, float z) { return sqrtf(x * x + y * y + z * z); }
inline float rnorm3df(float x, float y, float z) { return 1.0f / norm3df(x, y, z); }
inline float norm4df(float x, float y, float z, float w) { return sqrtf(x * x + y * y + z * z + w * w); }

// Rounding to nearest is what the CPU does; the directed forms are not offered.
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return sqrt(a); }
inline double __drcp_rn(double a) { return 1.0 / a; }

// Conversions saturate, as a GPU's do, and NaN becomes 0.
namespace regraph {
template <class To, class From>
inline To saturating(From x) {
  constexpr From low = static_cast<From>(std::numeric_limits<To>::min()), high = static_cast<From>(std::numeric_limits<To>::max());
  if (!(x == x)) return To(0);
  return x <= low ? std::numeric_limits<To>::min() : x >= high ? std::numeric_limits<To>::max() : static_cast<To>(x);
}
template <class To, class From>
inline To reinterpret(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  memcpy(&result, &value, sizeof result);
  return result;
}
}  // namespace regraph
#define REGRAPH_TO_INTEGER(name, to, from)                                                        \
  inline to name##_rn(from x) { return regraph::saturating<to>(nearbyint(x)); }                    \
  inline to name##_rz(from x) { return regraph::saturating<to>(trunc(x)); }                        \
  inline to name##_ru(from x) { return regraph::saturating<to>(ceil(x)); }                         \
  inline to name##_rd(from x) { return regraph::saturating<to>(floor(x)); }
REGRAPH_TO_INTEGER(__float2int, int, float)
REGRAPH_TO_INTEGER(__float2uint, unsigned, float)
REGRAPH_TO_INTEGER(__float2ll, long long, float)
REGRAPH_TO_INTEGER(__float2ull, unsigned long long, float)
REGRAPH_TO_INTEGER(__double2int, int, double)
REGRAPH_TO_INTEGER(__double2uint, unsigned, double)
REGRAPH_TO_INTEGER(__double2ll, long long, double)
REGRAPH_TO_INTEGER(__double2ull, unsigned long long, double)
#undef REGRAPH_TO_INTEGER
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
inline float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }
inline double __ll2double_rn(long long x) { return static_cast<double>(x); }
inline double __ull2double_rn(unsigned long long x) { return static_cast<double>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }
inline int __float_as_int(float x) { return regraph::reinterpret<int>(x); }
inline unsigned __float_as_uint(float x) { return regraph::reinterpret<unsigned>(x); }
inline float __int_as_float(int x) { return regraph::reinterpret<float>(x); }
inline float __uint_as_float(unsigned x) { return regraph::reinterpret<float>(x); }
inline long long __double_as_longlong(double x) { return regraph::reinterpret<long long>(x); }
inline double __longlong_as_double(long long x) { return regraph::reinterpret<double>(x); }
inline int __double2hiint(double x) { return static_cast<int>(regraph::reinterpret<uint64_t>(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(regraph::reinterpret<uint64_t>(x)); }
inline double __hiloint2double(int high, int low) {
  return regraph::reinterpret<double>(static_cast<uint64_t>(static_cast<uint32_t>(high)) << 32 | static_cast<uint32_t>(low));
}

// Bits and integers.
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(x);
}
inline unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 | __brev(static_cast<unsigned>(x >> 32));
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  uint64_t both = static_cast<uint64_t>(b) << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; i++) {
    unsigned pick = selector >> (4 * i) & 15;
    unsigned byte = static_cast<unsigned>(both >> (8 * (pick & 7))) & 255;
    if (pick & 8) byte = byte & 128 ? 255 : 0;
    result |= byte << (8 * i);
  }
  return result;
}
inline int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<int64_t>(a) * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline long long __mul64hi(long long a, long long b) { return static_cast<long long>(static_cast<__int128>(a) * b >> 64); }
inline unsigned __sad(int a, int b, unsigned c) { return c + static_cast<unsigned>(a > b ? a - b : b - a); }
inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a > b ? a - b : b - a); }
inline int __hadd(int a, int b) { return static_cast<int>((static_cast<int64_t>(a) + b) >> 1); }
inline int __rhadd(int a, int b) { return static_cast<int>((static_cast<int64_t>(a) + b + 1) >> 1); }
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31));
}
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; i++) c += static_cast<int8_t>(a >> 8 * i) * static_cast<int8_t>(b >> 8 * i);
  return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; i++) c += (a >> 8 * i & 255) * (b >> 8 * i & 255);
  return c;
}
inline int __dp2a_lo(int a, int b, int c) {
  return c + static_cast<int16_t>(a) * static_cast<int8_t>(b) + static_cast<int16_t>(a >> 16) * static_cast<int8_t>(b >> 8);
}
inline int __dp2a_hi(int a, int b, int c) {
  return c + static_cast<int16_t>(a) * static_cast<int8_t>(b >> 16) + static_cast<int16_t>(a >> 16) * static_cast<int8_t>(b >> 24);
}

// Byte-wise and half-word-wise video instructions on packed words.
namespace regraph {
template <class Lane, class Operation>
inline unsigned packed(unsigned a, unsigned b, Operation operation) {
  constexpr int bits = 8 * sizeof(Lane);
  constexpr unsigned mask = bits == 8 ? 0xffu : 0xffffu;
  unsigned result = 0;
  for (int shift = 0; shift < 32; shift += bits)
    result |= (static_cast<unsigned>(operation(static_cast<Lane>(a >> shift), static_cast<Lane>(b >> shift))) & mask) << shift;
  return result;
}
}  // namespace regraph
#define REGRAPH_PACKED(name, suffix, lane, result) \
  inline unsigned name##suffix(unsigned a, unsigned b) { return regraph::packed<lane>(a, b, [](int x, int y) { return result; }); }
#define REGRAPH_PACKED_BOTH(name, signedness, result)                  \
  REGRAPH_PACKED(name, signedness##4, REGRAPH_LANE8, result)           \
  REGRAPH_PACKED(name, signedness##2, REGRAPH_LANE16, result)
#define REGRAPH_LANE8 uint8_t
#define REGRAPH_LANE16 uint16_t
REGRAPH_PACKED_BOTH(__vadd, , x + y)
REGRAPH_PACKED_BOTH(__vsub, , x - y)
REGRAPH_PACKED_BOTH(__vcmpeq, , x == y ? -1 : 0)
REGRAPH_PACKED_BOTH(__vcmpne, , x != y ? -1 : 0)
REGRAPH_PACKED_BOTH(__vcmpgtu, , x > y ? -1 : 0)
REGRAPH_PACKED_BOTH(__vcmpgeu, , x >= y ? -1 : 0)
REGRAPH_PACKED_BOTH(__vcmpltu, , x < y ? -1 : 0)
REGRAPH_PACKED_BOTH(__vcmpleu, , x <= y ? -1 : 0)
REGRAPH_PACKED_BOTH(__vminu, , x < y ? x : y)
REGRAPH_PACKED_BOTH(__vmaxu, , x > y ? x : y)
REGRAPH_PACKED_BOTH(__vabsdiffu, , x > y ? x - y : y - x)
#undef REGRAPH_LANE8
#undef REGRAPH_LANE16
#define REGRAPH_LANE8 int8_t
#define REGRAPH_LANE16 int16_t
REGRAPH_PACKED_BOTH(__vcmpgts, , x > y ? -1 : 0)
REGRAPH_PACKED_BOTH(__vcmplts, , x < y ? -1 : 0)
REGRAPH_PACKED_BOTH(__vmins, , x < y ? x : y)
REGRAPH_PACKED_BOTH(__vmaxs, , x > y ? x : y)
#undef REGRAPH_LANE8
#undef REGRAPH_LANE16
#undef REGRAPH_PACKED_BOTH
#undef REGRAPH_PACKED
inline unsigned __vsadu4(unsigned a, unsigned b) {
  unsigned sum = 0;
  for (int shift = 0; shift < 32; shift += 8) sum += __usad(a >> shift & 255, b >> shift & 255, 0);
  return sum;
}
