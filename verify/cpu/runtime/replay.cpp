// Replays the logged accesses warp by warp: which lanes go together, which sectors they touch, where the data is found.
#include "replay.h"

#include <cstring>

namespace regraph {

// Loads from one place that a compiler has under way at once before their values are used: which, its code says.
constexpr int kLoadsInFlight[3] = {1, 4, 16};
constexpr uint32_t kMeetingKey = 0xFFFFFFFF;

void Replay::begin_launch() {
  sums = {};
  sites.clear();
  atomic_lines.clear();
  atomic_blocks.clear();
}

void Replay::begin_block(double l1_bytes, double l2_bytes) {
  l1_.reset(l1_bytes);
  l2_.reset(l2_bytes);
  touched.clear();
}

void Replay::close(int depth, Batch& batch, double weight) {
  if (batch.level == 1) sums.near[depth] += weight;
  else if (batch.level == 2) sums.middle[depth] += weight;
  else if (batch.level == 3) sums.far[depth] += weight;
  batch.level = 0;
  batch.sites.clear();
}

void Replay::close(Warp& warp, double weight) {
  if (warp.shared && !warp.batches[1].level) sums.shared_waits += weight;
  warp.shared = false;
  for (int depth = 0; depth < 3; depth++) close(depth, warp.batches[depth], weight);
}

void Replay::run(std::vector<std::vector<Record>>& logs, int threads, double weight) {
  int count = (threads + 31) / 32;
  std::vector<Warp> warps(static_cast<size_t>(count));
  for (Warp& warp : warps) warp.next.assign(32, 0);
  for (int live = count; live;) {
    for (int w = 0; w < count; w++) {
      Warp& warp = warps[static_cast<size_t>(w)];
      if (warp.done) continue;
      step(warp, &logs[static_cast<size_t>(w) * 32], std::min(32, threads - w * 32), weight);
      live -= warp.done;
    }
  }
  for (int i = 0; i < threads; i++) logs[static_cast<size_t>(i)].clear();
}

// One group of the warp: the lanes that are furthest behind in the code go first, which is how diverged lanes come together.
void Replay::step(Warp& warp, std::vector<Record>* logs, int lanes, double weight) {
  uint32_t best = kMeetingKey;
  const Record* first = nullptr;
  for (int lane = 0; lane < lanes; lane++) {
    if (warp.next[static_cast<size_t>(lane)] >= logs[lane].size()) continue;
    const Record& record = logs[lane][warp.next[static_cast<size_t>(lane)]];
    uint32_t key = record.kind() == Group::Meeting ? kMeetingKey - 1 : record.key();
    if (key < best) best = key, first = &record;
  }
  if (!first) {
    close(warp, weight);
    warp.done = true;
    return;
  }
  uint64_t offsets[32];
  int together = 0;
  uint32_t key = first->key();
  Record leader = *first;
  for (int lane = 0; lane < lanes; lane++) {
    size_t& next = warp.next[static_cast<size_t>(lane)];
    if (next < logs[lane].size() && logs[lane][next].key() == key) offsets[together++] = logs[lane][next++].offset();
  }
  group(warp, leader, offsets, together, weight);
}

void Replay::group(Warp& warp, const Record& first, const uint64_t* offsets, int lanes, double weight) {
  sums.groups += weight;
  sums.lanes += weight * lanes;
  switch (first.kind()) {
    case Group::Meeting: close(warp, weight); break;
    case Group::Constant: sums.constants += weight; break;
    case Group::GlobalRead: case Group::GlobalWrite: case Group::GlobalAtomic: global(warp, first, offsets, lanes, weight); break;
    default: shared(warp, first, offsets, lanes, weight);
  }
}

static SiteSums& site_of(std::vector<SiteSums>& sites, const Record& record) {
  if (sites.size() <= record.site()) sites.resize(record.site() + 1);
  SiteSums& site = sites[record.site()];
  site.kind = record.kind();
  return site;
}

void Replay::global(Warp& warp, const Record& first, const uint64_t* offsets, int lanes, double weight) {
  std::vector<std::pair<uint64_t, uint8_t>> lines;  // with the sectors of each
  unsigned bytes = first.bytes();
  for (int i = 0; i < lanes; i++) {
    uint64_t line = offsets[i] >> 7;
    auto sector = static_cast<uint8_t>(1u << (offsets[i] >> 5 & 3));
    auto known = std::find_if(lines.rbegin(), lines.rend(), [&](const auto& entry) { return entry.first == line; });
    if (known == lines.rend()) lines.emplace_back(line, sector);
    else known->second |= sector;
  }
  int sectors = 0;
  for (const auto& [line, mask] : lines) {
    sectors += __builtin_popcount(mask);
    touched[line] |= mask;
  }
  double passes = std::max<double>(static_cast<double>(lines.size()), (sectors + 3) / 4);
  if (bytes > 4) passes = std::max(passes, lanes * bytes / 128.0);
  sums.passes += weight * passes;
  sums.useful_bytes += weight * lanes * bytes;
  SiteSums& site = site_of(sites, first);
  site.requests += weight;
  site.sectors += weight * sectors;
  site.bytes += weight * lanes * bytes;
  if (first.kind() == Group::GlobalRead) {
    sums.loads += weight;
    sums.read_sectors += weight * sectors;
    global_read(warp, first.site(), lines, weight);
    return;
  }
  close(warp, weight);
  if (first.kind() == Group::GlobalWrite) {
    sums.stores += weight;
    sums.write_sectors += weight * sectors;
    for (const auto& [line, mask] : lines) {
      l1_.access(line, mask, false);
      sums.l2_write_misses += weight * __builtin_popcount(l2_.access(line, mask, true));
    }
  } else {
    sums.atomics += weight;
    sums.atomic_lanes += weight * lanes;
    global_atomic(offsets, lanes, site, weight);
  }
}

void Replay::global_read(Warp& warp, uint32_t site, const std::vector<std::pair<uint64_t, uint8_t>>& lines, double weight) {
  int level = 1;
  for (const auto& [line, mask] : lines) {
    uint8_t missing = l1_.access(line, mask, true);
    if (!missing) continue;
    uint8_t far = l2_.access(line, missing, true);
    sums.l1_misses += weight * __builtin_popcount(missing);
    sums.l2_read_misses += weight * __builtin_popcount(far);
    level = std::max(level, far ? 3 : 2);
  }
  for (int depth = 0; depth < 3; depth++) {
    Batch& batch = warp.batches[depth];
    auto known = std::find_if(batch.sites.begin(), batch.sites.end(), [&](const auto& entry) { return entry.first == site; });
    if (known == batch.sites.end()) {
      batch.sites.emplace_back(site, 1);
    } else if (++known->second > kLoadsInFlight[depth]) {
      close(depth, batch, weight);
      batch.sites.emplace_back(site, 1);
    }
    batch.level = std::max(batch.level, level);
  }
}

// Lanes that update one word are combined by addresses of a sector: the most frequent address of each sector decides.
void Replay::global_atomic(const uint64_t* offsets, int lanes, SiteSums& site, double weight) {
  std::map<uint64_t, std::map<uint64_t, int>> by_sector;
  for (int i = 0; i < lanes; i++) by_sector[offsets[i] >> 5][offsets[i]]++;
  for (const auto& [sector, addresses] : by_sector) {
    int most = 0;
    for (const auto& [address, count] : addresses) most = std::max(most, count);
    sums.atomic_updates += weight * most;
    site.updates += weight * most;
    atomic_lines[sector >> 2] += weight * most;
  }
}

// 32 banks of four bytes; accesses of eight and sixteen bytes go in two and four parts. Lanes that read one word share it.
void Replay::shared(Warp& warp, const Record& first, const uint64_t* offsets, int lanes, double weight) {
  unsigned bytes = first.bytes();
  int part = bytes >= 16 ? 8 : bytes == 8 ? 16 : 32;
  bool atomic = first.kind() == Group::SharedAtomic;
  double waves = 0;
  for (int start = 0; start < lanes; start += part) {
    std::vector<uint64_t> words[32];
    size_t most = 1;
    for (int i = start; i < std::min(lanes, start + part); i++) {
      for (unsigned word = 0; word < std::max(1u, bytes / 4); word++) {
        uint64_t index = offsets[i] / 4 + word;
        auto& bank = words[index & 31];
        if (atomic || std::find(bank.begin(), bank.end(), index) == bank.end()) bank.push_back(index);
        most = std::max(most, bank.size());
      }
    }
    waves += static_cast<double>(most);
  }
  double least = (lanes + part - 1) / part;
  sums.shared += weight;
  sums.waves += weight * waves;
  sums.conflicts += weight * (waves - least);
  if (atomic) sums.shared_atomic_waves += weight * waves;
  SiteSums& site = site_of(sites, first);
  site.requests += weight;
  site.waves += weight * waves;
  site.conflicts += weight * (waves - least);
  site.bytes += weight * lanes * bytes;
  if (first.kind() == Group::SharedRead) warp.shared = true;
  else if (atomic) close(warp, weight);
}

}  // namespace regraph
