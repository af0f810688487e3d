#include "runtime/device/cpu/ThreadCount.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <sched.h>
#include <set>
#include <sstream>

namespace llmrt {
namespace {

constexpr int maxCpus = 1 << 16;
constexpr unsigned maxThreads = 1024;

std::optional<std::string> readSmallFile(const std::string &path) {
  std::ifstream in(path);
  if (!in)
    return std::nullopt;
  std::string text(4096, '\0');
  in.read(text.data(), std::streamsize(text.size()));
  text.resize(size_t(in.gcount()));
  return text;
}

std::optional<long long> parseNumber(std::string_view text) {
  long long value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data())
    return std::nullopt;
  return value;
}

void tighten(std::optional<double> &limit, double cpus) {
  if (!limit || cpus < *limit)
    limit = cpus;
}

/// Calls \p visit with the directory of the group \p path below \p mount and of each of its
/// parents. Inside a container the path may be the host's and not exist here: then only some of
/// the directories do, the mount itself at least.
template <typename Visit>
void walkUp(const std::string &mount, std::string path, const Visit &visit) {
  while (true) {
    while (!path.empty() && path.back() == '/')
      path.pop_back();
    visit(mount + path);
    size_t slash = path.rfind('/');
    if (slash == std::string::npos)
      return;
    path.resize(slash);
  }
}

void readV2(const std::string &directory, std::optional<double> &limit) {
  std::optional<std::string> text = readSmallFile(directory + "/cpu.max");
  if (!text)
    return;
  std::istringstream in(*text);
  std::string quota, period;
  in >> quota >> period;
  std::optional<long long> q = parseNumber(quota), p = parseNumber(period);
  if (q && p && *q > 0 && *p > 0) // "max" is no number: no limit
    tighten(limit, double(*q) / double(*p));
}

void readV1(const std::string &directory, std::optional<double> &limit) {
  std::optional<std::string> quota = readSmallFile(directory + "/cpu.cfs_quota_us");
  std::optional<std::string> period = readSmallFile(directory + "/cpu.cfs_period_us");
  if (!quota || !period)
    return;
  std::optional<long long> q = parseNumber(*quota), p = parseNumber(*period);
  if (q && p && *q > 0 && *p > 0) // -1: no limit
    tighten(limit, double(*q) / double(*p));
}

} // namespace

std::vector<int> parseCpuList(std::string_view text) {
  std::vector<int> cpus;
  while (!text.empty()) {
    std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    std::optional<long long> first = parseNumber(item);
    if (!first || *first < 0 || *first >= maxCpus)
      break;
    long long last = *first;
    if (size_t dash = item.find('-'); dash != std::string_view::npos) {
      std::optional<long long> end = parseNumber(item.substr(dash + 1));
      if (!end || *end < *first || *end >= maxCpus)
        break;
      last = *end;
    }
    for (long long cpu = *first; cpu <= last; ++cpu)
      cpus.push_back(int(cpu));
  }
  return cpus;
}

std::vector<int> affinityCpus() {
  // The kernel refuses a mask that is shorter than its own: double until it fits.
  for (int capacity = 1024; capacity <= maxCpus; capacity *= 2) {
    cpu_set_t *set = CPU_ALLOC(capacity);
    if (!set)
      return {};
    size_t bytes = CPU_ALLOC_SIZE(capacity);
    CPU_ZERO_S(bytes, set);
    std::vector<int> cpus;
    bool ok = sched_getaffinity(0, bytes, set) == 0;
    for (int cpu = 0; ok && cpu < capacity; ++cpu)
      if (CPU_ISSET_S(cpu, bytes, set))
        cpus.push_back(cpu);
    CPU_FREE(set);
    if (ok)
      return cpus;
  }
  return {};
}

std::optional<double> cgroupCpuQuota(const std::string &root) {
  std::optional<double> limit;
  std::ifstream groups(root + "/proc/self/cgroup");
  bool any = false;
  // Lines are "id:controllers:path"; v2 is "0::path".
  for (std::string line; std::getline(groups, line);) {
    size_t first = line.find(':');
    size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    any = true;
    if (controllers.empty()) {
      walkUp(root + "/sys/fs/cgroup", path,
             [&](const std::string &directory) { readV2(directory, limit); });
      continue;
    }
    if (("," + controllers + ",").find(",cpu,") == std::string::npos)
      continue;
    for (const char *mount : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"})
      walkUp(root + mount, path, [&](const std::string &directory) { readV1(directory, limit); });
  }
  if (!any) { // no /proc: what is mounted is this group's own
    readV2(root + "/sys/fs/cgroup", limit);
    readV1(root + "/sys/fs/cgroup/cpu", limit);
  }
  return limit;
}

unsigned physicalCores(std::span<const int> cpus, const std::string &root) {
  const std::string base = root + "/sys/devices/system/cpu/";
  std::vector<int> online;
  if (std::optional<std::string> text = readSmallFile(base + "online"))
    online = parseCpuList(*text);
  std::set<int> cores;
  for (int cpu : cpus) {
    if (!online.empty() && !std::binary_search(online.begin(), online.end(), cpu))
      continue;
    // The core is named by its first hardware thread.
    int core = cpu;
    if (std::optional<std::string> text =
            readSmallFile(base + "cpu" + std::to_string(cpu) + "/topology/thread_siblings_list"))
      if (std::vector<int> siblings = parseCpuList(*text); !siblings.empty())
        core = siblings.front();
    cores.insert(core);
  }
  return unsigned(cores.size());
}

unsigned defaultThreadCount(std::span<const int> cpus, const char *ompNumThreads,
                            const std::string &root) {
  if (ompNumThreads) // a list gives one number a nesting level; the first is ours
    if (std::optional<long long> n = parseNumber(ompNumThreads); n && *n > 0)
      return unsigned(std::min<long long>(*n, maxThreads));
  unsigned threads = std::max(1u, physicalCores(cpus, root));
  if (std::optional<double> quota = cgroupCpuQuota(root))
    threads = std::min(threads, std::max(1u, unsigned(std::min(*quota, double(maxThreads)))));
  return std::min(threads, maxThreads);
}

unsigned chooseThreadCount(unsigned requested) {
  if (requested)
    return std::min(requested, maxThreads);
  return defaultThreadCount(affinityCpus(), std::getenv("OMP_NUM_THREADS"));
}

} // namespace llmrt
