#include "runtime/plan/Xxh64.h"

#include <algorithm>
#include <bit>
#include <cstring>

static_assert(std::endian::native == std::endian::little, "plans are little-endian and mapped");

namespace llmrt {
namespace {

// The five primes of the specification.
constexpr uint64_t kP1 = 0x9E3779B185EBCA87, kP2 = 0xC2B2AE3D27D4EB4F, kP3 = 0x165667B19E3779F9,
                   kP4 = 0x85EBCA77C2B2AE63, kP5 = 0x27D4EB2F165667C5;

template <typename T> uint64_t load(const uint8_t *p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

uint64_t mixLane(uint64_t lane, uint64_t word) { return std::rotl(lane + word * kP2, 31) * kP1; }

uint64_t mergeLane(uint64_t hash, uint64_t lane) { return (hash ^ mixLane(0, lane)) * kP1 + kP4; }

/// Mixes \p blocks stripes of 32 bytes into the four lanes, kept in registers meanwhile.
void mixStripes(uint64_t lanes[4], const uint8_t *p, size_t blocks) {
  uint64_t a = lanes[0], b = lanes[1], c = lanes[2], d = lanes[3];
  for (; blocks != 0; --blocks, p += 32) {
    a = mixLane(a, load<uint64_t>(p));
    b = mixLane(b, load<uint64_t>(p + 8));
    c = mixLane(c, load<uint64_t>(p + 16));
    d = mixLane(d, load<uint64_t>(p + 24));
  }
  lanes[0] = a, lanes[1] = b, lanes[2] = c, lanes[3] = d;
}

} // namespace

Xxh64::Xxh64(uint64_t seed)
    : seed_(seed), lanes_{seed + kP1 + kP2, seed + kP2, seed, seed - kP1}, pending_{} {}

void Xxh64::update(const void *data, size_t size) {
  if (size == 0)
    return;
  const auto *p = static_cast<const uint8_t *>(data);
  size_t held = total_ % 32;
  total_ += size;
  if (held != 0) {
    size_t take = std::min(size, 32 - held);
    std::memcpy(pending_ + held, p, take);
    p += take, size -= take;
    if (held + take < 32)
      return;
    mixStripes(lanes_, pending_, 1);
  }
  mixStripes(lanes_, p, size / 32);
  std::memcpy(pending_, p + size / 32 * 32, size % 32);
}

void Xxh64::updateZeros(uint64_t size) {
  static constexpr uint8_t kZeros[4096] = {};
  while (size != 0) {
    size_t piece = static_cast<size_t>(std::min<uint64_t>(size, sizeof kZeros));
    update(kZeros, piece);
    size -= piece;
  }
}

uint64_t Xxh64::digest() const {
  uint64_t h = seed_ + kP5;
  if (total_ >= 32) {
    h = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
        std::rotl(lanes_[3], 18);
    for (uint64_t lane : lanes_)
      h = mergeLane(h, lane);
  }
  h += total_;
  const uint8_t *p = pending_, *end = pending_ + total_ % 32;
  for (; end - p >= 8; p += 8)
    h = std::rotl(h ^ mixLane(0, load<uint64_t>(p)), 27) * kP1 + kP4;
  if (end - p >= 4) {
    h = std::rotl(h ^ load<uint32_t>(p) * kP1, 23) * kP2 + kP3;
    p += 4;
  }
  for (; p != end; ++p)
    h = std::rotl(h ^ *p * kP5, 11) * kP1;
  h = (h ^ h >> 33) * kP2;
  h = (h ^ h >> 29) * kP3;
  return h ^ h >> 32;
}

} // namespace llmrt
