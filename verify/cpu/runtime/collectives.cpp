// Warp-wide operations: who has come, when the last one has, what everybody gets; and who runs together.
#include <algorithm>

#include "counts.h"
#include "runtime.h"

namespace regraph {

Fiber* warp_of(const Fiber* fiber, int* lanes) {
  int first = fiber->warp * 32;
  *lanes = std::min(32, running.threads - first);
  return fibers + first;
}

static uint64_t combine(Collective operation, uint64_t left, uint64_t right) {
  switch (operation) {
    case Collective::Add: return left + right;
    case Collective::Max: return static_cast<int64_t>(left) > static_cast<int64_t>(right) ? left : right;
    case Collective::Min: return static_cast<int64_t>(left) < static_cast<int64_t>(right) ? left : right;
    case Collective::And: return left & right;
    case Collective::Or: return left | right;
    case Collective::Xor: return left ^ right;
    default: return 0;
  }
}

static void give_results(Fiber* warp, uint32_t here, Collective operation) {
  uint64_t combined = 0;
  uint32_t ballot = 0;
  bool first = true;
  for (uint32_t left = here; left; left &= left - 1) {
    const Fiber& fiber = warp[__builtin_ctz(left)];
    if (fiber.value) ballot |= left & (0u - left);
    combined = first ? fiber.value : combine(operation, combined, fiber.value);
    first = false;
  }
  for (uint32_t left = here; left; left &= left - 1) {
    Fiber& fiber = warp[__builtin_ctz(left)];
    fiber.state = State::Ready;
    if (operation == Collective::Shuffle) {
      bool there = fiber.source >= 0 && fiber.source < 32 && (here >> fiber.source & 1);
      fiber.result = there ? warp[fiber.source].value : fiber.value;
    } else if (operation == Collective::Ballot) {
      fiber.result = ballot;
    } else if (operation == Collective::MatchAny) {
      fiber.result = 0;
      for (uint32_t other = here; other; other &= other - 1) {
        if (warp[__builtin_ctz(other)].value == fiber.value) fiber.result |= other & (0u - other);
      }
    } else {
      fiber.result = combined;
    }
  }
}

// Complete the collective of `mask` if every lane that it names and that is alive has come.
void try_collective(Fiber* warp, int lanes, uint32_t mask) {
  uint32_t here = 0, alive = 0;
  for (int lane = 0; lane < lanes; lane++) {
    const Fiber& fiber = warp[lane];
    if (fiber.state != State::Done) alive |= 1u << lane;
    if (fiber.state == State::AtCollective && fiber.mask == mask) here |= 1u << lane;
  }
  if (!here || (mask & alive) != here) return;
  Fiber& first = warp[__builtin_ctz(here)];
  for (uint32_t left = here; left; left &= left - 1) {
    const Fiber& fiber = warp[__builtin_ctz(left)];
    if (fiber.operation != first.operation) {
      fault("runtime_error", "different warp operations meet under one mask: @0 and @1, " + block_name(), {first.site, fiber.site});
    }
  }
  if (options.checked) joined(here, warp);
  if (options.counted) counts_collective(warp, here, first.operation);
  give_results(warp, here, first.operation);
}

uint64_t collective(Collective operation, uint32_t mask, uint64_t value, int source) {
  Fiber* me = current;
  if (!me) fault("runtime_error", "host code calls a warp operation");
  int lanes;
  Fiber* warp = warp_of(me, &lanes);
  me->site = __builtin_return_address(0);
  if (lanes < 32) mask &= (1u << lanes) - 1;
  if (!(mask >> me->lane & 1)) {
    fault("runtime_error", "the calling lane is not in the mask of its warp operation at @0, " + thread_name(*me) + ", " + block_name(), {me->site});
  }
  me->operation = operation;
  me->mask = mask;
  me->value = value;
  me->source = source;
  me->state = State::AtCollective;
  if (options.checked) settle_pending_write();
  try_collective(warp, lanes, mask);
  if (me->state == State::AtCollective) {
    to_scheduler();
  }
  return me->result;
}

uint32_t active_mask() {
  current->state = State::AtActiveMask;
  current->site = __builtin_return_address(0);
  to_scheduler();
  return static_cast<uint32_t>(current->result);
}

// Nothing else can go on: the lanes of a warp that wait at the same __activemask() are the ones that run together.
bool resolve_active_masks() {
  bool any = false;
  for (int first = 0; first < running.threads; first += 32) {
    int lanes = std::min(32, running.threads - first);
    uint32_t group = 0;
    void* site = nullptr;
    for (int lane = 0; lane < lanes; lane++) {
      const Fiber& fiber = fibers[first + lane];
      if (fiber.state != State::AtActiveMask || (site && fiber.site != site)) continue;
      site = fiber.site;
      group |= 1u << lane;
    }
    for (uint32_t left = group; left; left &= left - 1) {
      Fiber& fiber = fibers[first + __builtin_ctz(left)];
      fiber.result = group;
      fiber.state = State::Ready;
      any = true;
    }
  }
  return any;
}

}  // namespace regraph
