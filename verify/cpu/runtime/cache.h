// A set-associative cache of 128-byte lines with 32-byte sectors, replaced least recently used first.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace regraph {

class Cache {
 public:
  static constexpr uint32_t kWays = 16, kLineBytes = 128;

  void reset(double bytes) {
    sets_ = static_cast<uint32_t>(std::max(1.0, bytes / kLineBytes / kWays));
    lines_.assign(static_cast<size_t>(sets_) * kWays, Line{});
    clock_ = 0;
  }

  // Which of the sectors in `wanted` (one bit each) are not there; they are then, if `keep` says so.
  uint8_t access(uint64_t line, uint8_t wanted, bool keep) {
    Line* set = &lines_[static_cast<size_t>((line * 0x9E3779B97F4A7C15ull >> 32) % sets_) * kWays];
    Line* oldest = set;
    clock_++;
    for (Line* way = set; way < set + kWays; way++) {
      if (way->tag == line) {
        uint8_t missing = static_cast<uint8_t>(wanted & ~way->sectors);
        if (keep) way->sectors |= wanted;
        way->used = clock_;
        return missing;
      }
      if (way->used < oldest->used) oldest = way;
    }
    if (keep) *oldest = {line, clock_, wanted};
    return wanted;
  }

 private:
  struct Line {
    uint64_t tag = ~0ull;
    uint32_t used = 0;
    uint8_t sectors = 0;
  };
  uint32_t sets_ = 1, clock_ = 0;
  std::vector<Line> lines_;
};

}  // namespace regraph
