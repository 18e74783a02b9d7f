// The race check: readers and the writer of every word since the last barrier, and what orders them.
//
// Two accesses to one word, at least one a plain write, race unless something orders them: a barrier of the block, a warp
// operation that both threads took part in (vector clocks within the warp), the end of a launch, or a fence and an atomic
// operation on the one side with an atomic operation on the other. A write that leaves the value as it is harms nobody.
#include <cstring>
#include <algorithm>
#include <sys/mman.h>
#include <vector>

#include "candidate.h"
#include "runtime.h"

namespace regraph {

struct Access {
  uint32_t epoch = 0, clock = 0;  // the thread's own clock of warp operations
  uint32_t site = 0;
  uint16_t thread = 0;
  Manner manner = Manner::Read;
};

struct Cell {
  Access writer, reader, other_reader;  // the readers of this epoch: the latest, and one of another warp where there is one
  uint32_t split = 0;                   // number of its four byte cells plus one
};

static Cell *global_cells = nullptr, *shared_cells = nullptr;
static std::vector<std::vector<Cell>> split_cells;
static std::vector<uint32_t> released_blocks;  // first epochs of this launch's blocks that published, ascending
static std::vector<uint32_t> block_starts;
static uint32_t launch_of_blocks = 0;

// A conflict of a write whose new value is not known yet.
struct Pending {
  bool armed = false;
  Fiber* fiber = nullptr;
  char* address = nullptr;
  unsigned bytes = 0;
  char before[16];
  std::string message;
  std::vector<const void*> sites;
};
static Pending pending;

// A read of shared memory that nobody has written in this block. It is not reported at once: a write that follows before the
// next barrier makes it a race, whose report names both lines.
struct Unwritten {
  bool armed = false;
  uint32_t accesses_left = 0;
  size_t offset = 0;
  std::string message;
  const void* site = nullptr;
};
static Unwritten unwritten;
constexpr uint32_t kAccessesToWait = 1u << 20;  // so that a loop on the value that was read does not go on to the deadline

void open_shadow() {
  size_t words = (options.arena + static_cast<size_t>(candidate.image_end - candidate.image)) / 4 + 2;
  size_t shared_words = (candidate.shared_bytes + 262144) / 4;
  auto reserve = [](size_t bytes) {
    void* place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) fault("harness_error", "no address space for the race check");
    return static_cast<Cell*>(place);
  };
  global_cells = reserve(words * sizeof(Cell));
  shared_cells = reserve(shared_words * sizeof(Cell));
}

void joined(uint32_t lanes, Fiber* warp) {
  uint32_t all[32] = {};
  for (uint32_t left = lanes; left; left &= left - 1) {
    const Clock& seen = clocks[warp[__builtin_ctz(left)].linear];
    for (int lane = 0; lane < 32; lane++) all[lane] = std::max(all[lane], seen[lane]);
  }
  for (uint32_t left = lanes; left; left &= left - 1) {
    const Fiber& fiber = warp[__builtin_ctz(left)];
    memcpy(clocks[fiber.linear], all, sizeof all);
    clocks[fiber.linear][fiber.lane]++;
  }
}

void forget_races_of_block() {
  if (launch_of_blocks != running.launch_epoch) {
    launch_of_blocks = running.launch_epoch;
    released_blocks.clear();
    block_starts.clear();
  }
  block_starts.push_back(running.block_epoch);
  for (int i = 0; i < running.threads; i++) {
    if (!fibers[i].published) continue;
    released_blocks.push_back(running.block_epoch);
    break;
  }
}

static bool block_published(uint32_t epoch) {
  if (launch_of_blocks != running.launch_epoch) return false;
  auto start = std::upper_bound(block_starts.begin(), block_starts.end(), epoch);
  if (start == block_starts.begin()) return false;
  return std::binary_search(released_blocks.begin(), released_blocks.end(), *std::prev(start));
}

static bool block_acquired() {
  for (int i = 0; i < running.threads; i++) {
    if (fibers[i].acquired) return true;
  }
  return false;
}

enum class Relation { Ordered, Unordered, UnorderedInWarp, UnorderedBlocks };

static Relation relation(const Access& earlier, bool shared) {
  if (earlier.epoch < running.launch_epoch) return Relation::Ordered;
  if (earlier.epoch < running.block_epoch) {
    if (shared) return Relation::Ordered;
    return block_published(earlier.epoch) && block_acquired() ? Relation::Ordered : Relation::UnorderedBlocks;
  }
  if (earlier.epoch != running.epoch || earlier.thread == current->linear) return Relation::Ordered;
  const Fiber& other = fibers[earlier.thread];
  if (other.warp == current->warp) return clocks[current->linear][other.lane] >= earlier.clock ? Relation::Ordered : Relation::UnorderedInWarp;
  return other.published && current->acquired ? Relation::Ordered : Relation::Unordered;
}

static std::string place_name(bool shared, size_t offset, const char* address) {
  if (shared && offset < candidate.shared_bytes) {
    const Symbol* symbol = shared_variable_at(offset);
    return symbol ? text("shared variable `%s`, byte %zu", symbol->name.c_str(), offset - symbol->offset) : "shared memory";
  }
  if (shared) return text("dynamic shared memory, byte %zu", offset - candidate.shared_bytes);
  if (const Allocation* allocation = allocation_at(address)) {
    return text("global memory, byte %td of %zu", address - allocation->start, allocation->bytes);
  }
  const Symbol* symbol = variable_at(static_cast<uint64_t>(address - candidate.base));
  return symbol ? text("variable `%s`", symbol->name.c_str()) : "global memory";
}

static const char* advice(Relation how) {
  switch (how) {
    case Relation::UnorderedInWarp: return "without a barrier or __syncwarp() between them";
    case Relation::UnorderedBlocks: return "from different blocks of one launch";
    default: return "without a barrier between them";
  }
}

struct Conflict {
  const Access& earlier;
  bool earlier_writes, writes, shared;
  size_t offset;
  char* address;
  unsigned bytes;
  const void* site;
};

[[noreturn]] static void race(const std::string& message, const std::vector<const void*>& sites) {
  unwritten.armed = false;  // the race says more
  fault("runtime_error", message, sites);
}

static void found(const Conflict& conflict, Relation how) {
  const Fiber& other = fibers[conflict.earlier.thread];
  std::string earlier = how == Relation::UnorderedBlocks ? "another block" : thread_name(other);
  std::string message = text("race on %s: ", place_name(conflict.shared, conflict.offset, conflict.address).c_str()) + earlier +
                        (conflict.earlier_writes ? " writes" : " reads") + " at @0, " + thread_name(*current) + (conflict.writes ? " writes" : " reads") +
                        " at @1, " + advice(how) + ", " + block_name();
  std::vector<const void*> sites{candidate.base + conflict.earlier.site, conflict.site};
  // What was read before anything was written is no value that a write could leave as it is.
  bool unread = unwritten.armed && conflict.shared && conflict.offset == unwritten.offset;
  if (!conflict.writes || unread || conflict.bytes > sizeof pending.before) race(message, sites);
  if (pending.armed) return;
  pending = {true, current, conflict.address, conflict.bytes, {}, message, sites};
  memcpy(pending.before, conflict.address, conflict.bytes);
}

void settle_pending_write() {
  if (!pending.armed) return;
  pending.armed = false;
  if (memcmp(pending.before, pending.address, pending.bytes) != 0) race(pending.message, pending.sites);
}

bool take_unwritten_read(std::string& message, std::vector<const void*>& sites) {
  if (!unwritten.armed) return false;
  unwritten.armed = false;
  message = unwritten.message;
  sites = {unwritten.site};
  return true;
}

void settle_unwritten_read() {
  std::string message;
  std::vector<const void*> sites;
  if (take_unwritten_read(message, sites)) fault("runtime_error", message, sites);
}

static void remember_reader(Cell& cell, const Access& now) {
  auto stale = [&](const Access& access) { return access.epoch != now.epoch; };
  auto warp_of = [](const Access& access) { return access.thread / 32; };
  if (stale(cell.reader)) {
    cell.reader = now;
    cell.other_reader.epoch = 0;
  } else if (cell.reader.thread == now.thread) {
    cell.reader = now;
  } else if (warp_of(cell.reader) != warp_of(now) || stale(cell.other_reader) || warp_of(cell.other_reader) == warp_of(now)) {
    cell.other_reader = cell.reader;
    cell.reader = now;
  } else {
    cell.reader = now;
  }
}

// Updates never race with each other, nor do volatile accesses of different warps: they are how threads signal. Within a
// warp, volatile was once thought to be enough, and is not.
static bool agree(const Access& earlier, const Access& now) {
  if (earlier.manner == Manner::Update && now.manner == Manner::Update) return true;
  bool one_warp = earlier.epoch >= running.block_epoch && earlier.thread / 32 == now.thread / 32;
  return !plain(earlier.manner) && !plain(now.manner) && !one_warp;
}

static void check_cell(Cell& cell, const Access& now, bool write, Conflict conflict_template) {
  auto against = [&](const Access& earlier, bool earlier_writes) {
    if (!earlier.epoch || agree(earlier, now)) return;
    Relation how = relation(earlier, conflict_template.shared);
    if (how == Relation::Ordered) return;
    Conflict conflict{earlier,
                      earlier_writes,
                      write,
                      conflict_template.shared,
                      conflict_template.offset,
                      conflict_template.address,
                      conflict_template.bytes,
                      conflict_template.site};
    if (now.manner == Manner::Update) conflict.bytes = sizeof pending.before + 1;  // an atomic update changes the value
    found(conflict, how);
  };
  bool shared = conflict_template.shared;
  if (shared && (!write || now.manner == Manner::Update) && cell.writer.epoch < running.block_epoch) {
    if (!unwritten.armed) {
      unwritten = {true, kAccessesToWait, conflict_template.offset,
                   "reads uninitialised shared memory (" + place_name(shared, conflict_template.offset, conflict_template.address) + ") at @0, " +
                       thread_name(*current) + ", " + block_name(),
                   conflict_template.site};
    }
  }
  against(cell.writer, true);
  if (write) {
    against(cell.reader, false);
    against(cell.other_reader, false);
    // A thread's own atomic update after its plain write does not make that write an atomic one.
    bool covers_plain = cell.writer.epoch == now.epoch && cell.writer.thread == now.thread && plain(cell.writer.manner) && !plain(now.manner);
    if (!covers_plain) cell.writer = now;
  } else {
    remember_reader(cell, now);
  }
}

static std::vector<Cell>& split(Cell& cell) {
  if (!cell.split) {
    split_cells.emplace_back(4, cell);
    cell.split = static_cast<uint32_t>(split_cells.size());
  }
  return split_cells[cell.split - 1];
}

void race_check(bool shared, size_t offset, void* address, unsigned bytes, Manner manner, const void* site) {
  settle_pending_write();
  if (unwritten.armed && !--unwritten.accesses_left) settle_unwritten_read();
  auto site_offset = static_cast<uint32_t>(static_cast<const char*>(site) - candidate.base);
  Access now{running.epoch, clocks[current->linear][current->lane], site_offset, static_cast<uint16_t>(current->linear), manner};
  bool write = writes(manner);
  Conflict conflict{now, false, write, shared, offset, static_cast<char*>(address), bytes, site};
  Cell* cells = shared ? shared_cells : global_cells;
  for (size_t byte = offset; byte < offset + bytes;) {
    Cell& cell = cells[byte / 4];
    size_t in_word = byte % 4, part = std::min<size_t>(4 - in_word, offset + bytes - byte);
    if (part == 4 && !cell.split) {
      check_cell(cell, now, write, conflict);
    } else {
      std::vector<Cell>& own = split(cell);
      for (size_t i = in_word; i < in_word + part; i++) check_cell(own[i], now, write, conflict);
    }
    byte += part;
  }
}

}  // namespace regraph
