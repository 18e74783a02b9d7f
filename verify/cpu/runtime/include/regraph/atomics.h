// Atomic operations. One simulated thread runs at a time, so they are plain updates that the checks are told about; the
// bytes are copied, because a copy constructor of a half would be seen as an access of its own.
#pragma once
#include <regraph/interface.h>

#define REGRAPH_ATOMIC_1(name, value_name, result)                                                  \
  template <class T, class U>                                                                       \
  REGRAPH_RAW T name(T* place, U given) {                                                           \
    ::regraph::before_atomic(place, sizeof(T), __builtin_return_address(0));                        \
    T old, value_name = static_cast<T>(given), after;                                               \
    __builtin_memcpy(&old, place, sizeof old);                                                      \
    after = (result);                                                                               \
    __builtin_memcpy(place, &after, sizeof after);                                                  \
    return old;                                                                                     \
  }
#define REGRAPH_ATOMIC(name, result)               \
  REGRAPH_ATOMIC_1(name, value, result)            \
  REGRAPH_ATOMIC_1(name##_block, value, result)    \
  REGRAPH_ATOMIC_1(name##_system, value, result)
REGRAPH_ATOMIC(atomicAdd, static_cast<T>(old + value))
REGRAPH_ATOMIC(atomicSub, static_cast<T>(old - value))
REGRAPH_ATOMIC(atomicMax, old > value ? old : value)
REGRAPH_ATOMIC(atomicMin, old < value ? old : value)
REGRAPH_ATOMIC(atomicAnd, static_cast<T>(old & value))
REGRAPH_ATOMIC(atomicOr, static_cast<T>(old | value))
REGRAPH_ATOMIC(atomicXor, static_cast<T>(old ^ value))
REGRAPH_ATOMIC(atomicExch, value)
REGRAPH_ATOMIC(atomicInc, old >= value ? T(0) : static_cast<T>(old + 1))
REGRAPH_ATOMIC(atomicDec, old == T(0) || old > value ? value : static_cast<T>(old - 1))
#undef REGRAPH_ATOMIC
#undef REGRAPH_ATOMIC_1

#define REGRAPH_CAS(name)                                                             \
  template <class T, class U, class V>                                                \
  REGRAPH_RAW T name(T* place, U expected, V value) {                                 \
    ::regraph::before_atomic(place, sizeof(T), __builtin_return_address(0));          \
    T old, wanted = static_cast<T>(expected), after = static_cast<T>(value);          \
    __builtin_memcpy(&old, place, sizeof old);                                        \
    if (memcmp(&old, &wanted, sizeof(T)) == 0) __builtin_memcpy(place, &after, sizeof after); \
    return old;                                                                       \
  }
REGRAPH_CAS(atomicCAS)
REGRAPH_CAS(atomicCAS_block)
REGRAPH_CAS(atomicCAS_system)
#undef REGRAPH_CAS

// Adding to a vector is one atomic operation for each component.
REGRAPH_RAW inline float2 atomicAdd(float2* place, float2 value) {
  ::regraph::before_atomic(place, sizeof *place, __builtin_return_address(0));
  float2 old = *place;
  *place = make_float2(old.x + value.x, old.y + value.y);
  return old;
}
REGRAPH_RAW inline float4 atomicAdd(float4* place, float4 value) {
  ::regraph::before_atomic(place, sizeof *place, __builtin_return_address(0));
  float4 old = *place;
  *place = make_float4(old.x + value.x, old.y + value.y, old.z + value.z, old.w + value.w);
  return old;
}
