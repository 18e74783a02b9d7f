// The hooks that `-fsanitize=thread` makes the candidate call (there is no sanitizer library): every access arrives here
// with its address and its site. Bounds are checked exactly, then the access is raced or counted.
#include <cstring>

#include "candidate.h"
#include "counts.h"
#include "runtime.h"

namespace regraph {

static const char* verb(Manner manner) { return manner == Manner::Update ? "updates" : writes(manner) ? "writes" : "reads"; }

[[noreturn]] static void out_of_bounds(const std::string& what, Manner manner, const void* site) {
  fault("runtime_error", text("out of bounds: %s %s at @0, ", verb(manner), what.c_str()) + thread_name(*current) + ", " + block_name(), {site});
}

static void global_access(const char* address, unsigned bytes, Manner manner, const void* site) {
  const Allocation* allocation = allocation_at(address);
  if (!allocation || !allocation->live || address < allocation->start || address + bytes > allocation->start + allocation->bytes) {
    std::string what = "global memory that is not allocated";
    if (allocation && !allocation->live) what = "device memory that was freed";
    else if (allocation && address < allocation->start) what = text("%td bytes before %zu bytes of global memory", allocation->start - address, allocation->bytes);
    else if (allocation) what = text("%td bytes past the end of %zu bytes of global memory", address - allocation->start - static_cast<ptrdiff_t>(allocation->bytes), allocation->bytes);
    out_of_bounds(what, manner, site);
  }
}

static void shared_access(uint64_t offset, unsigned bytes, Manner manner, const void* site) {
  const Symbol* symbol = shared_variable_at(offset);
  if (symbol && offset + bytes <= symbol->offset + symbol->size) return;
  const Symbol* near = shared_variable_before(offset);
  std::string what = "shared memory that no variable owns";
  if (near) what = text("%ld bytes past the end of the shared variable `%s` (%lu bytes)", static_cast<long>(offset - near->offset - near->size), near->name.c_str(), near->size);
  out_of_bounds(what, manner, site);
}

// A variable of the candidate: __device__, __constant__, or a table that its compiler made.
static void image_access(char* address, unsigned bytes, Manner manner, const void* site) {
  auto offset = static_cast<uint64_t>(address - candidate.base);
  uint64_t place = options.arena + static_cast<uint64_t>(address - candidate.image);
  const Symbol* variable = variable_at(offset);
  if (options.counted) {
    bool constant = !variable || variable->constant;
    return counts_access(constant ? Space::Constant : Space::Global, place, bytes, manner, site);
  }
  bool inside = variable && offset + bytes <= variable->offset + variable->size;
  bool writable = address >= candidate.writable && address < candidate.writable_end;
  if (!inside && writable) {
    const Symbol* near = variable_before(offset);
    out_of_bounds(near ? text("past the end of the variable `%s` (%lu bytes)", near->name.c_str(), near->size) : "no variable", manner, site);
  }
  if (inside) race_check(false, place, address, bytes, manner, site);
}

static void access(void* place, unsigned bytes, Manner manner, const void* site) {
  if (!current) return;
  auto* address = static_cast<char*>(place);
  if (in_arena(address)) {
    if (options.counted) return counts_access(Space::Global, arena_offset(address), bytes, manner, site);
    global_access(address, bytes, manner, site);
    race_check(false, arena_offset(address), address, bytes, manner, site);
  } else if (static_cast<size_t>(address - candidate.shared) < candidate.shared_bytes) {
    auto offset = static_cast<uint64_t>(address - candidate.shared);
    if (options.counted) return counts_access(Space::Shared, offset, bytes, manner, site);
    shared_access(offset, bytes, manner, site);
    race_check(true, offset, address, bytes, manner, site);
  } else if (static_cast<size_t>(address - running.dynamic) < (running.dynamic_bytes + 127) / 128 * 128 + kPage) {
    auto offset = static_cast<uint64_t>(address - running.dynamic);
    if (options.counted) return counts_access(Space::Shared, candidate.shared_bytes + offset, bytes, manner, site);
    if (offset + bytes > running.dynamic_bytes) {
      out_of_bounds(text("%ld bytes past the end of %zu bytes of dynamic shared memory", static_cast<long>(offset - running.dynamic_bytes), running.dynamic_bytes), manner, site);
    }
    race_check(true, candidate.shared_bytes + offset, address, bytes, manner, site);
  } else if (address >= candidate.image && address < candidate.image_end) {
    image_access(address, bytes, manner, site);
  } else if (static_cast<size_t>(address - current->stack) < kStackBytes) {
    return;  // a local variable
  } else if (!options.counted && reinterpret_cast<uintptr_t>(address) >= 65536) {
    out_of_bounds("host memory through a host pointer", manner, site);
  }
}

// A range may be larger than a single access: structures that are copied as a whole.
static void access_range(void* place, size_t bytes, bool write, const void* site) {
  auto* address = static_cast<char*>(place);
  while (bytes && current) {
    unsigned part = bytes >= 16 ? 16 : bytes >= 8 ? 8 : bytes >= 4 ? 4 : bytes >= 2 ? 2 : 1;
    access(address, part, write ? Manner::Write : Manner::Read, site);
    address += part;
    bytes -= part;
  }
}

void before_atomic(void* place, unsigned bytes, void* site) {
  if (!current) fault("runtime_error", "host code calls an atomic function of the device");
  current->site = site;
  if (++current->spins > 256) give_way();
  if (options.checked || options.counted) {
    current->acquired = true;
    if (current->fenced) current->published = true;
    access(place, bytes, Manner::Update, site);
  }
}

// Volatile accesses order threads as relaxed atomics do.
static void volatile_access(void* place, unsigned bytes, bool write, const void* site) {
  if (!current) return;
  if (write && current->fenced) current->published = true;
  if (!write) {
    current->acquired = true;
    if (++current->spins > 4096) give_way();
  }
  access(place, bytes, write ? Manner::VolatileWrite : Manner::VolatileRead, site);
}

}  // namespace regraph

using namespace regraph;

#define REGRAPH_HOOKS(bytes)                                                                                                   \
  void __tsan_read##bytes(void* place) { access(place, bytes, Manner::Read, __builtin_return_address(0)); }                      \
  void __tsan_write##bytes(void* place) { access(place, bytes, Manner::Write, __builtin_return_address(0)); }                      \
  void __tsan_unaligned_read##bytes(void* place) { access(place, bytes, Manner::Read, __builtin_return_address(0)); }            \
  void __tsan_unaligned_write##bytes(void* place) { access(place, bytes, Manner::Write, __builtin_return_address(0)); }            \
  void __tsan_volatile_read##bytes(void* place) { volatile_access(place, bytes, false, __builtin_return_address(0)); }           \
  void __tsan_volatile_write##bytes(void* place) { volatile_access(place, bytes, true, __builtin_return_address(0)); }           \
  void __tsan_unaligned_volatile_read##bytes(void* place) { volatile_access(place, bytes, false, __builtin_return_address(0)); } \
  void __tsan_unaligned_volatile_write##bytes(void* place) { volatile_access(place, bytes, true, __builtin_return_address(0)); }

extern "C" {
REGRAPH_HOOKS(1)
REGRAPH_HOOKS(2)
REGRAPH_HOOKS(4)
REGRAPH_HOOKS(8)
REGRAPH_HOOKS(16)
void __tsan_read_range(void* place, size_t bytes) { access_range(place, bytes, false, __builtin_return_address(0)); }
void __tsan_write_range(void* place, size_t bytes) { access_range(place, bytes, true, __builtin_return_address(0)); }
void* __wrap_memcpy(void* to, const void* from, size_t bytes) {
  if (options.checked || options.counted) access_range(const_cast<void*>(from), bytes, false, __builtin_return_address(0));
  if (options.checked || options.counted) access_range(to, bytes, true, __builtin_return_address(0));
  return memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, size_t bytes) {
  if (options.checked || options.counted) access_range(const_cast<void*>(from), bytes, false, __builtin_return_address(0));
  if (options.checked || options.counted) access_range(to, bytes, true, __builtin_return_address(0));
  return memmove(to, from, bytes);
}
void* __wrap_memset(void* place, int value, size_t bytes) {
  if (options.checked || options.counted) access_range(place, bytes, true, __builtin_return_address(0));
  return memset(place, value, bytes);
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
}
