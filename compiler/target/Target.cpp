#include "compiler/target/Target.h"

#include <algorithm>

using namespace llmc;
using llmrt::Result;

static constexpr CudaArch kArchs[] = {
#define LLMC_CUDA_ARCH(Name, Registers, Threads, Blocks, SharedPerSm, SharedPerBlock, What)        \
  {Name, Registers, Threads, Blocks, SharedPerSm * 1024, SharedPerBlock * 1024, What},
#include "compiler/target/CudaArchs.inc"
};

static constexpr CudaGpu kGpus[] = {
#define LLMC_CUDA_GPU(Name, Arch, Multiprocessors, GigabytesPerSecond, TeraflopsF16)               \
  {Name, Arch, Multiprocessors, GigabytesPerSecond * 1e9, TeraflopsF16 * 1e12},
#include "compiler/target/CudaGpus.inc"
};

std::span<const CudaGpu> llmc::cudaGpus() { return kGpus; }

std::span<const CudaArch> llmc::cudaArchs() { return kArchs; }

const CudaArch *llmc::findCudaArch(std::string_view name) {
  for (const CudaArch &arch : kArchs)
    if (arch.name == name)
      return &arch;
  return nullptr;
}

Occupancy llmc::occupancy(const CudaArch &arch, uint32_t threads, uint32_t registers,
                          uint32_t sharedBytes) {
  auto roundUp = [](uint32_t value, uint32_t unit) { return (value + unit - 1) / unit * unit; };
  const uint32_t warps = (threads + 31) / 32;
  if (warps == 0)
    return {};
  // Registers are given out 256 a warp at a time, shared memory 128 bytes and 1 KiB for the system.
  const uint32_t perBlock = roundUp(registers * 32, 256) * warps;
  const uint32_t shared = roundUp(sharedBytes, 128) + 1024;
  const std::pair<uint32_t, std::string_view> limits[] = {
      {arch.threads / (warps * 32), "threads"},
      {arch.blocks, "blocks"},
      {perBlock ? arch.registers / perBlock : arch.blocks, "registers"},
      {sharedBytes > arch.sharedPerBlock ? 0 : arch.sharedPerSm / shared, "shared memory"}};
  const auto *least =
      std::min_element(std::begin(limits), std::end(limits),
                       [](const auto &a, const auto &b) { return a.first < b.first; });
  Occupancy o;
  o.blocks = least->first;
  o.limit = least->second;
  o.warps = double(o.blocks) * warps / (arch.threads / 32);
  return o;
}

Result<TargetSet> llmc::parseTargets(const std::vector<std::string> &values) {
  TargetSet set;
  std::vector<bool> chosen(std::size(kArchs), false);
  auto fail = [](const std::string &item) {
    std::string known;
    for (const CudaArch &arch : kArchs)
      known += (known.empty() ? "" : ", ") + std::string(arch.name);
    return llmrt::invalidArgument(
        "--target: '" + item +
        "' is no target; targets are cpu, cuda (all of the following) and "
        "cuda:ARCH,... with " +
        known + ", as in cpu,cuda:sm_80,sm_90a");
  };
  for (const std::string &value : values) {
    bool inCuda = false; // whether a bare name may be an architecture
    for (size_t begin = 0; begin <= value.size();) {
      size_t end = std::min(value.find(',', begin), value.size());
      std::string item = value.substr(begin, end - begin);
      begin = end + 1;
      if (item == "cpu") {
        set.cpu = true, inCuda = false;
        continue;
      }
      if (item == "cuda") {
        chosen.assign(chosen.size(), true);
        inCuda = false;
        continue;
      }
      std::string name = item;
      if (name.starts_with("cuda:"))
        name = name.substr(5), inCuda = true;
      const CudaArch *arch = findCudaArch(name);
      if (!inCuda || !arch)
        return fail(item);
      chosen[static_cast<size_t>(arch - kArchs)] = true;
    }
  }
  for (size_t i = 0; i < chosen.size(); ++i)
    if (chosen[i])
      set.cuda.emplace_back(kArchs[i].name);
  if (set.cuda.empty())
    set.cpu = true;
  return set;
}

std::string llmc::formatTargets(const TargetSet &targets) {
  std::string text = targets.cpu ? "cpu" : "";
  for (size_t i = 0; i < targets.cuda.size(); ++i)
    text += (i ? "," : text.empty() ? "cuda:" : ",cuda:") + targets.cuda[i];
  return text;
}
