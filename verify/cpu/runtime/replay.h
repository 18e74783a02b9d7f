// What one warp does to memory, group by group: the lanes that execute one access together.
#pragma once
#include <map>
#include <unordered_map>

#include "cache.h"
#include "counts.h"

namespace regraph {

enum class Group : uint8_t { GlobalRead, GlobalWrite, GlobalAtomic, SharedRead, SharedWrite, SharedAtomic, Constant, Meeting };

// Sums over the sampled blocks of a launch. Requests are warp-wide instructions, sectors are of 32 bytes.
struct Sums {
  double loads = 0, stores = 0, atomics = 0;             // requests to global memory
  double read_sectors = 0, write_sectors = 0;            // that the requests touch
  double passes = 0;                                     // turns of the load/store unit for them
  double l1_misses = 0, l2_read_misses = 0, l2_write_misses = 0;  // sectors
  double useful_bytes = 0;                               // that lanes asked for
  double shared = 0, waves = 0, conflicts = 0;           // shared-memory requests, their turns, turns beyond the least
  double shared_atomic_waves = 0;
  double atomic_updates = 0, atomic_lanes = 0;           // after lanes with one address are combined; before
  double constants = 0, barriers = 0, meetings = 0;      // meetings are warp operations
  double shared_waits = 0;                               // waits for a batch of loads from shared memory
  double groups = 0, lanes = 0;                          // of all requests
  // Waits for a batch of loads from L1, L2, DRAM, when 1, 4 or 16 loads of one place are under way at once.
  double near[3] = {}, middle[3] = {}, far[3] = {};
};

// The same for one place in the source.
struct SiteSums {
  Group kind{};
  double requests = 0, sectors = 0, bytes = 0, waves = 0, conflicts = 0, updates = 0;
};

// One access of one lane, packed.
class Record {
 public:
  Record(uint32_t site, Group kind, unsigned bytes, uint64_t offset)
      : bits_(static_cast<uint64_t>(site) << 48 | static_cast<uint64_t>(kind) << 44 | static_cast<uint64_t>(__builtin_ctz(bytes)) << 40 | (offset & 0xFFFFFFFFFFull)) {}
  uint32_t site() const { return static_cast<uint32_t>(bits_ >> 48); }
  Group kind() const { return static_cast<Group>(bits_ >> 44 & 15); }
  unsigned bytes() const { return 1u << (bits_ >> 40 & 15); }
  uint64_t offset() const { return bits_ & 0xFFFFFFFFFFull; }
  // Lanes whose next accesses have the same key execute them together.
  uint32_t key() const { return static_cast<uint32_t>(bits_ >> 40); }

 private:
  uint64_t bits_;
};

class Replay {
 public:
  Sums sums;
  std::vector<SiteSums> sites;
  std::unordered_map<uint64_t, double> atomic_lines;     // updates of each line by the sampled blocks
  std::unordered_map<uint64_t, uint32_t> atomic_blocks;  // how many sampled blocks update it
  std::unordered_map<uint64_t, uint8_t> touched;         // sectors that the running block touches, by line

  void begin_launch();
  void begin_block(double l1_bytes, double l2_bytes);
  // All that `warps` warps did since the last barrier, interleaved; `weight` stands for what was dropped. Empties the logs.
  void run(std::vector<std::vector<Record>>& logs, int threads, double weight);

 private:
  // Loads of a warp that are under way together: how far the farthest has to go.
  struct Batch {
    int level = 0;
    std::vector<std::pair<uint32_t, int>> sites;
  };
  struct Warp {
    std::vector<size_t> next;
    Batch batches[3];
    bool shared = false;  // a load from shared memory is under way
    bool done = false;
  };
  Cache l1_, l2_;

  void step(Warp& warp, std::vector<Record>* logs, int lanes, double weight);
  void group(Warp& warp, const Record& first, const uint64_t* offsets, int lanes, double weight);
  void global(Warp& warp, const Record& first, const uint64_t* offsets, int lanes, double weight);
  void global_read(Warp& warp, uint32_t site, const std::vector<std::pair<uint64_t, uint8_t>>& lines, double weight);
  void global_atomic(const uint64_t* offsets, int lanes, SiteSums& site, double weight);
  void shared(Warp& warp, const Record& first, const uint64_t* offsets, int lanes, double weight);
  void close(int depth, Batch& batch, double weight);
  void close(Warp& warp, double weight);
};

}  // namespace regraph
