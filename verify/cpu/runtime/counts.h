// Counting for the model: what a launch's sampled blocks do to memory, warp by warp.
#pragma once
#include <cstdint>

#include "runtime.h"

namespace regraph {
enum class Space : uint8_t { Global, Shared, Constant };
// Bytes of shared memory and L1 of a multiprocessor, and of L2.
void counts_configure(double shared_bytes, double l2);
// A launch of `blocks` begins; returns how many of them to run at most.
uint64_t counts_begin(uint64_t blocks);
uint64_t counts_block(uint64_t index);
void counts_begin_block();
void counts_end_block();
// Whether the launch has taken its time: what has been sampled must do.
bool counts_enough();
void counts_end();
void counts_barrier();
void counts_collective(Fiber* warp, uint32_t lanes, Collective operation);
void counts_access(Space space, uint64_t offset, unsigned bytes, Manner manner, const void* site);
void counts_memset(size_t bytes);
}  // namespace regraph
