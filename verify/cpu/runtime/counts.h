// Counting for the model: what a launch's sampled blocks do to memory, warp by warp.
#pragma once
#include <cstdint>

#include "runtime.h"

namespace regraph {
enum class Space : uint8_t { Global, Shared, Constant };
// A launch of `blocks` begins; returns how many of them to run.
uint64_t counts_begin(uint64_t blocks);
uint64_t counts_block(uint64_t index);
void counts_end_block();
void counts_end(uint64_t blocks, uint64_t sampled);
void counts_barrier();
void counts_collective(Fiber* warp, uint32_t lanes, Collective operation);
void counts_access(Space space, uint64_t offset, unsigned bytes, bool write, bool atomic, const void* site);
void counts_memset(size_t bytes);
}  // namespace regraph
