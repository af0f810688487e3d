#include "runtime/plan/Plan.h"

#include "runtime/plan/ArenaLayout.h"
#include "runtime/plan/PlanFormat.h"
#include "runtime/plan/WeightFormat.h"
#include "runtime/plan/Xxh64.h"
#include "test/unit/plan/TestPlan.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llmrt;
using namespace llmrt::test;

/// The message of the refusal; fails the test if the plan was accepted.
static std::string refusal(const Result<std::shared_ptr<const Plan>> &r, StatusCode code) {
  EXPECT_FALSE(r.isOk());
  EXPECT_EQ(int(r.status().code()), int(code)) << r.status().message();
  return r.status().message();
}

static bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

TEST(Plan, OpensWhatTheWriterMade) {
  TemporaryFolder folder;
  TestPlan made = makeTestPlan();
  writeFile(folder / "m.plan", buildPlanImage(made.head, made.segments));
  auto opened = Plan::open(folder / "m.plan");
  ASSERT_TRUE(opened.isOk()) << opened.status().message();
  const Plan &plan = **opened;
  EXPECT_EQ(plan.head().model()->name()->str(), "tiny");
  ASSERT_EQ(plan.segmentCount(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    auto bytes = plan.segment(i);
    EXPECT_EQ(std::vector<uint8_t>(bytes.begin(), bytes.end()), made.segments[i].bytes);
  }
  for (size_t i = 0; i < made.head.weights.size(); ++i) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(plan.weightData(i)) % 64, 0u);
    EXPECT_EQ(plan.weight(i).size(), made.head.weights[i]->size);
    EXPECT_EQ(plan.weight(i)[3], 3 * 7 + 1);
  }
}

TEST(Plan, TwoPlansAtOnce) {
  auto a = Plan::fromMemory(testPlanImage());
  TestPlan other = makeTestPlan();
  other.head.model->name = "other";
  auto b = Plan::fromMemory(buildPlanImage(other.head, other.segments));
  ASSERT_TRUE(a.isOk() && b.isOk());
  EXPECT_EQ((*a)->head().model()->name()->str(), "tiny");
  EXPECT_EQ((*b)->head().model()->name()->str(), "other");
  EXPECT_NE((*a)->contentHash(), (*b)->contentHash());
}

TEST(Plan, NamesWhatCannotBeOpened) {
  TemporaryFolder folder;
  EXPECT_TRUE(contains(refusal(Plan::open(folder / "none.plan"), StatusCode::IoError),
                       "none.plan: can't open"));
  EXPECT_TRUE(
      contains(refusal(Plan::open(folder.path()), StatusCode::InvalidFile), "not a regular file"));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(contains(refusal(Plan::open(folder / "pipe"), StatusCode::InvalidFile),
                       "not a regular file"));
  writeFile(folder / "text", {'h', 'e', 'l', 'l', 'o'});
  refusal(Plan::open(folder / "text"), StatusCode::InvalidFile);
  writeFile(folder / "empty", {});
  refusal(Plan::open(folder / "empty"), StatusCode::InvalidFile);
}

TEST(Plan, RefusesAFileThatOthersMayWrite) {
  TemporaryFolder folder;
  for (unsigned mode : {0664u, 0646u, 0666u}) {
    writeFile(folder / "m.plan", testPlanImage(), mode);
    EXPECT_TRUE(contains(refusal(Plan::open(folder / "m.plan"), StatusCode::IoError),
                         "writable by others"));
    PlanOptions allow;
    allow.allowWritableByOthers = true;
    EXPECT_TRUE(Plan::open(folder / "m.plan", allow).isOk());
  }
}

/// Case M20, as the five below.
TEST(Plan, NamesBothFormatsWhenTheFileIsNewer) {
  TestPlan p = makeTestPlan();
  buildPlanImage(p.head, p.segments);
  *p.head.format = fbs::Version(2, 3);
  std::string message =
      refusal(Plan::fromMemory(wrapHead(p.head, p.segments)), StatusCode::Unsupported);
  EXPECT_TRUE(contains(message, "2.3") && contains(message, "1.0")) << message;
  *p.head.format = fbs::Version(0, 9);
  refusal(Plan::fromMemory(wrapHead(p.head, p.segments)), StatusCode::InvalidFile);
  // A newer minor only adds what this build need not know.
  *p.head.format = fbs::Version(1, 7);
  EXPECT_TRUE(Plan::fromMemory(wrapHead(p.head, p.segments)).isOk());
}

TEST(Plan, NamesBothContainerVersionsWhenTheFileIsNewer) {
  std::vector<uint8_t> image = testPlanImage();
  image[offsetof(PlanHeader, containerVersion)] = 9;
  std::string message = refusal(Plan::fromMemory(image), StatusCode::Unsupported);
  EXPECT_TRUE(contains(message, "version 9") && contains(message, "build's 1")) << message;
  // As a machine of the other byte order would write it.
  image[offsetof(PlanHeader, containerVersion)] = 0;
  image[offsetof(PlanHeader, containerVersion) + 3] = 1;
  message = refusal(Plan::fromMemory(image), StatusCode::Unsupported);
  EXPECT_TRUE(contains(message, "big-endian") && contains(message, "little-endian")) << message;
}

/// Any compiler's plan of a format that is known is read; which one made it says the provenance.
TEST(Plan, AnotherProductVersionIsNoHindrance) {
  TestPlan p = makeTestPlan();
  p.head.provenance->compiler = "llmc 99.0";
  auto plan = Plan::fromMemory(buildPlanImage(p.head, p.segments));
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  EXPECT_EQ((*plan)->head().provenance()->compiler()->str(), "llmc 99.0");
}

TEST(Plan, CodeAndTokenizerAreCheckedAtEachLoadWeightsOnRequest) {
  TestPlan p = makeTestPlan();
  std::vector<uint8_t> image = buildPlanImage(p.head, p.segments);
  for (size_t s = 0; s < 3; ++s) {
    std::vector<uint8_t> damaged = image;
    damaged[p.head.segments[s]->offset + 3] ^= 4;
    PlanOptions all;
    all.verifyWeights = true;
    std::string message = refusal(Plan::fromMemory(damaged, all), StatusCode::InvalidFile);
    EXPECT_TRUE(contains(message, p.head.segments[s]->name)) << message;
    char wanted[40];
    std::snprintf(wanted, sizeof wanted, "the file says %016llx",
                  static_cast<unsigned long long>(p.head.segments[s]->checksum));
    EXPECT_TRUE(contains(message, "XXH64 is ") && contains(message, wanted)) << message;
    auto lazy = Plan::fromMemory(damaged);
    EXPECT_EQ(lazy.isOk(), s == 0);
    if (lazy.isOk())
      EXPECT_FALSE((*lazy)->verifySegment(s).isOk());
  }
}

TEST(Plan, RefusesAFileOfAnotherSize) {
  TemporaryFolder folder;
  std::vector<uint8_t> image = testPlanImage();
  for (size_t size : {image.size() - 1, image.size() - 4096, image.size() / 2, size_t(64),
                      size_t(63), size_t(8)}) {
    writeFile(folder / "m.plan", {image.begin(), image.begin() + static_cast<ptrdiff_t>(size)});
    EXPECT_TRUE(
        contains(refusal(Plan::open(folder / "m.plan"), StatusCode::InvalidFile), "truncated"));
  }
  image.resize(image.size() + 4096);
  writeFile(folder / "m.plan", image);
  EXPECT_TRUE(
      contains(refusal(Plan::open(folder / "m.plan"), StatusCode::InvalidFile), "header says"));
}

/// Case M19: the part that is a flatbuffer is never larger than what its verifier takes.
TEST(Plan, HeadSizeIsNotTrusted) {
  for (uint64_t size :
       {uint64_t(0), uint64_t(7), kMaxHeadBytes, kMaxHeadBytes + 1, uint64_t(1) << 31,
        (uint64_t(1) << 31) - 1, ~uint64_t(0), ~uint64_t(0) - 63}) {
    std::vector<uint8_t> image = testPlanImage();
    std::memcpy(image.data() + offsetof(PlanHeader, headSize), &size, sizeof size);
    refusal(Plan::fromMemory(image), StatusCode::InvalidFile);
  }
}

/// Writes \p p with a weights segment of \p size bytes of a sparse file, the last weight at its end
/// or \p beyond.
static std::string makeSparsePlan(const TemporaryFolder &folder, uint64_t size,
                                  TestPlan p = makeTestPlan(), uint64_t beyond = 0) {
  // In the order of the file: code, tokenizer, weights, so that the image ends before them.
  std::vector<SegmentImage> small = {p.segments[1], p.segments[2]};
  fbs::PlanT &h = p.head;
  h.modules[0]->segment = 0;
  h.text->tokenizer_segment = 1;
  for (auto &w : h.weights)
    w->segment = 2;
  h.weights.back()->offset = (size - h.weights.back()->size) / 64 * 64 + beyond;
  buildPlanImage(h, small);
  auto big = std::make_unique<fbs::SegmentT>();
  big->kind = fbs::SegmentKind::Weights;
  big->name = "weights";
  big->size = size;
  h.segments.push_back(std::move(big));
  // The third entry makes the head longer: places have to be computed once more.
  uint64_t at = 0;
  for (auto &s : h.segments) {
    if (at == 0)
      at = alignUp(wrapHead(h, {}).size(), kPlanPage);
    s->offset = at;
    at = alignUp(at + s->size, kPlanPage);
  }
  std::vector<uint8_t> image = wrapHead(h, small);
  std::memcpy(image.data() + offsetof(PlanHeader, fileSize), &at, sizeof at);
  std::string path = folder / "big.plan";
  writeFile(path, image);
  EXPECT_EQ(::truncate(path.c_str(), static_cast<off_t>(at)), 0);
  return path;
}

/// Case M19: offsets and sizes of 64 bits, verified like any other.
TEST(Plan, WeightsBeyondTwoGigabytes) {
  TemporaryFolder folder;
  uint64_t size = uint64_t(21) << 27; // 2.6 GiB, of which nothing is stored
  auto plan = Plan::open(makeSparsePlan(folder, size));
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  EXPECT_EQ((*plan)->segment(2).size(), size);
  EXPECT_EQ((*plan)->weight(2).back(), 0);
}

/// Case M19: its size is more than 32 bits hold, and is checked to the byte.
TEST(Plan, AWeightOfFourGigabytes) {
  TestPlan p = makeTestPlan();
  auto large = std::make_unique<fbs::WeightT>();
  large->name = "large";
  large->format = std::make_unique<fbs::WeightFormatT>();
  large->format->element = fbs::ElementType::F32;
  large->rows = 1 << 20, large->columns = 1 << 10;
  large->size = uint64_t(4) << 30;
  p.head.weights.push_back(std::move(large));
  TemporaryFolder folder;
  const uint64_t end = alignUp(p.segments[0].bytes.size(), kPlanAlignment) + (uint64_t(4) << 30);
  auto plan = Plan::open(makeSparsePlan(folder, end, std::move(p)));
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  EXPECT_EQ((*plan)->weight(3).size(), uint64_t(4) << 30);
  EXPECT_EQ((*plan)->weight(3).data() + (uint64_t(4) << 30),
            (*plan)->segment(2).data() + (*plan)->segment(2).size());
}

TEST(Plan, AWeightBeyondItsSegment_invalid) {
  TemporaryFolder folder;
  const uint64_t size = uint64_t(21) << 27;
  for (uint64_t beyond : {uint64_t(64), uint64_t(1) << 32, ~uint64_t(0) - size}) {
    TestPlan p = makeTestPlan();
    std::string path = makeSparsePlan(folder, size, std::move(p), beyond / 64 * 64);
    std::string message = refusal(Plan::open(path), StatusCode::InvalidFile);
    EXPECT_TRUE(contains(message, "weights[2]")) << message;
  }
}

TEST(Plan, LoadingDoesNotReadTheWeights) {
  TemporaryFolder folder;
  std::string path = makeSparsePlan(folder, 100 << 20);
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    auto start = std::chrono::steady_clock::now();
    auto plan = Plan::open(path);
    best = std::min(
        best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                  .count());
    ASSERT_TRUE(plan.isOk());
  }
  RecordProperty("load_us", int(best * 1e3));
  // 100 MB at memory speed alone would take longer; sanitizers slow the rest down.
  EXPECT_LT(best, 5.0);
}
