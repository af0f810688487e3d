// The n-th execution of an instruction by each lane since the warp last met (at a barrier, or at an
// operation of all its lanes) is taken as one execution by the warp. Shared memory: 32 banks of 4
// bytes; a wavefront serves one word a bank, 16-byte accesses go a quarter warp at a time and
// 8-byte ones a half warp. Global memory: sectors of 32 bytes.
#include "test/emulator/Traffic.h"

#include "test/emulator/Block.h"
#include "test/emulator/Emulator.h"

#include <algorithm>
#include <compare>
#include <map>

namespace simt {
namespace {

struct Lane {
  uint64_t address;
  unsigned lane;
  int bytes;
};
struct Instruction {
  std::vector<std::vector<Lane>> executions;
  std::map<unsigned, size_t> since; ///< where the executions after each meeting begin
  size_t next[32] = {};             ///< the execution that each lane's next access is part of
  unsigned meetings[32] = {};       ///< of each lane at its last access
};
struct Totals {
  MemoryTraffic sum;
  Site site;
};

bool counting = false;
/// A copy from global to shared memory is two, at one place.
using Place = std::pair<uint64_t, bool>; ///< Site::key(), whether it is shared memory
struct Running {
  unsigned warp;
  const void *instruction;
  Place place;
  auto operator<=>(const Running &) const = default;
};
std::map<Running, Instruction> running;
std::map<Place, Totals> totals;
std::map<uint64_t, Site> sites;

uint64_t wavefronts(const std::vector<Lane> &lanes) {
  int width = 4;
  for (const Lane &l : lanes)
    width = std::max(width, l.bytes);
  unsigned together = width >= 16 ? 8 : width >= 8 ? 16 : 32;
  uint64_t sum = 0;
  for (unsigned first = 0; first < 32; first += together) {
    std::vector<uint64_t> words;
    for (const Lane &l : lanes)
      if (l.lane >= first && l.lane < first + together)
        for (uint64_t w = l.address / 4; w <= (l.address + uint64_t(l.bytes) - 1) / 4; ++w)
          words.push_back(w);
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    uint64_t banks[32] = {};
    for (uint64_t w : words)
      ++banks[w % 32];
    sum += *std::max_element(banks, banks + 32);
  }
  return sum;
}

/// What as many lanes of that width need at the least.
uint64_t leastWavefronts(const std::vector<Lane> &lanes) {
  std::vector<uint64_t> words;
  int width = 4;
  bool parts[4] = {};
  for (const Lane &l : lanes)
    width = std::max(width, l.bytes);
  for (const Lane &l : lanes)
    parts[width >= 16 ? l.lane / 8 : width >= 8 ? l.lane / 16 : 0] = true;
  return uint64_t(std::count(parts, parts + 4, true));
}

uint64_t sectors(const std::vector<Lane> &lanes, uint64_t &bytes) {
  std::vector<std::pair<uint64_t, uint64_t>> spans;
  std::vector<uint64_t> all;
  for (const Lane &l : lanes) {
    spans.push_back({l.address, l.address + uint64_t(l.bytes)});
    for (uint64_t s = l.address / 32; s <= (l.address + uint64_t(l.bytes) - 1) / 32; ++s)
      all.push_back(s);
  }
  std::sort(all.begin(), all.end());
  std::sort(spans.begin(), spans.end());
  bytes = 0;
  uint64_t end = 0;
  for (auto [low, high] : spans) { // bytes that several lanes read count once
    bytes += std::max(high, end) - std::max(low, end);
    end = std::max(end, high);
  }
  return uint64_t(std::unique(all.begin(), all.end()) - all.begin());
}

} // namespace

thread_local const void *instruction = nullptr;

void noteTraffic(const Thread &thread, uint64_t address, int bytes, Site site, bool shared) {
  if (!counting)
    return;
  sites.emplace(site.key(), site);
  Instruction &i = running[{thread.linear / 32, instruction, {site.key(), shared}}];
  size_t &next = i.next[thread.lane];
  if (i.meetings[thread.lane] != thread.meetings) {
    i.meetings[thread.lane] = thread.meetings;
    next = i.since.try_emplace(thread.meetings, i.executions.size()).first->second;
  }
  const size_t n = next++;
  if (n >= i.executions.size())
    i.executions.resize(n + 1);
  i.executions[n].push_back({address, thread.lane, bytes});
}

void noteBulkRead(uint64_t address, uint64_t bytes, Site site) {
  if (!counting)
    return;
  Totals &t = totals[{site.key(), false}];
  t.site = site;
  ++t.sum.executions;
  t.sum.bytes += bytes;
  t.sum.transactions += (address + bytes - 1) / 32 - address / 32 + 1;
  t.sum.leastTransactions += (bytes + 31) / 32;
}

void noteCoreMatrix(const uint32_t (&rows)[8], Site site) {
  if (!counting)
    return;
  std::vector<Lane> lanes;
  for (unsigned i = 0; i < 8; ++i)
    lanes.push_back({rows[i], i, 16});
  Totals &t = totals[{site.key(), true}];
  t.site = site;
  t.sum.shared = true;
  ++t.sum.executions;
  t.sum.bytes += 128;
  t.sum.transactions += wavefronts(lanes);
  ++t.sum.leastTransactions;
}

void finishTraffic() {
  for (auto &[key, instruction] : running) {
    Totals &t = totals[key.place];
    t.site = sites[key.place.first];
    t.sum.shared = key.place.second;
    for (const std::vector<Lane> &lanes : instruction.executions) {
      ++t.sum.executions;
      uint64_t unique = 0, moved = 0;
      for (const Lane &l : lanes)
        moved += uint64_t(l.bytes);
      t.sum.bytes += moved;
      if (t.sum.shared) {
        t.sum.transactions += wavefronts(lanes);
        t.sum.leastTransactions += leastWavefronts(lanes);
      } else {
        t.sum.transactions += sectors(lanes, unique);
        t.sum.leastTransactions += (unique + 31) / 32;
      }
    }
  }
  running.clear();
}

void countTraffic(bool on) {
  counting = on;
  running.clear();
  totals.clear();
}

std::vector<MemoryTraffic> traffic() {
  std::vector<MemoryTraffic> all;
  std::vector<Site> places;
  for (auto &[key, t] : totals) {
    all.push_back(t.sum);
    places.push_back(t.site);
  }
  const std::vector<std::string> texts = Site::texts(places);
  for (size_t i = 0; i < all.size(); ++i)
    all[i].place = texts[i];
  return all;
}

} // namespace simt
