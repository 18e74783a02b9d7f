// Counting for the model: some blocks of a launch run, their accesses are logged by thread and replayed by warp, and the
// sums go into the report as one line of JSON for each launch.
#include "counts.h"

#include <cmath>
#include <cstring>

#include "replay.h"

namespace regraph {

constexpr size_t kLogged = 8192;       // records of a thread between two barriers; the rest is weighed in
constexpr size_t kBasicBlocks = 4096;  // of a candidate
// What the sampled blocks of a launch, and of a call, may do: accesses and basic blocks of all threads. Counted and not
// timed, so that the same candidate gives the same counts on a slow machine.
constexpr uint64_t kEventsPerLaunch = 24'000'000, kEventsPerCall = 48'000'000;
constexpr uint64_t kLeastBlocks = 2;  // of a launch, whatever they do: one alone would not show how much blocks differ
constexpr uint32_t kMostLaunches = 512;
constexpr size_t kSitesReported = 12;
// Of the GPU that the candidate is counted for; the driver is told.
static double shared_per_multiprocessor = 233472, l2_bytes = 50e6;

static Replay replay;
static std::vector<std::vector<Record>> logs(1024);
static std::vector<uint64_t> dropped(1024);
static std::vector<uint16_t> site_numbers, block_numbers;  // by offset in the image
static std::vector<uint32_t> site_offsets, block_offsets;
static std::vector<uint32_t> passed;         // how often each thread of the block entered each basic block
static std::vector<double> block_entries;    // warp-wide, by basic block
static std::vector<double> work_of_block;    // groups and basic blocks of each sampled block, for their spread
static std::map<uint64_t, double> footprint; // bytes touched, by allocation
static double work_before = 0;
static uint64_t events_of_launch = 0, events_before = 0;  // of this launch; of the launches before
static uint64_t blocks_of_launch = 0, sampled_blocks = 0, blocks_done = 0;
static uint32_t launches = 0;

void counts_configure(double shared_bytes, double l2) {
  shared_per_multiprocessor = shared_bytes;
  l2_bytes = l2;
}

static uint16_t number_of(std::vector<uint16_t>& numbers, std::vector<uint32_t>& offsets, const void* site) {
  auto offset = static_cast<size_t>(static_cast<const char*>(site) - candidate.image);
  if (numbers.empty()) numbers.assign(static_cast<size_t>(candidate.image_end - candidate.image), 0);
  if (offset >= numbers.size()) return 0;
  if (!numbers[offset] && offsets.size() < kBasicBlocks) {
    if (offsets.empty()) offsets.push_back(0);
    numbers[offset] = static_cast<uint16_t>(offsets.size());
    offsets.push_back(static_cast<uint32_t>(static_cast<const char*>(site) - candidate.base));
  }
  return numbers[offset];
}

// -- a launch

static double resident_blocks() {
  double warps = (running.threads + 31) / 32;
  double shared = static_cast<double>(candidate.shared_bytes + running.dynamic_bytes) + 1024;
  return std::max(1.0, std::floor(std::min({32.0, 64.0 / warps, shared_per_multiprocessor / shared})));
}

uint64_t counts_begin(uint64_t blocks) {
  if (++launches > kMostLaunches) fault("unsupported", "no model: it launches more than 512 kernels in one call");
  replay.begin_launch();
  block_entries.assign(kBasicBlocks, 0);
  // Every block leaves it zeroed, so that a launch pays for it only when it is the largest so far.
  passed.resize(std::max(passed.size(), static_cast<size_t>(running.threads) * kBasicBlocks));
  work_of_block.clear();
  footprint.clear();
  events_before += events_of_launch;
  events_of_launch = 0;
  blocks_of_launch = blocks;
  blocks_done = 0;
  unsigned wanted = running.threads >= 512 ? std::max(4u, options.sampled_blocks / 2) : options.sampled_blocks;
  sampled_blocks = std::min<uint64_t>(blocks, wanted);
  return sampled_blocks;
}

// Spread over the grid, and not in its order: a launch that is stopped early has still seen blocks from all of it.
uint64_t counts_block(uint64_t index) {
  index = index * 11 % sampled_blocks;
  return static_cast<uint64_t>((static_cast<double>(index) + 0.5) * static_cast<double>(blocks_of_launch) / static_cast<double>(sampled_blocks));
}

void counts_begin_block() {
  double multiprocessors = options.multiprocessors, blocks = static_cast<double>(blocks_of_launch);
  double active = std::max(1.0, std::min(resident_blocks(), std::ceil(blocks / multiprocessors)));
  double shared = static_cast<double>(candidate.shared_bytes + running.dynamic_bytes) + 1024;
  double l1 = std::max(32768.0, shared_per_multiprocessor - active * shared) / active;
  replay.begin_block(std::max(2048.0, l1), l2_bytes / std::min(blocks, multiprocessors * active));
  work_before = replay.sums.groups;
}

bool counts_enough() {
  bool spent = events_before > kEventsPerCall || events_of_launch > kEventsPerLaunch;
  return spent && blocks_done >= kLeastBlocks;
}

static void flush() {
  uint64_t kept = 0, lost = 0;
  for (int i = 0; i < running.threads; i++) {
    auto thread = static_cast<size_t>(i);
    kept += logs[thread].size();
    lost += dropped[thread];
    dropped[thread] = 0;
  }
  if (kept) replay.run(logs, running.threads, 1.0 + static_cast<double>(lost) / static_cast<double>(kept));
}

void counts_barrier() {
  flush();
  replay.sums.barriers += (running.threads + 31) / 32;
}

void counts_collective(Fiber* warp, uint32_t lanes, Collective) {
  replay.sums.meetings++;
  for (uint32_t left = lanes; left; left &= left - 1) {
    auto& log = logs[warp[__builtin_ctz(left)].linear];
    if (log.size() < kLogged) log.emplace_back(0, Group::Meeting, 1, 0);
  }
}

static Group group_of(Space space, Manner manner) {
  bool atomic = manner == Manner::Update, write = writes(manner);
  if (space == Space::Constant) return Group::Constant;
  if (space == Space::Global) return atomic ? Group::GlobalAtomic : write ? Group::GlobalWrite : Group::GlobalRead;
  return atomic ? Group::SharedAtomic : write ? Group::SharedWrite : Group::SharedRead;
}

void counts_access(Space space, uint64_t offset, unsigned bytes, Manner manner, const void* site) {
  auto& log = logs[current->linear];
  events_of_launch++;
  if (log.size() >= kLogged) {
    dropped[current->linear]++;
    return;
  }
  log.emplace_back(number_of(site_numbers, site_offsets, site), group_of(space, manner), bytes, offset);
}

// Allocations are told apart by the page they begin in.
static uint64_t allocation_of(uint64_t line) {
  const Allocation* allocation = allocation_at(arena_start() + line * Cache::kLineBytes);
  return allocation ? arena_offset(allocation->start) + 1 : 0;
}

void counts_end_block() {
  flush();
  blocks_done++;
  double entered = 0;
  size_t known = block_offsets.size();
  for (int first = 0; first < running.threads; first += 32) {
    for (size_t block = 1; block < known; block++) {
      uint32_t most = 0;
      for (int i = first; i < std::min(running.threads, first + 32); i++) {
        uint32_t& count = passed[static_cast<size_t>(i) * kBasicBlocks + block];
        most = std::max(most, count);
        count = 0;
      }
      block_entries[block] += most;
      entered += most;
    }
  }
  work_of_block.push_back(entered + replay.sums.groups - work_before);
  for (const auto& [line, sectors] : replay.touched) footprint[allocation_of(line)] += 32.0 * __builtin_popcount(sectors);
  for (auto& [line, updates] : replay.atomic_lines) {
    if (updates > 0 && replay.touched.count(line)) replay.atomic_blocks[line]++;
  }
}

// -- the report

static std::string number(const char* name, double value) { return text(",\"%s\":%.9g", name, value); }

static double spread_of_work() {
  double sum = 0, squares = 0, count = static_cast<double>(work_of_block.size());
  for (double work : work_of_block) sum += work, squares += work * work;
  double mean = sum / count;
  return mean > 0 ? std::sqrt(std::max(0.0, squares / count - mean * mean)) / mean : 0;
}

// Updates of the line that is updated most, over the whole launch: a line that several blocks update is updated by all.
static double hottest_line(double scale) {
  double hottest = 0;
  for (const auto& [line, updates] : replay.atomic_lines) {
    auto blocks = replay.atomic_blocks.find(line);
    bool common = blocks != replay.atomic_blocks.end() && blocks->second > 1;
    hottest = std::max(hottest, updates * (common ? scale : 1.0));
  }
  return hottest;
}

static std::string sites_json(double scale) {
  std::vector<uint32_t> order;
  for (uint32_t site = 1; site < replay.sites.size(); site++) {
    if (replay.sites[site].requests > 0) order.push_back(site);
  }
  auto cost = [](const SiteSums& site) { return site.sectors + site.waves * 4 + site.updates * 4; };
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return cost(replay.sites[a]) > cost(replay.sites[b]); });
  if (order.size() > kSitesReported) order.resize(kSitesReported);
  static const char* names[] = {"global load", "global store", "global atomic", "shared load", "shared store", "shared atomic", "constant load", ""};
  std::string json = ",\"sites\":[";
  for (uint32_t number : order) {
    const SiteSums& site = replay.sites[number];
    json += text("%s{\"at\":%u,\"kind\":\"%s\",\"requests\":%.9g,\"sectors\":%.9g,\"bytes\":%.9g,\"waves\":%.9g,\"conflicts\":%.9g,\"updates\":%.9g}",
                 json.back() == '[' ? "" : ",", site_offsets[number], names[static_cast<int>(site.kind)], site.requests * scale, site.sectors * scale,
                 site.bytes * scale, site.waves * scale, site.conflicts * scale, site.updates * scale);
  }
  return json + "]";
}

static std::string basic_blocks_json(double scale) {
  std::string json = ",\"basic_blocks\":{";
  for (size_t block = 1; block < block_offsets.size(); block++) {
    if (block_entries[block] > 0) json += text("%s\"%u\":%.9g", json.back() == '{' ? "" : ",", block_offsets[block], block_entries[block] * scale);
  }
  return json + "}";
}

void counts_end() {
  double scale = static_cast<double>(blocks_of_launch) / static_cast<double>(blocks_done);
  double touched = 0, distinct = 0;
  for (const auto& [allocation, bytes] : footprint) {
    const Allocation* known = allocation ? allocation_at(arena_start() + allocation - 1) : nullptr;
    touched += bytes * scale;
    distinct += known ? std::min(bytes * scale, static_cast<double>(known->bytes)) : bytes;
  }
  const Sums& s = replay.sums;
  std::string json = text("{\"kernel\":\"%s\",\"address\":%ld,\"blocks\":%lu,\"threads\":%d,\"sampled\":%lu,\"dynamic_shared\":%zu", running.launch.kernel,
                          running.launch.address ? static_cast<long>(static_cast<const char*>(running.launch.address) - candidate.base) : 0L,
                          blocks_of_launch, running.threads, blocks_done, running.dynamic_bytes);
  json += number("spread", spread_of_work()) + number("hottest_line", hottest_line(scale)) + number("footprint", distinct) + number("block_footprints", touched);
  const std::pair<const char*, double> fields[] = {
      {"loads", s.loads}, {"stores", s.stores}, {"atomics", s.atomics}, {"read_sectors", s.read_sectors}, {"write_sectors", s.write_sectors},
      {"passes", s.passes}, {"l1_misses", s.l1_misses}, {"l2_read_misses", s.l2_read_misses}, {"l2_write_misses", s.l2_write_misses},
      {"useful_bytes", s.useful_bytes}, {"shared", s.shared}, {"waves", s.waves}, {"conflicts", s.conflicts},
      {"shared_atomic_waves", s.shared_atomic_waves}, {"atomic_updates", s.atomic_updates}, {"atomic_lanes", s.atomic_lanes},
      {"constants", s.constants}, {"barriers", s.barriers}, {"meetings", s.meetings}, {"shared_waits", s.shared_waits}, {"groups", s.groups}, {"lanes", s.lanes},
      {"near1", s.near[0]}, {"middle1", s.middle[0]}, {"far1", s.far[0]}, {"near4", s.near[1]}, {"middle4", s.middle[1]}, {"far4", s.far[1]},
      {"near16", s.near[2]}, {"middle16", s.middle[2]}, {"far16", s.far[2]}};
  for (const auto& [name, value] : fields) json += number(name, value * scale);
  report_line("launch " + json + sites_json(scale) + basic_blocks_json(scale) + "}");
}

void counts_memset(size_t bytes) { report_line(text("launch {\"memset\":%zu}", bytes)); }

static void enter_basic_block(const void* site) {
  if (!current || !options.counted) return;
  events_of_launch++;
  passed[static_cast<size_t>(current->linear) * kBasicBlocks + number_of(block_numbers, block_offsets, site)]++;
}

}  // namespace regraph

extern "C" void __sanitizer_cov_trace_pc() { regraph::enter_basic_block(__builtin_return_address(0)); }
