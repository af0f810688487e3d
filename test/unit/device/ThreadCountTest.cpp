// Cases R01 (quota of the container) and R02 (affinity and SMT), over fake roots.
#include "runtime/device/cpu/ThreadCount.h"
#include "runtime/device/Memory.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <numeric>

using namespace llmrt;
namespace fs = std::filesystem;

namespace {

class ThreadCount : public ::testing::Test {
protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "llmrt-threads-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root = pattern;
  }
  void TearDown() override { fs::remove_all(root); }
  void write(const std::string &path, const std::string &text) {
    fs::create_directories(fs::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  }
  std::vector<int> cpus(int n) {
    std::vector<int> list(n);
    std::iota(list.begin(), list.end(), 0);
    return list;
  }
  /// \p sockets x \p cores x 2 hardware threads, numbered as Linux does: second threads last.
  void topology(int cores) {
    for (int cpu = 0; cpu < 2 * cores; ++cpu)
      write("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
            std::to_string(cpu % cores) + "," + std::to_string(cpu % cores + cores) + "\n");
  }
  std::string root;
};

TEST_F(ThreadCount, QuotaV2) {
  write("/proc/self/cgroup", "0::/\n");
  auto threads = [&](const char *max) {
    write("/sys/fs/cgroup/cpu.max", max);
    return defaultThreadCount(cpus(16), nullptr, root);
  };
  EXPECT_EQ(threads("400000 100000\n"), 4u);
  EXPECT_EQ(threads("765000 100000\n"), 7u);
  EXPECT_EQ(threads("max 100000\n"), 16u);
  EXPECT_EQ(threads("50000 100000\n"), 1u);
  EXPECT_EQ(threads("nonsense"), 16u);
  EXPECT_EQ(threads("100 0\n"), 16u);
}

TEST_F(ThreadCount, TheTightestOfNestedGroupsWins) {
  write("/proc/self/cgroup", "0::/a/b\n");
  write("/sys/fs/cgroup/a/b/cpu.max", "800000 100000\n");
  write("/sys/fs/cgroup/a/cpu.max", "300000 100000\n");
  EXPECT_EQ(defaultThreadCount(cpus(16), nullptr, root), 3u);
}

TEST_F(ThreadCount, QuotaV1) {
  write("/proc/self/cgroup", "3:memory:/x\n2:cpu,cpuacct:/docker/abc\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(defaultThreadCount(cpus(8), nullptr, root), 8u);
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(defaultThreadCount(cpus(8), nullptr, root), 2u);
}

TEST_F(ThreadCount, MissingFilesMeanNoLimit) {
  EXPECT_EQ(defaultThreadCount(cpus(5), nullptr, root), 5u);
  EXPECT_EQ(defaultThreadCount({}, nullptr, root), 1u);
}

TEST_F(ThreadCount, HardwareThreadsOfOneCoreCountOnce) {
  topology(16);
  EXPECT_EQ(physicalCores(cpus(32), root), 16u);
  const int taskset[] = {0, 1, 16, 17};
  EXPECT_EQ(physicalCores(taskset, root), 2u);
  const int half[] = {0, 1, 2, 3};
  EXPECT_EQ(physicalCores(half, root), 4u);
}

TEST_F(ThreadCount, OfflineCpusDoNotCount) {
  write("/sys/devices/system/cpu/online", "0-2,5\n");
  EXPECT_EQ(physicalCores(cpus(8), root), 4u);
}

TEST_F(ThreadCount, MoreThanAThousandCpus) { EXPECT_EQ(physicalCores(cpus(3000), root), 3000u); }

TEST_F(ThreadCount, OmpNumThreadsAndTheFlag) {
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_EQ(defaultThreadCount(cpus(16), "3", root), 3u);
  EXPECT_EQ(defaultThreadCount(cpus(16), "6,2", root), 6u);
  EXPECT_EQ(defaultThreadCount(cpus(16), "many", root), 4u);
  EXPECT_EQ(defaultThreadCount(cpus(16), "0", root), 4u);
  EXPECT_EQ(chooseThreadCount(5), 5u); // -t 5
}

TEST(CpuList, Parses) {
  EXPECT_EQ(parseCpuList("0-2,7\n"), (std::vector<int>{0, 1, 2, 7}));
  EXPECT_EQ(parseCpuList(""), std::vector<int>{});
  EXPECT_EQ(parseCpuList("3-1"), std::vector<int>{});
  EXPECT_EQ(parseCpuList("0-99999999999"), std::vector<int>{});
}

TEST(AffinityCpus, ThisProcessHasSome) { EXPECT_FALSE(affinityCpus().empty()); }

TEST_F(ThreadCount, MemoryLimitOfTheContainer) {
  write("/proc/meminfo", "MemTotal: 999999 kB\nMemAvailable:   1000 kB\n");
  EXPECT_EQ(availableMemory(root), 1024000u);
  write("/proc/self/cgroup", "0::/a\n");
  write("/sys/fs/cgroup/a/memory.max", "700000\n");
  write("/sys/fs/cgroup/a/memory.current", "100000\n");
  EXPECT_EQ(availableMemory(root), 600000u);
  write("/sys/fs/cgroup/a/memory.max", "max\n");
  EXPECT_EQ(availableMemory(root), 1024000u);
}

} // namespace
