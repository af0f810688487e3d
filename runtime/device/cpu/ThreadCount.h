//===- ThreadCount.h - how many threads this process may really use ---------===//
#ifndef LLMRT_DEVICE_CPU_THREADCOUNT_H
#define LLMRT_DEVICE_CPU_THREADCOUNT_H

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llmrt {

/// The CPUs that the calling thread may run on, ascending; works beyond 1024 CPUs. Empty where the
/// system does not say.
std::vector<int> affinityCpus();

/// The cgroup's CPU quota in CPUs (4.0 for "400000 100000"), the tightest of the process's own
/// group and all groups above it, v2 (cpu.max) or v1 (cpu.cfs_quota_us); none when unlimited.
/// Files are read below \p root, "" outside tests.
std::optional<double> cgroupCpuQuota(const std::string &root = "");

/// Physical cores among \p cpus that are online: two hardware threads of one core count once,
/// since both would wait for the same vector units. A CPU without topology counts as a core.
unsigned physicalCores(std::span<const int> cpus, const std::string &root = "");

/// Threads to use by default: the cores that affinity allows, at most the quota rounded down,
/// at least 1. OMP_NUM_THREADS (its first number), when set and valid, replaces the number.
unsigned defaultThreadCount(std::span<const int> cpus, const char *ompNumThreads,
                            const std::string &root = "");

/// The same for this process; an explicit \p requested above 0 wins over everything.
unsigned chooseThreadCount(unsigned requested);

/// CPUs in a kernel list such as "0-3,8"; ends before what it can't read.
std::vector<int> parseCpuList(std::string_view text);

} // namespace llmrt

#endif // LLMRT_DEVICE_CPU_THREADCOUNT_H
