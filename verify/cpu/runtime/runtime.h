// What the parts of the driver share: the simulated threads, the running block, the options of this run.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "include/regraph/interface.h"

namespace regraph {

struct Triple {
  uint32_t x, y, z;
};

enum class State : uint8_t { New, Ready, AtBarrier, AtCollective, AtActiveMask, Done };

// One simulated thread.
struct Fiber {
  void* stack_pointer = nullptr;
  char* stack = nullptr;  // lowest address
  Triple index{};         // threadIdx
  uint32_t linear = 0;
  uint16_t warp = 0;
  uint8_t lane = 0;
  State state = State::New;
  // The collective that it waits at.
  Collective operation{};
  uint32_t mask = 0;
  int source = 0;
  uint64_t value = 0, result = 0;
  void* site = nullptr;  // where it waits, or its latest atomic operation
  uint32_t spins = 0;    // atomic operations since it last gave way
  uint32_t barriers = 0; // of the block, that were over when it came to the one it waits at
  // For the race check: how it took part in ordering by fences and atomics.
  bool fenced = false, published = false, acquired = false;
};
// For the race check, by thread and lane of its warp: how many collectives of that lane the thread knows to be over.
using Clock = uint32_t[32];
extern Clock* clocks;

// The launch and the block that run now.
struct Running {
  Configuration launch{};
  int threads = 0, alive = 0, waiting = 0;
  Triple block{};            // blockIdx
  uint64_t block_number = 0; // linear, within the launch
  uint32_t epoch = 0;        // counts barriers over all blocks and launches; never reused
  uint32_t launch_epoch = 0, block_epoch = 0;  // the first epochs of the launch and of the block
  uint32_t barriers = 0;  // that are over
  int votes = 0, released_votes = 0, released_alive = 0;
  char* dynamic = nullptr;
  size_t dynamic_bytes = 0;
  void (*body)(void*) = nullptr;
  void* context = nullptr;
};

// How this run goes; read from the call file.
struct Options {
  bool checked = false;    // the candidate is instrumented: races and exact bounds
  bool counted = false;    // and its accesses are counted for the model
  bool shuffled = false;   // threads go on in random order
  unsigned sampled_blocks = 0;  // of a launch; 0 runs them all
  uint64_t seed = 1;
  size_t arena = 0;        // bytes of device memory that may be mapped
  bool host_pointers = false;   // abi = host
  int multiprocessors = 132;
};

extern Options options;
extern Running running;
extern Fiber* current;  // null while host code runs
extern Fiber* fibers;   // of the running block, by linear thread number
constexpr size_t kStackBytes = 256 * 1024;
constexpr size_t kPage = 4096;

// -- candidate.cpp: the loaded library
struct Symbol {
  uint64_t offset, size;
  bool constant;  // __constant__
  std::string name;
};
struct Candidate {
  char* base = nullptr;
  char *image = nullptr, *image_end = nullptr;        // all its segments
  char *writable = nullptr, *writable_end = nullptr;  // the one with its variables
  char* shared = nullptr;                       // static shared memory
  size_t shared_bytes = 0;
  std::vector<Symbol> variables;         // by address offset
  std::vector<Symbol> shared_variables;  // by offset in the segment
  uint64_t function = 0;
  Triple *thread = nullptr, *block = nullptr, *block_size = nullptr, *grid_size = nullptr;
};
extern Candidate candidate;
bool load_candidate(const char* path);
const Symbol* variable_at(uint64_t offset);

// -- report.cpp: what the parent reads. `@N` in a message stands for the source line of sites[N].
[[noreturn]] void fault(const char* kind, const std::string& message, const std::vector<const void*>& sites = {});
void report_line(const std::string& line);
void report_to(const char* path);
void keep_nonce(const std::string& nonce);
[[noreturn]] void finish();
std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));
std::string thread_name(const Fiber& fiber);
std::string block_name();
void catch_signals();

// -- memory.cpp: device memory
struct Allocation {
  char* start;
  size_t bytes;
  bool live, managed, argument;
  int call;  // during which it was made
};
void open_arena();
void* allocate(size_t bytes, bool argument, bool managed);
bool release(void* pointer);
// The allocation, live or not, whose pages hold the address; null outside every one.
const Allocation* allocation_at(const void* address);
// Device pages are closed to host code: opened while a kernel or a copy runs.
void open_device();
void close_device();
bool in_arena(const void* address);
size_t arena_offset(const void* address);
char* arena_start();
// A file's bytes as an allocation, private to this process.
void* map_file(int file, size_t offset, size_t bytes);
void check_red_zones();
void end_of_call(int call);
// What the calls did, in bytes where it is not launches.
struct Usage {
  uint64_t launches = 0, host_to_argument = 0, argument_to_host = 0, set_on_device = 0;
};
extern Usage usage;
extern int call_number;

// -- access.cpp and races.cpp: called by the instrumentation
enum class Manner : uint8_t { Read, Write, VolatileRead, VolatileWrite, Update };  // an update is atomic
inline bool writes(Manner manner) { return manner != Manner::Read && manner != Manner::VolatileRead; }
inline bool plain(Manner manner) { return manner == Manner::Read || manner == Manner::Write; }
void race_check(bool shared, size_t offset, void* address, unsigned bytes, Manner manner, const void* site);
void settle_pending_write();
void settle_unwritten_read();  // at a barrier and at the end of a block: no write came that would make it a race
// What an earlier read of unwritten shared memory has to say, if there was one: whatever follows comes of it.
bool take_unwritten_read(std::string& message, std::vector<const void*>& sites);
void forget_races_of_block();
void open_shadow();
void joined(uint32_t lanes, Fiber* warp);

// -- fibers.cpp and collectives.cpp
void to_scheduler();
Fiber* warp_of(const Fiber* fiber, int* lanes);
void try_collective(Fiber* warp, int lanes, uint32_t mask);
bool resolve_active_masks();
int last_error();
void set_error(int error);
int take_error();
void describe_launch_error(const std::string& what);
const std::string& launch_error();
}  // namespace regraph
