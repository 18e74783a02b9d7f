// Simulated threads as fibers of one OS thread: launches, blocks, barriers and warp-wide operations.
#include <algorithm>
#include <cstring>
#include <map>
#include <sys/mman.h>
#include <x86intrin.h>

#include "counts.h"
#include "runtime.h"

extern "C" void regraph_switch(void** save, void* load);
// Saves what a C++ function may not change, swaps stacks, restores. The floating-point control words are never changed.
asm(".text\n.globl regraph_switch\n.type regraph_switch,@function\nregraph_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
    ".size regraph_switch,.-regraph_switch\n");

namespace regraph {

Options options;
Running running;
Fiber* current = nullptr;
Fiber* fibers = nullptr;

constexpr int kMostThreads = 1024;
constexpr uint32_t kSpinsBeforeGivingWay = 256;
constexpr size_t kStaticAndDynamicLimit = 232448, kDynamicDefaultLimit = 49152;
constexpr int kInvalidValue = 1, kInvalidConfiguration = 9;

static Fiber all_fibers[kMostThreads];
static Clock all_clocks[kMostThreads];
Clock* clocks = all_clocks;
static std::vector<char*> free_stacks;
static int stacks_made = 0;
static void* scheduler = nullptr;
static uint16_t order[kMostThreads];
static uint64_t random_state = 1;
static int error = 0;
static std::map<const void*, int> dynamic_limits;
static int largest_dynamic_limit = kDynamicDefaultLimit;

int last_error() { return error; }
void set_error(int value) { if (value) error = value; }
int take_error() {
  int value = error;
  error = 0;
  return value;
}

static std::string refused_launch;
void describe_launch_error(const std::string& what) { refused_launch = what; }
const std::string& launch_error() { return refused_launch; }

static uint32_t random_below(uint32_t bound) {
  random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
  return static_cast<uint32_t>((random_state >> 33) % bound);
}

// -- switching

void to_scheduler() {
  if (options.checked) settle_pending_write();
  current->spins = 0;
  regraph_switch(&current->stack_pointer, scheduler);
}

static char* take_stack() {
  if (!free_stacks.empty()) {
    char* stack = free_stacks.back();
    free_stacks.pop_back();
    return stack;
  }
  auto* stack = static_cast<char*>(mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (stack == MAP_FAILED) fault("harness_error", "no memory for the stacks of simulated threads");
  mprotect(stack, kPage, PROT_NONE);
  stacks_made++;
  return stack;
}

static void finish_thread();
static void thread_entry() {
  running.body(running.context);
  finish_thread();
}

static void start(Fiber* fiber) {
  fiber->stack = take_stack();
  // Tops at different distances from a page's end, so that the threads' frames do not fall into the same cache sets.
  size_t colour = (reinterpret_cast<uintptr_t>(fiber->stack) / kStackBytes % 32) * 192;
  auto** top = reinterpret_cast<void**>(fiber->stack + kStackBytes - 64 - colour / 16 * 16);
  top = reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t(15)) - 1;
  *top = nullptr;
  *--top = reinterpret_cast<void*>(thread_entry);
  for (int saved = 0; saved < 6; saved++) *--top = nullptr;
  fiber->stack_pointer = top;
}

static void resume(Fiber* fiber) {
  current = fiber;
  *candidate.thread = fiber->index;
  if (fiber->state == State::New) start(fiber);
  fiber->state = State::Ready;
  regraph_switch(&scheduler, fiber->stack_pointer);
  current = nullptr;
  if (fiber->state == State::Done) {
    free_stacks.push_back(fiber->stack);
    fiber->stack = nullptr;
  }
}

// -- barriers

static void release_barrier() {
  if (options.checked) settle_unwritten_read();
  running.released_votes = running.votes;
  running.released_alive = running.waiting;
  running.votes = running.waiting = 0;
  running.epoch++;
  if (options.counted) counts_barrier();
  running.barriers++;
}

int barrier(bool predicate, int* alive) {
  if (!current) fault("runtime_error", "host code calls __syncthreads()");
  current->site = __builtin_return_address(0);
  running.votes += predicate;
  current->state = State::AtBarrier;
  current->barriers = running.barriers;
  if (options.checked) settle_pending_write();
  if (++running.waiting == running.alive) release_barrier();
  to_scheduler();
  if (alive) *alive = running.released_alive;
  return running.released_votes;
}

static void finish_thread() {
  Fiber* me = current;
  if (options.checked) settle_pending_write();
  me->state = State::Done;
  running.alive--;
  if (running.waiting && running.waiting == running.alive) release_barrier();
  int lanes;
  Fiber* warp = warp_of(me, &lanes);
  for (int lane = 0; lane < lanes; lane++) {
    if (warp[lane].state == State::AtCollective) try_collective(warp, lanes, warp[lane].mask);
  }
  to_scheduler();
}

// -- blocks

[[noreturn]] static void report_deadlock() {
  const Fiber *at_barrier = nullptr, *at_collective = nullptr;
  int barriers = 0, collectives = 0, done = 0;
  for (int i = 0; i < running.threads; i++) {
    const Fiber& fiber = fibers[i];
    if (fiber.state == State::AtBarrier) barriers++, at_barrier = at_barrier ? at_barrier : &fiber;
    if (fiber.state == State::AtCollective) collectives++, at_collective = at_collective ? at_collective : &fiber;
    if (fiber.state == State::Done) done++;
  }
  std::string where = text("%d threads wait at __syncthreads(), %d at a warp operation, %d have ended", barriers, collectives, done);
  std::string message = "divergent barrier: " + where;
  std::vector<const void*> sites;
  if (at_barrier) message += ", " + thread_name(*at_barrier) + " at @0", sites.push_back(at_barrier->site);
  if (at_collective) {
    message += ", " + thread_name(*at_collective) + text(" at @%zu with mask %08x", sites.size(), at_collective->mask);
    sites.push_back(at_collective->site);
  }
  fault("runtime_error", message + ", " + block_name(), sites);
}

static void shuffle_order() {
  for (int i = running.threads - 1; i > 0; i--) std::swap(order[i], order[random_below(static_cast<uint32_t>(i) + 1)]);
}

static void fill_shared() {
  if (candidate.shared_bytes) memset(candidate.shared, 0xFF, candidate.shared_bytes);
  if (running.dynamic_bytes) memset(running.dynamic, 0xFF, running.dynamic_bytes);
}

static void run_block() {
  running.alive = running.threads;
  running.waiting = running.votes = 0;
  running.block_epoch = ++running.epoch;
  for (int i = 0; i < running.threads; i++) {
    Fiber& fiber = fibers[i];
    fiber.state = State::New;
    fiber.site = nullptr;
    fiber.fenced = fiber.published = fiber.acquired = false;
    if (options.checked) {
      memset(clocks[i], 0, sizeof clocks[i]);
      clocks[i][fiber.lane] = 1;
    }
  }
  fill_shared();
  while (running.alive) {
    bool progress = false;
    if (options.shuffled) shuffle_order();
    for (int i = 0; i < running.threads; i++) {
      Fiber* fiber = &fibers[order[i]];
      bool released = fiber->state == State::AtBarrier && fiber->barriers != running.barriers;
      if (fiber->state > State::Ready && !released) continue;
      resume(fiber);
      progress = true;
    }
    if (!progress && !resolve_active_masks()) report_deadlock();
  }
  if (options.checked) settle_unwritten_read(), forget_races_of_block();
}

// -- launches

int set_dynamic_shared_limit(const void* kernel, int bytes) {
  if (bytes < 0 || static_cast<size_t>(bytes) > kStaticAndDynamicLimit) {
    set_error(kInvalidValue);
    return kInvalidValue;
  }
  dynamic_limits[kernel] = bytes;
  largest_dynamic_limit = std::max(largest_dynamic_limit, bytes);
  return 0;
}

static bool valid(const Configuration& launch) {
  uint64_t threads = static_cast<uint64_t>(launch.block[0]) * launch.block[1] * launch.block[2];
  if (!threads || threads > kMostThreads || launch.block[2] > 64) return false;
  if (!launch.grid[0] || !launch.grid[1] || !launch.grid[2] || launch.grid[0] > 0x7fffffffu) return false;
  return launch.grid[1] <= 65535 && launch.grid[2] <= 65535;
}

static size_t dynamic_limit(const Configuration& launch) {
  if (!launch.address) return static_cast<size_t>(largest_dynamic_limit);
  auto known = dynamic_limits.find(launch.address);
  return known == dynamic_limits.end() ? kDynamicDefaultLimit : static_cast<size_t>(std::max<int>(known->second, kDynamicDefaultLimit));
}

// The dynamic shared memory of a launch, up to a page that cannot be touched.
static char* dynamic_memory(size_t bytes) {
  constexpr size_t most = (kStaticAndDynamicLimit + kPage - 1) / kPage * kPage;
  static char* pages = nullptr;
  if (!pages) {
    pages = static_cast<char*>(mmap(nullptr, most + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(pages + most, kPage, PROT_NONE);
  }
  return pages + most - (bytes + 127) / 128 * 128;
}

static void prepare(const Configuration& launch) {
  running.launch = launch;
  running.threads = static_cast<int>(launch.block[0] * launch.block[1] * launch.block[2]);
  running.launch_epoch = running.epoch + 1;
  running.dynamic_bytes = launch.shared;
  running.dynamic = dynamic_memory(launch.shared);
  fibers = all_fibers;
  *candidate.block_size = {launch.block[0], launch.block[1], launch.block[2]};
  *candidate.grid_size = {launch.grid[0], launch.grid[1], launch.grid[2]};
  for (int i = 0; i < running.threads; i++) {
    Fiber& fiber = fibers[i];
    auto linear = static_cast<uint32_t>(i);
    fiber.linear = linear;
    fiber.index = {linear % launch.block[0], linear / launch.block[0] % launch.block[1], linear / (launch.block[0] * launch.block[1])};
    fiber.lane = static_cast<uint8_t>(i % 32);
    fiber.warp = static_cast<uint16_t>(i / 32);
    order[i] = static_cast<uint16_t>(i);
  }
  random_state = options.seed * 7919 + 12345;
}

void launch(const Configuration& launch, void (*body)(void*), void* context) {
  if (current) fault("unsupported", "dynamic parallelism: a kernel is launched by a kernel");
  if (!valid(launch) || launch.shared > dynamic_limit(launch)) {
    set_error(!valid(launch) ? kInvalidConfiguration : kInvalidValue);
    describe_launch_error(text("%s with grid (%u,%u,%u) block (%u,%u,%u) %zu bytes of dynamic shared memory, line %u", launch.kernel, launch.grid[0],
                     launch.grid[1], launch.grid[2], launch.block[0], launch.block[1], launch.block[2], launch.shared, launch.line));
    return;
  }
  usage.launches++;
  prepare(launch);
  running.body = body;
  running.context = context;
  open_device();
  uint64_t blocks = static_cast<uint64_t>(launch.grid[0]) * launch.grid[1] * launch.grid[2];
  uint64_t sampled = options.counted ? counts_begin(blocks) : blocks;
  for (uint64_t i = 0; i < sampled; i++) {
    uint64_t number = sampled == blocks ? i : counts_block(i);
    running.block_number = number;
    running.block = {static_cast<uint32_t>(number % launch.grid[0]), static_cast<uint32_t>(number / launch.grid[0] % launch.grid[1]),
                     static_cast<uint32_t>(number / (static_cast<uint64_t>(launch.grid[0]) * launch.grid[1]))};
    *candidate.block = running.block;
    if (options.counted) counts_begin_block();
    run_block();
    if (options.counted) counts_end_block();
    if (options.counted && counts_enough()) break;
  }
  if (options.counted) counts_end();
  close_device();
  running.dynamic_bytes = 0;
}

// -- what else a kernel can ask

unsigned lane() { return current ? current->lane : 0; }
unsigned linear_thread() { return current ? current->linear : 0; }
unsigned block_threads() { return static_cast<unsigned>(running.threads); }
void* dynamic_shared() { return running.dynamic; }
unsigned dynamic_shared_bytes() { return static_cast<unsigned>(running.dynamic_bytes); }
long long ticks() { return static_cast<long long>(__rdtsc()); }

void give_way() {
  if (current) to_scheduler();
}

void fence() {
  if (!current) return;
  current->fenced = true;
  if (++current->spins > kSpinsBeforeGivingWay) to_scheduler();
}

void trap(const char* what) {
  fault("runtime_error", std::string(what) + " was called at @0" + (current ? ", " + thread_name(*current) + ", " + block_name() : ""), {__builtin_return_address(0)});
}

int occupancy(int block_threads, size_t dynamic_shared) {
  if (block_threads <= 0 || block_threads > kMostThreads) return 0;
  size_t shared = candidate.shared_bytes + dynamic_shared + 1024;
  return static_cast<int>(std::max<size_t>(1, std::min<size_t>({32, 2048 / ((static_cast<size_t>(block_threads) + 31) / 32 * 32), 233472 / shared})));
}

}  // namespace regraph
