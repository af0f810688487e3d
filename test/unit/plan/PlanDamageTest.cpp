// Every byte that a reader trusts, damaged: refused by a checksum or by a check for zero. And the
// same with checksums made right again, as an attacker would: accepted or refused, but no crash.
#include "runtime/plan/Plan.h"
#include "runtime/plan/PlanFormat.h"
#include "runtime/plan/Xxh64.h"
#include "test/unit/plan/TestPlan.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

using namespace llmrt;
using namespace llmrt::test;

namespace {

struct Image {
  std::vector<uint8_t> bytes;
  uint64_t headEnd;
  TestPlan plan;
};

Image makeImage() {
  Image i;
  i.plan = makeTestPlan();
  i.bytes = buildPlanImage(i.plan.head, i.plan.segments);
  PlanHeader header;
  std::memcpy(&header, i.bytes.data(), sizeof header);
  i.headEnd = sizeof header + header.headSize;
  return i;
}

bool accepts(const std::vector<uint8_t> &bytes) { return Plan::fromMemory(bytes).isOk(); }

/// Makes the head's checksum right for whatever the head now is.
void repair(std::vector<uint8_t> &bytes) {
  PlanHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.headChecksum = Xxh64::hash(bytes.data() + sizeof header, header.headSize);
  std::memcpy(bytes.data(), &header, sizeof header);
}

/// Touches everything that an accepted head refers to, so that a sanitizer sees a bad extent.
void readAll(const Plan &plan) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < plan.head().weights()->size(); ++i)
    for (uint8_t b : plan.weight(i))
      sum += b;
  for (const fbs::Command *c : *plan.head().commands())
    for (const fbs::Binding *b : *c->bindings())
      sum += b->kind() == fbs::BindingKind::Weight ? plan.head().weights()->Get(b->index())->size()
             : b->kind() == fbs::BindingKind::Buffer
                 ? plan.head().buffers()->Get(b->index())->slot()
                 : plan.head().outputs()->Get(b->index())->columns();
  volatile uint64_t sink = sum;
  (void)sink;
}

} // namespace

TEST(PlanDamage, EveryBitOfTheHeaderAndHeadAndTheirPadding) {
  Image image = makeImage();
  ASSERT_TRUE(accepts(image.bytes));
  uint64_t end = image.plan.head.segments[0]->offset;
  for (uint64_t at = 0; at < end; ++at)
    for (int bit = 0; bit < 8; ++bit) {
      image.bytes[at] ^= static_cast<uint8_t>(1 << bit);
      ASSERT_FALSE(accepts(image.bytes)) << "byte " << at << " bit " << bit;
      image.bytes[at] ^= static_cast<uint8_t>(1 << bit);
    }
}

TEST(PlanDamage, EveryByteOfTheSegmentsPadding) {
  Image image = makeImage();
  for (const auto &s : image.plan.head.segments) {
    uint64_t end = s->offset + s->size;
    ASSERT_NE(end % kPlanPage, 0u);
    for (uint64_t at = end; at < alignUp(end, kPlanPage); ++at) {
      image.bytes[at] = static_cast<uint8_t>(1 << at % 8);
      ASSERT_FALSE(accepts(image.bytes)) << "byte " << at;
      image.bytes[at] = 0;
    }
  }
}

TEST(PlanDamage, EveryByteOfTheCodeAndTokenizer) {
  Image image = makeImage();
  for (size_t s : {1, 2})
    for (uint64_t i = 0; i < image.plan.head.segments[s]->size; i += s == 1 ? 17 : 1) {
      uint64_t at = image.plan.head.segments[s]->offset + i;
      image.bytes[at] ^= 0x20;
      ASSERT_FALSE(accepts(image.bytes)) << "byte " << at;
      image.bytes[at] ^= 0x20;
    }
}

TEST(PlanDamage, EveryTruncation) {
  Image image = makeImage();
  for (uint64_t size = 0; size < image.bytes.size(); size += size < image.headEnd + 64 ? 1 : 509)
    ASSERT_FALSE(accepts({image.bytes.begin(), image.bytes.begin() + static_cast<ptrdiff_t>(size)}))
        << size;
}

TEST(PlanDamage, TruncationThatTheHeaderAgreesWith) {
  Image image = makeImage();
  for (uint64_t size = 64; size < image.bytes.size(); size += size < image.headEnd + 64 ? 1 : 509) {
    std::vector<uint8_t> cut(image.bytes.begin(),
                             image.bytes.begin() + static_cast<ptrdiff_t>(size));
    std::memcpy(cut.data() + offsetof(PlanHeader, fileSize), &size, sizeof size);
    if (size < image.headEnd) { // the head ends with the file
      uint64_t head = size - 64;
      std::memcpy(cut.data() + offsetof(PlanHeader, headSize), &head, sizeof head);
      repair(cut);
    }
    ASSERT_FALSE(accepts(cut)) << size;
  }
}

TEST(PlanDamage, EveryBitOfTheHeadWithItsChecksumMadeRight) {
  Image image = makeImage();
  int accepted = 0;
  for (uint64_t at = sizeof(PlanHeader); at < image.headEnd; ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<uint8_t> bytes = image.bytes;
      bytes[at] ^= static_cast<uint8_t>(1 << bit);
      repair(bytes);
      if (auto plan = Plan::fromMemory(bytes); plan.isOk()) {
        readAll(**plan);
        ++accepted;
      }
    }
  // Names and numbers that nothing depends on may change; most of the head may not.
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, int(image.headEnd - sizeof(PlanHeader)) * 8 / 2);
}

TEST(PlanDamage, RandomBytesInTheHeadWithItsChecksumMadeRight) {
  Image image = makeImage();
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint8_t> bytes = image.bytes;
    for (unsigned n = 1 + random() % 4; n != 0; --n) {
      uint64_t at = sizeof(PlanHeader) + random() % (image.headEnd - sizeof(PlanHeader));
      static constexpr uint32_t kNasty[] = {0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFC0};
      uint32_t value = random() % 2 ? kNasty[random() % 6] : random();
      std::memcpy(bytes.data() + at, &value, std::min<uint64_t>(4, image.headEnd - at));
    }
    repair(bytes);
    if (auto plan = Plan::fromMemory(bytes); plan.isOk())
      readAll(**plan);
  }
}
