#include "runtime/plan/Xxh64.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

using llmrt::Xxh64;

static uint64_t hash(const std::string &s, uint64_t seed = 0) {
  return Xxh64::hash(s.data(), s.size(), seed);
}

// Published vectors: the reference implementation's documentation and its ports' test suites.
TEST(Xxh64, PublishedVectors) {
  EXPECT_EQ(hash(""), 0xEF46DB3751D8E999u);
  EXPECT_EQ(hash("a"), 0xD24EC4F1A98C6E5Bu);
  EXPECT_EQ(hash("abc"), 0x44BC2CF5AD770999u);
  EXPECT_EQ(hash("xxhash"), 0x32DD38952C4BC720u);
  EXPECT_EQ(hash("xxhash", 20141025), 0xB559B98D844E0635u);
  EXPECT_EQ(hash("Nobody inspects the spammish repetition"), 0xFBCEA83C8A378BF1u);
}

// The reference's own self-check: bytes from a multiplicative generator, two seeds.
TEST(Xxh64, ReferenceSelfCheck) {
  constexpr uint64_t prime32 = 2654435761u, prime64 = 11400714785074694797u;
  std::string bytes(2367, '\0');
  uint64_t generator = prime32;
  for (char &c : bytes) {
    c = static_cast<char>(generator >> 56);
    generator *= prime64;
  }
  EXPECT_EQ(hash(bytes.substr(0, 1)), 0xE934A84ADB052768u);
  EXPECT_EQ(hash(bytes.substr(0, 1), prime32), 0x5014607643A9B4C3u);
  EXPECT_EQ(hash(bytes.substr(0, 14)), 0x8282DCC4994E35C8u);
  EXPECT_EQ(hash(bytes.substr(0, 14), prime32), 0xC3BD6BF63DEB6DF0u);
  EXPECT_EQ(hash(bytes.substr(0, 222)), 0xB641AE8CB691C174u);
  EXPECT_EQ(hash(bytes.substr(0, 222), prime32), 0x20CB8AB7AE10C14Au);
}

TEST(Xxh64, SplitDoesNotMatter) {
  std::string bytes;
  for (int i = 0; i < 300; ++i)
    bytes += static_cast<char>(i * 31);
  for (size_t first = 0; first <= 70; ++first)
    for (size_t second = first; second <= 140; second += 7) {
      Xxh64 state;
      state.update(bytes.data(), first);
      state.update(bytes.data() + first, second - first);
      state.update(bytes.data() + second, bytes.size() - second);
      ASSERT_EQ(state.digest(), hash(bytes)) << first << " " << second;
    }
}

TEST(Xxh64, ZerosAreBytes) {
  for (uint64_t n : {0, 1, 31, 32, 63, 5000}) {
    Xxh64 state;
    state.updateZeros(n);
    EXPECT_EQ(state.digest(), hash(std::string(n, '\0')));
  }
}
