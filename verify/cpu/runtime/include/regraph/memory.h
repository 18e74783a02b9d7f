// Loads and stores with cache hints (plain ones here), and the device's memory functions.
#pragma once
#include <cstddef>

#define REGRAPH_LOAD(name) \
  template <class T>       \
  inline T name(const T* place) { return *place; }
REGRAPH_LOAD(__ldg)
REGRAPH_LOAD(__ldca)
REGRAPH_LOAD(__ldcg)
REGRAPH_LOAD(__ldcs)
REGRAPH_LOAD(__ldlu)
#undef REGRAPH_LOAD
// Not cached at all: what another block published is seen.
template <class T>
inline T __ldcv(const T* place) { return *const_cast<const volatile T*>(place); }

#define REGRAPH_STORE(name)   \
  template <class T, class U> \
  inline void name(T* place, U value) { *place = value; }
REGRAPH_STORE(__stwb)
REGRAPH_STORE(__stcg)
REGRAPH_STORE(__stcs)
REGRAPH_STORE(__stwt)
#undef REGRAPH_STORE

inline size_t __cvta_generic_to_shared(const void* place) {
  return static_cast<size_t>(static_cast<const char*>(place) - static_cast<const char*>(regraph::dynamic_shared()));
}
