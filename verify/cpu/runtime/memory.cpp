// Device memory: one reserved range; each allocation ends at most 255 bytes before a page that cannot be touched.
#include <cstring>
#include <sys/mman.h>

#include "runtime.h"

namespace regraph {

static char *arena = nullptr, *arena_top = nullptr;
static std::vector<Allocation> allocations;
static uint32_t* owner_of_page = nullptr;  // index into allocations, plus one
static bool device_is_open = false;
static int leaking_calls = 0;
static size_t leaked_before = 0;
Usage usage;
int call_number = 0;

constexpr unsigned char kFresh = 0xFF;   // a NaN as a float, -1 as an integer
constexpr unsigned char kRedZone = 0xB7;
constexpr size_t kAlignment = 256;

static size_t whole_pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

static char* reserve(size_t bytes, int protection) {
  void* place = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) fault("harness_error", text("%zu bytes of address space cannot be reserved", bytes));
  return static_cast<char*>(place);
}

void open_arena() {
  arena = reserve(options.arena, PROT_NONE);
  arena_top = arena + kPage;
  owner_of_page = reinterpret_cast<uint32_t*>(reserve(options.arena / kPage * sizeof(uint32_t), PROT_READ | PROT_WRITE));
}

bool in_arena(const void* address) { return static_cast<size_t>(static_cast<const char*>(address) - arena) < options.arena; }
size_t arena_offset(const void* address) { return static_cast<size_t>(static_cast<const char*>(address) - arena); }

char* arena_start() { return arena; }

const Allocation* allocation_at(const void* address) {
  if (!in_arena(address)) return nullptr;
  uint32_t owner = owner_of_page[arena_offset(address) / kPage];
  return owner ? &allocations[owner - 1] : nullptr;
}

static char* first_page(const Allocation& allocation) { return arena + arena_offset(allocation.start) / kPage * kPage; }
static size_t pages_of(const Allocation& allocation) {
  return whole_pages(static_cast<size_t>(allocation.start - first_page(allocation)) + allocation.bytes);
}

void* allocate(size_t bytes, bool argument, bool managed) {
  size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  size_t pages = whole_pages(rounded ? rounded : kAlignment);
  if (bytes > options.arena || arena_top + pages + kPage > arena + options.arena) return nullptr;
  char* start = arena_top + pages - (rounded ? rounded : kAlignment);
  allocations.push_back({start, bytes, true, managed, argument, call_number});
  for (size_t page = 0; page <= pages / kPage; page++) {  // the guard page behind it is its own too, for the words of a fault
    owner_of_page[arena_offset(arena_top) / kPage + page] = static_cast<uint32_t>(allocations.size());
  }
  mprotect(arena_top, pages, PROT_READ | PROT_WRITE);
  if (!options.counted) {
    memset(arena_top, kRedZone, static_cast<size_t>(start - arena_top));
    memset(start, kFresh, bytes);
    memset(start + bytes, kRedZone, static_cast<size_t>(arena_top + pages - start) - bytes);
  }
  if (!device_is_open && !managed) mprotect(arena_top, pages, PROT_NONE);
  arena_top += pages + kPage;
  return start;
}

void* map_file(int file, size_t offset, size_t bytes) {
  size_t within = offset % kPage, pages = whole_pages(within + bytes ? within + bytes : 1);
  if (arena_top + pages + kPage > arena + options.arena) return nullptr;
  if (bytes && mmap(arena_top, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file, static_cast<off_t>(offset - within)) == MAP_FAILED) {
    return nullptr;
  }
  char* start = arena_top + within;
  allocations.push_back({start, bytes, true, false, true, call_number});
  for (size_t page = 0; page <= pages / kPage; page++) {
    owner_of_page[arena_offset(arena_top) / kPage + page] = static_cast<uint32_t>(allocations.size());
  }
  if (!device_is_open) mprotect(arena_top, pages, PROT_NONE);
  arena_top += pages + kPage;
  return start;
}

static void check_red_zone(const Allocation& allocation) {
  const char* page = first_page(allocation);
  const char* end = page + pages_of(allocation);
  for (const char* byte = page; byte < end; byte++) {
    if (byte == allocation.start) byte += allocation.bytes;
    if (byte < end && static_cast<unsigned char>(*byte) != kRedZone) {
      bool after = byte >= allocation.start;
      size_t distance = static_cast<size_t>(after ? byte - allocation.start - static_cast<ptrdiff_t>(allocation.bytes) : allocation.start - byte);
      fault("runtime_error", text("out of bounds: a kernel wrote %zu bytes %s %zu bytes of global memory", distance,
                                  after ? "past the end of" : "before", allocation.bytes));
    }
  }
}

void check_red_zones() {
  if (options.counted) return;
  open_device();
  for (const Allocation& allocation : allocations) {
    if (allocation.live) check_red_zone(allocation);
  }
  close_device();
}

bool release(void* pointer) {
  for (size_t i = allocations.size(); i-- > 0;) {
    Allocation& allocation = allocations[i];
    if (allocation.start != pointer || !allocation.live) continue;
    bool was_open = device_is_open;
    if (!was_open) open_device();
    if (!options.counted) check_red_zone(allocation);
    allocation.live = false;
    madvise(first_page(allocation), pages_of(allocation), MADV_DONTNEED);
    mprotect(first_page(allocation), pages_of(allocation), PROT_NONE);
    if (!was_open) close_device();
    return true;
  }
  return false;
}

static void protect(int protection) {
  for (const Allocation& allocation : allocations) {
    if (allocation.live && !allocation.managed) mprotect(first_page(allocation), pages_of(allocation), protection);
  }
}

void open_device() {
  if (!device_is_open) protect(PROT_READ | PROT_WRITE);
  device_is_open = true;
}

void close_device() {
  if (device_is_open) protect(PROT_NONE);
  device_is_open = false;
}

// A workspace made once and kept is no leak; memory that grows with every call is.
void end_of_call(int call) {
  size_t kept = 0, count = 0;
  for (const Allocation& allocation : allocations) {
    if (allocation.live && !allocation.argument && allocation.call == call) kept += allocation.bytes, count++;
  }
  leaking_calls = kept && kept == leaked_before ? leaking_calls + 1 : (kept ? 1 : 0);
  leaked_before = kept;
  if (leaking_calls >= 3) {
    fault("runtime_error", text("leaks device memory: every call leaves %zu allocations of together %zu bytes behind", count, kept));
  }
}

}  // namespace regraph
