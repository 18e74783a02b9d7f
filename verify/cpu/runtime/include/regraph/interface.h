// What the runtime (the driver program) offers to a candidate. The candidate's headers call these; nothing else is shared.
#pragma once
#include <cstddef>
#include <cstdint>

namespace regraph {

enum class Collective : uint8_t { Shuffle, Ballot, Sync, Add, Max, Min, And, Or, Xor, MatchAny };

// Every lane of `mask` that is alive meets here; returns what `operation` gives this lane. `source` is a shuffle's lane.
uint64_t collective(Collective operation, uint32_t mask, uint64_t value, int source);
// __syncthreads() and its voting forms: how many threads came with a true predicate.
int barrier(bool predicate, int* alive);
// Lanes of the warp that run together: those that reach the same call before anything else can go on.
uint32_t active_mask();
unsigned lane();
unsigned linear_thread();
unsigned block_threads();
void* dynamic_shared();
unsigned dynamic_shared_bytes();
// Before an atomic operation on `pointer`, for the checks; gives way to other threads when one spins.
void before_atomic(void* pointer, unsigned bytes, void* site);
void fence();
void give_way();
long long ticks();
[[noreturn]] void trap(const char* what);

struct Configuration {
  const char* kernel;   // as written at the launch
  const void* address;  // the kernel's, or null where the launch cannot tell
  unsigned line;
  unsigned grid[3], block[3];
  size_t shared;
};
void launch(const Configuration&, void (*body)(void*), void* context);

// Attributes that a candidate sets on a kernel, by its address.
int set_dynamic_shared_limit(const void* kernel, int bytes);
int occupancy(int block_threads, size_t dynamic_shared);
int copy(void* to, const void* from, size_t bytes, int kind);
}  // namespace regraph
