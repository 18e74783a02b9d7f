// Barriers, fences and warp-wide operations.
#pragma once
#include <cstring>
#include <regraph/interface.h>

namespace regraph {
template <class T>
REGRAPH_INLINE uint64_t to_bits(T value) {
  static_assert(sizeof(T) <= 8, "warp operations move at most eight bytes");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T>
REGRAPH_INLINE T from_bits(uint64_t bits) {
  T value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
REGRAPH_INLINE T shuffle(unsigned mask, T value, int source) {
  return from_bits<T>(collective(Collective::Shuffle, mask, to_bits(value), source));
}
}  // namespace regraph

REGRAPH_INLINE void __syncthreads() { regraph::barrier(false, nullptr); }
REGRAPH_INLINE int __syncthreads_count(int predicate) { return regraph::barrier(predicate != 0, nullptr); }
REGRAPH_INLINE int __syncthreads_or(int predicate) { return regraph::barrier(predicate != 0, nullptr) != 0; }
REGRAPH_INLINE int __syncthreads_and(int predicate) {
  int alive;
  int yes = regraph::barrier(predicate != 0, &alive);
  return yes == alive;
}
REGRAPH_INLINE void __syncwarp(unsigned mask = ~0u) { regraph::collective(regraph::Collective::Sync, mask, 0, 0); }
REGRAPH_INLINE void __threadfence() { regraph::fence(); }
REGRAPH_INLINE void __threadfence_block() { regraph::fence(); }
REGRAPH_INLINE void __threadfence_system() { regraph::fence(); }
REGRAPH_INLINE void __nanosleep(unsigned) { regraph::give_way(); }
REGRAPH_INLINE unsigned __activemask() { return regraph::active_mask(); }
[[noreturn]] REGRAPH_INLINE void __trap() { regraph::trap("__trap()"); }
REGRAPH_INLINE void __brkpt() {}
REGRAPH_INLINE long long clock64() { return regraph::ticks(); }

// The lane that a shuffle reads: within its segment of `width` lanes, else its own.
template <class T>
REGRAPH_INLINE T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  int lane = static_cast<int>(regraph::lane());
  return regraph::shuffle(mask, value, (lane & ~(width - 1)) | (source & (width - 1)));
}
template <class T>
REGRAPH_INLINE T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  int lane = static_cast<int>(regraph::lane());
  return regraph::shuffle(mask, value, (lane & (width - 1)) >= static_cast<int>(delta) ? lane - static_cast<int>(delta) : lane);
}
template <class T>
REGRAPH_INLINE T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  int lane = static_cast<int>(regraph::lane());
  return regraph::shuffle(mask, value, (lane & (width - 1)) + static_cast<int>(delta) < width ? lane + static_cast<int>(delta) : lane);
}
template <class T>
REGRAPH_INLINE T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32) {
  int lane = static_cast<int>(regraph::lane()), other = lane ^ lanes;
  return regraph::shuffle(mask, value, other < (lane & ~(width - 1)) + width ? other : lane);
}

REGRAPH_INLINE unsigned __ballot_sync(unsigned mask, int predicate) {
  return static_cast<unsigned>(regraph::collective(regraph::Collective::Ballot, mask, predicate != 0, 0));
}
REGRAPH_INLINE int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
REGRAPH_INLINE int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }
template <class T>
REGRAPH_INLINE unsigned __match_any_sync(unsigned mask, T value) {
  return static_cast<unsigned>(regraph::collective(regraph::Collective::MatchAny, mask, regraph::to_bits(value), 0));
}
template <class T>
REGRAPH_INLINE unsigned __match_all_sync(unsigned mask, T value, int* same) {
  unsigned equal = __match_any_sync(mask, value);
  bool all = __ballot_sync(mask, equal != (equal | __ballot_sync(mask, 1))) == 0;
  *same = all;
  return all ? equal : 0;
}

#define REGRAPH_REDUCE(name, type, operation)                                                                              \
  REGRAPH_INLINE type name(unsigned mask, type value) {                                                                            \
    return static_cast<type>(regraph::collective(regraph::Collective::operation, mask,                                     \
                                                 static_cast<uint64_t>(static_cast<int64_t>(value)), 0));                  \
  }
REGRAPH_REDUCE(__reduce_add_sync, int, Add)
REGRAPH_REDUCE(__reduce_add_sync, unsigned, Add)
REGRAPH_REDUCE(__reduce_max_sync, int, Max)
REGRAPH_REDUCE(__reduce_max_sync, unsigned, Max)
REGRAPH_REDUCE(__reduce_min_sync, int, Min)
REGRAPH_REDUCE(__reduce_min_sync, unsigned, Min)
REGRAPH_REDUCE(__reduce_and_sync, unsigned, And)
REGRAPH_REDUCE(__reduce_or_sync, unsigned, Or)
REGRAPH_REDUCE(__reduce_xor_sync, unsigned, Xor)
#undef REGRAPH_REDUCE
