#include "runtime/plan/PlanWriter.h"

#include "runtime/plan/Plan.h"
#include "runtime/plan/PlanFormat.h"
#include "test/unit/plan/TestPlan.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace llmrt;
using namespace llmrt::test;

namespace {

using Files = std::vector<std::string>;

/// Writes the segments of \p p in their order, whole, and then the head.
Status writePlan(TestPlan &p, const std::string &path, uint64_t reserve = 256 * 1024) {
  LLMRT_ASSIGN_OR_RETURN(auto writer, PlanWriter::create(path, reserve));
  for (const SegmentImage &s : p.segments)
    LLMRT_RETURN_IF_ERROR(writer->addSegment(s.kind, s.name, s.bytes).status());
  return writer->finish(p.head);
}

void expectSamePlan(const std::string &path, const TestPlan &p) {
  PlanOptions all;
  all.verifyWeights = true;
  auto plan = Plan::open(path, all);
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  for (size_t i = 0; i < p.segments.size(); ++i) {
    auto bytes = (*plan)->segment(i);
    EXPECT_EQ(std::vector<uint8_t>(bytes.begin(), bytes.end()), p.segments[i].bytes) << i;
  }
}

/// Bytes of the file \p path that this process has mapped in huge pages.
uint64_t mappedInHugePages(const std::string &path) {
  std::ifstream maps("/proc/self/smaps");
  uint64_t bytes = 0;
  for (std::string line, file; std::getline(maps, line);) {
    if (size_t slash = line.find('/'); line.find('-') < 20 && slash != std::string::npos)
      file = line.substr(slash);
    if (file == path && line.starts_with("FilePmdMapped:"))
      bytes += std::stoull(line.substr(14)) * 1024;
  }
  return bytes;
}

void touch(std::span<const uint8_t> bytes) {
  for (size_t at = 0; at < bytes.size(); at += 4096)
    (void)*static_cast<const volatile uint8_t *>(bytes.data() + at);
}

/// Bytes of the file \p path that a mapping gets in huge pages. With \p cold they are read from the
/// disk for it.
uint64_t hugePagesOf(const std::string &path, bool cold = false) {
  int fd = ::open(path.c_str(), O_RDONLY);
  struct stat st;
  if (fd < 0 || ::fstat(fd, &st) != 0)
    return 0;
  if (cold) {
    ::fsync(fd);
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  }
  const auto size = static_cast<size_t>(st.st_size);
  void *map = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (cold)
    ::madvise(map, size, MADV_HUGEPAGE);
  touch({static_cast<const uint8_t *>(map), size});
  uint64_t bytes = mappedInHugePages(path);
  ::munmap(map, size);
  ::close(fd);
  return bytes;
}

/// Limits the size of files for the length of a test, as a full disk would. EFBIG instead of the
/// signal that comes with it.
struct FileSizeLimit {
  explicit FileSizeLimit(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &old);
    rlimit limit{bytes, old.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &old); }
  rlimit old;
};

} // namespace

TEST(PlanWriter, RoundTrip) {
  TemporaryFolder folder;
  TestPlan p = makeTestPlan();
  Status s = writePlan(p, folder / "m.plan");
  ASSERT_TRUE(s.isOk()) << s.message();
  expectSamePlan(folder / "m.plan", p);
  EXPECT_EQ(folder.files(), Files{"m.plan"});
  struct stat st;
  ASSERT_EQ(::stat((folder / "m.plan").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 022, 0u);
}

TEST(PlanWriter, RecordsTheSelfTestOfTheFinishedFile) {
  TemporaryFolder folder;
  TestPlan p = makeTestPlan();
  auto writer = PlanWriter::create(folder / "m.plan");
  ASSERT_TRUE(writer.isOk());
  for (const SegmentImage &s : p.segments)
    ASSERT_TRUE((*writer)->addSegment(s.kind, s.name, s.bytes).isOk());
  auto run = [&](const std::string &path, fbs::SelfTestT &test) {
    expectSamePlan(path, p); // what is run is a whole plan
    test.tokens = {6, 7};
    test.logits_fingerprint = 77;
    return Status::ok();
  };
  Status tested, s = (*writer)->finish(p.head, {}, run, &tested);
  ASSERT_TRUE(s.isOk()) << s.message();
  EXPECT_TRUE(tested.isOk());
  expectSamePlan(folder / "m.plan", p);
  auto plan = Plan::open(folder / "m.plan");
  ASSERT_TRUE(plan.isOk());
  EXPECT_EQ((*plan)->head().self_test()->tokens()->Get(1), 7);
  EXPECT_EQ((*plan)->head().self_test()->logits_fingerprint(), 77u);
}

TEST(PlanWriter, APlanThatCannotRunHereHasNoSelfTest) {
  TemporaryFolder folder;
  TestPlan p = makeTestPlan();
  auto writer = PlanWriter::create(folder / "m.plan");
  ASSERT_TRUE(writer.isOk());
  for (const SegmentImage &s : p.segments)
    ASSERT_TRUE((*writer)->addSegment(s.kind, s.name, s.bytes).isOk());
  auto run = [](const std::string &, fbs::SelfTestT &) { return unsupported("not here"); };
  Status tested, s = (*writer)->finish(p.head, {}, run, &tested);
  ASSERT_TRUE(s.isOk()) << s.message();
  EXPECT_EQ(tested.message(), "not here");
  expectSamePlan(folder / "m.plan", p);
  auto plan = Plan::open(folder / "m.plan");
  ASSERT_TRUE(plan.isOk());
  EXPECT_EQ((*plan)->head().self_test(), nullptr);
}

TEST(PlanWriter, SameContentsSameBytes) {
  TemporaryFolder folder;
  TestPlan a = makeTestPlan(), b = makeTestPlan();
  ASSERT_TRUE(writePlan(a, folder / "a.plan").isOk());
  ASSERT_TRUE(writePlan(b, folder / "b.plan").isOk());
  EXPECT_EQ(readFile(folder / "a.plan"), readFile(folder / "b.plan"));
}

TEST(PlanWriter, PiecesInAnyOrderGiveTheSameBytes) {
  TemporaryFolder folder;
  TestPlan a = makeTestPlan();
  a.segments[0].bytes.resize(300000, 0x5A);
  ASSERT_TRUE(writePlan(a, folder / "a.plan").isOk());
  for (int order = 0; order < 3; ++order) {
    TestPlan b = makeTestPlan();
    auto writer = PlanWriter::create(folder / "b.plan");
    ASSERT_TRUE(writer.isOk());
    for (const SegmentImage &s : a.segments) {
      auto index = (*writer)->addSegment(s.kind, s.name, s.bytes.size());
      ASSERT_TRUE(index.isOk());
      constexpr size_t kPiece = 4097;
      size_t pieces = (s.bytes.size() + kPiece - 1) / kPiece;
      for (size_t i = 0; i < pieces; ++i) {
        // ascending; descending; every second piece first
        size_t half = (pieces + 1) / 2;
        size_t piece = order == 0   ? i
                       : order == 1 ? pieces - 1 - i
                       : i < half   ? 2 * i
                                    : 2 * (i - half) + 1;
        size_t at = piece * kPiece;
        size_t n = std::min(kPiece, s.bytes.size() - at);
        ASSERT_TRUE((*writer)->write(*index, at, std::span(s.bytes).subspan(at, n)).isOk());
      }
    }
    ASSERT_TRUE((*writer)->finish(b.head).isOk());
    EXPECT_EQ(readFile(folder / "a.plan"), readFile(folder / "b.plan")) << order;
  }
}

TEST(PlanWriter, PiecesFromManyThreads) {
  TemporaryFolder folder;
  TestPlan p = makeTestPlan();
  const size_t size =
      7 << 20; // huge pages that threads touch at once, and one with the next segment
  p.segments[0].bytes.resize(size);
  for (size_t i = 0; i < size; ++i)
    p.segments[0].bytes[i] = static_cast<uint8_t>(i / 8192 * 37 + i);
  auto writer = PlanWriter::create(folder / "m.plan");
  ASSERT_TRUE(writer.isOk());
  ASSERT_TRUE(
      (*writer)->addSegment(p.segments[0].kind, "weights", p.segments[0].bytes.size()).isOk());
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (size_t at = t * 8192; at < size; at += 4 * 8192)
        EXPECT_TRUE(
            (*writer)->write(0, at, std::span(p.segments[0].bytes).subspan(at, 8192)).isOk());
    });
  for (std::thread &t : threads)
    t.join();
  for (size_t i : {1, 2})
    ASSERT_TRUE(
        (*writer)->addSegment(p.segments[i].kind, p.segments[i].name, p.segments[i].bytes).isOk());
  ASSERT_TRUE((*writer)->finish(p.head).isOk());
  expectSamePlan(folder / "m.plan", p);
}

TEST(PlanWriter, APlanIsMappedInHugePagesWhereAFileCanBe) {
  TemporaryFolder folder;
  TestPlan p = makeTestPlan();
  const size_t size = 16 << 20, piece = 100000;
  p.segments[0].bytes.resize(size, 0x33);
  std::ofstream(folder / "one-write", std::ios::binary)
      .write(reinterpret_cast<const char *>(p.segments[0].bytes.data()), size);
  if (hugePagesOf(folder / "one-write") != size)
    GTEST_SKIP() << "this file system or kernel has no huge pages in its cache";
  auto writer = PlanWriter::create(folder / "m.plan");
  ASSERT_TRUE(writer.isOk());
  ASSERT_TRUE((*writer)->addSegment(p.segments[0].kind, "weights", size).isOk());
  for (size_t at = 0; at < size; at += piece) {
    auto bytes = std::span(p.segments[0].bytes).subspan(at, std::min(piece, size - at));
    ASSERT_TRUE((*writer)->write(0, at, bytes).isOk());
  }
  for (size_t i : {1, 2})
    ASSERT_TRUE(
        (*writer)->addSegment(p.segments[i].kind, p.segments[i].name, p.segments[i].bytes).isOk());
  ASSERT_TRUE((*writer)->finish(p.head).isOk());
  EXPECT_GE(hugePagesOf(folder / "m.plan"), size / 2);

  // The same from the disk, whatever wrote the file.
  if (hugePagesOf(folder / "one-write", /*cold=*/true) != size)
    return;
  const std::vector<uint8_t> bytes = readFile(folder / "m.plan");
  {
    std::ofstream copy(folder / "copy.plan", std::ios::binary);
    for (size_t at = 0; at < bytes.size(); at += piece)
      copy.write(reinterpret_cast<const char *>(bytes.data() + at),
                 static_cast<std::streamsize>(std::min(piece, bytes.size() - at)));
  }
  int fd = ::open((folder / "copy.plan").c_str(), O_RDONLY);
  ::fsync(fd);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
  auto plan = Plan::open(folder / "copy.plan");
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  touch((*plan)->segment(0));
  EXPECT_GE(mappedInHugePages(folder / "copy.plan"), size / 2);
}

TEST(PlanWriter, GapsThatAlignAreZero) {
  TemporaryFolder folder;
  TestPlan p = makeTestPlan();
  auto writer = PlanWriter::create(folder / "m.plan");
  ASSERT_TRUE(writer.isOk());
  std::vector<uint8_t> expected(p.segments[0].bytes.size(), 0);
  ASSERT_TRUE((*writer)->addSegment(fbs::SegmentKind::Weights, "weights", expected.size()).isOk());
  for (const auto &w : p.head.weights) { // only the weights, not what lies between them
    auto bytes = std::span(p.segments[0].bytes).subspan(w->offset, w->size);
    std::memcpy(expected.data() + w->offset, bytes.data(), bytes.size());
    ASSERT_TRUE((*writer)->write(0, w->offset, bytes).isOk());
  }
  for (size_t i : {1, 2})
    ASSERT_TRUE(
        (*writer)->addSegment(p.segments[i].kind, p.segments[i].name, p.segments[i].bytes).isOk());
  ASSERT_TRUE((*writer)->finish(p.head).isOk());
  p.segments[0].bytes = expected;
  expectSamePlan(folder / "m.plan", p);
}

TEST(PlanWriter, AHeadAboveItsReserveMovesTheSegments) {
  TemporaryFolder folder;
  TestPlan p = makeTestPlan();
  p.segments[0].bytes.resize(9 << 20, 0x77); // more than one piece of the move
  for (size_t i = 0; i < p.segments[0].bytes.size(); i += 1000)
    p.segments[0].bytes[i] = static_cast<uint8_t>(i / 1000);
  Status s = writePlan(p, folder / "m.plan", 0);
  ASSERT_TRUE(s.isOk()) << s.message();
  expectSamePlan(folder / "m.plan", p);
  TestPlan q = makeTestPlan();
  q.segments[0].bytes = p.segments[0].bytes;
  q.head.segments.clear();
  // A reserve that fits gives the same file: where the segments went doesn't show.
  uint64_t exact = PlanWriter::headBytes(p.head);
  ASSERT_TRUE(writePlan(q, folder / "n.plan", exact).isOk());
  EXPECT_EQ(readFile(folder / "m.plan"), readFile(folder / "n.plan"));
}

TEST(PlanWriter, AHeadsSizeDoesNotDependOnItsNumbers) {
  TestPlan p = makeTestPlan();
  buildPlanImage(p.head, p.segments);
  uint64_t size = PlanWriter::headBytes(p.head);
  for (auto &s : p.head.segments)
    s->offset = s->checksum = 0;
  p.head.limits->max_tokens = 0;
  EXPECT_EQ(PlanWriter::headBytes(p.head), size);
}

/// Case M19: a head never comes near the 2 GiB of flatbuffers.
TEST(PlanWriter, RefusesAHeadAboveItsLimit) {
  TemporaryFolder folder;
  TestPlan p = makeTestPlan();
  p.head.text->chat_template.assign(kMaxHeadBytes, 'x');
  Status s = writePlan(p, folder / "m.plan");
  EXPECT_EQ(s.code(), StatusCode::Unsupported);
  EXPECT_NE(s.message().find("the limit is 67108864"), std::string::npos) << s.message();
  EXPECT_EQ(folder.files(), Files{});
}

TEST(PlanWriter, NothingIsLeftWhenItIsAbandoned) {
  TemporaryFolder folder;
  {
    auto writer = PlanWriter::create(folder / "m.plan");
    ASSERT_TRUE(writer.isOk());
    ASSERT_TRUE((*writer)->addSegment(fbs::SegmentKind::Weights, "weights", 100).isOk());
    EXPECT_EQ(folder.files().size(), 1u);
  }
  EXPECT_EQ(folder.files(), Files{});
}

TEST(PlanWriter, AnOldPlanStaysUntilTheNewOneIsWhole) {
  TemporaryFolder folder;
  writeFile(folder / "m.plan", {1, 2, 3});
  TestPlan p = makeTestPlan();
  p.head.commands[0]->kernel = 99;
  Status s = writePlan(p, folder / "m.plan");
  ASSERT_FALSE(s.isOk());
  EXPECT_NE(s.message().find("kernel 99 of 6"), std::string::npos) << s.message();
  EXPECT_EQ(readFile(folder / "m.plan"), (std::vector<uint8_t>{1, 2, 3}));
  EXPECT_EQ(folder.files(), Files{"m.plan"});
  TestPlan good = makeTestPlan();
  ASSERT_TRUE(writePlan(good, folder / "m.plan").isOk());
  expectSamePlan(folder / "m.plan", good);
}

TEST(PlanWriter, RefusesWrongPieces) {
  TemporaryFolder folder;
  auto created = PlanWriter::create(folder / "m.plan");
  ASSERT_TRUE(created.isOk());
  PlanWriter &writer = **created;
  ASSERT_TRUE(writer.addSegment(fbs::SegmentKind::Weights, "weights", 1000).isOk());
  std::vector<uint8_t> bytes(200, 1);
  EXPECT_FALSE(writer.write(1, 0, bytes).isOk());
  EXPECT_FALSE(writer.write(0, 801, bytes).isOk());
  EXPECT_FALSE(writer.write(0, ~uint64_t(0) - 10, bytes).isOk());
  ASSERT_TRUE(writer.write(0, 400, bytes).isOk());
  EXPECT_FALSE(writer.write(0, 400, bytes).isOk());
  EXPECT_FALSE(writer.write(0, 300, bytes).isOk());
  EXPECT_FALSE(writer.write(0, 599, bytes).isOk());
  EXPECT_TRUE(writer.write(0, 600, bytes).isOk());
  EXPECT_TRUE(writer.write(0, 0, bytes).isOk());
  EXPECT_FALSE(writer.addSegment(fbs::SegmentKind::Weights, "huge", ~uint64_t(0)).isOk());
}

TEST(PlanWriter, RefusesASegmentWithHoles) {
  for (int hole = 0; hole < 3; ++hole) { // at the start, inside, at the end
    TemporaryFolder folder;
    TestPlan p = makeTestPlan();
    auto writer = PlanWriter::create(folder / "m.plan");
    ASSERT_TRUE(writer.isOk());
    ASSERT_TRUE((*writer)->addSegment(fbs::SegmentKind::Weights, "weights", 3000).isOk());
    std::vector<uint8_t> bytes(1000, 1);
    for (int i = 0; i < 3; ++i)
      if (i != hole)
        ASSERT_TRUE((*writer)->write(0, uint64_t(i) * 1000, bytes).isOk());
    Status s = (*writer)->finish(p.head);
    ASSERT_FALSE(s.isOk());
    EXPECT_NE(s.message().find("never written"), std::string::npos) << s.message();
    EXPECT_NE(s.message().find("bytes " + std::to_string(hole * 1000) + " to"), std::string::npos)
        << s.message();
  }
}

TEST(PlanWriter, NamesAFolderThatIsNotThere) {
  TemporaryFolder folder;
  auto writer = PlanWriter::create(folder / "none/m.plan");
  ASSERT_FALSE(writer.isOk());
  EXPECT_NE(writer.status().message().find("none/m.plan"), std::string::npos);
  EXPECT_NE(writer.status().message().find("No such file"), std::string::npos);
  EXPECT_FALSE(PlanWriter::create(folder.path()).isOk());
}

TEST(PlanWriter, NamesMissingPermission) {
  TemporaryFolder folder;
  ::chmod(folder.path().c_str(), 0500);
  bool root = ::geteuid() == 0; // who may write everywhere: be someone else for a moment
  if (root)
    ASSERT_EQ(::seteuid(65534), 0);
  auto writer = PlanWriter::create(folder / "m.plan");
  if (root)
    ASSERT_EQ(::seteuid(0), 0);
  ::chmod(folder.path().c_str(), 0700);
  ASSERT_FALSE(writer.isOk());
  EXPECT_NE(writer.status().message().find("Permission denied"), std::string::npos);
}

TEST(PlanWriter, NamesAFullDisk) {
  // /dev/full can't be a plan (no regular file); a limit on the size of files fails at the same
  // call.
  TemporaryFolder folder;
  TestPlan p = makeTestPlan();
  p.segments[0].bytes.resize(4 << 20, 1);
  FileSizeLimit limit(1 << 20);
  Status s = writePlan(p, folder / "m.plan");
  ASSERT_FALSE(s.isOk());
  EXPECT_NE(s.message().find("m.plan"), std::string::npos) << s.message();
  EXPECT_NE(s.message().find("File too large"), std::string::npos) << s.message();
  EXPECT_EQ(folder.files(), Files{});
}

TEST(PlanWriter, AWriteThatFailedFailsTheWhole) {
  TemporaryFolder folder;
  TestPlan p = makeTestPlan();
  p.segments[0].bytes.resize(4 << 20, 1);
  auto writer = PlanWriter::create(folder / "m.plan");
  ASSERT_TRUE(writer.isOk());
  ASSERT_TRUE((*writer)->addSegment(fbs::SegmentKind::Weights, "weights", 4 << 20).isOk());
  {
    FileSizeLimit limit(1 << 20);
    EXPECT_FALSE((*writer)->write(0, 0, p.segments[0].bytes).isOk());
  }
  for (size_t i : {1, 2})
    ASSERT_TRUE(
        (*writer)->addSegment(p.segments[i].kind, p.segments[i].name, p.segments[i].bytes).isOk());
  EXPECT_FALSE((*writer)->finish(p.head).isOk());
  writer = Status(StatusCode::Cancelled, "done");
  EXPECT_EQ(folder.files(), Files{});
}

/// Case M19.
TEST(PlanWriter, SegmentsBeyondFourGigabytes) {
  TemporaryFolder folder;
  TestPlan p = makeTestPlan();
  auto writer = PlanWriter::create(folder / "m.plan");
  ASSERT_TRUE(writer.isOk());
  uint64_t size = (uint64_t(4) << 30) + 100;
  ASSERT_TRUE((*writer)->addSegment(fbs::SegmentKind::Weights, "weights", size).isOk());
  std::vector<uint8_t> bytes(100, 7);
  ASSERT_TRUE((*writer)->write(0, size - 100, bytes).isOk());
  // Holes aren't a plan; that the place is right shows in the message and in the file's size.
  Status s = (*writer)->finish(p.head);
  EXPECT_NE(s.message().find("bytes 0 to 4294967296"), std::string::npos) << s.message();
}
