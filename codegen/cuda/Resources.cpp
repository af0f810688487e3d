// What a compiled kernel may use.
#include "codegen/cuda/Nvrtc.h"

#include <algorithm>

using namespace llmc;
using llmrt::Status;

uint32_t llmc::mostCudaRegisters(uint32_t threads) {
  // Of a thread an instruction names 255.
  return std::min(255u, 65536u / std::max(threads, 256u));
}

Status llmc::checkCudaResources(const CudaUnit &unit, const std::string &architecture,
                                const CudaImage &image) {
  for (const CudaEntry &entry : unit.entries) {
    auto it = image.resources.find(entry.name);
    if (it == image.resources.end())
      continue; // PTX: known when it is loaded
    const CudaResources &r = it->second;
    std::string wrong;
    auto add = [&](const std::string &what) { wrong += (wrong.empty() ? "" : ", ") + what; };
    if (r.spillBytes)
      add("spills " + std::to_string(r.spillBytes) + " bytes of registers");
    if (r.stackBytes)
      add("keeps " + std::to_string(r.stackBytes) + " bytes in local memory");
    if (const uint32_t most = mostCudaRegisters(entry.block); r.registers > most)
      add("takes " + std::to_string(r.registers) + " registers a thread, at most " +
          std::to_string(most) + " leave room for its blocks of " + std::to_string(entry.block));
    if (!wrong.empty())
      return llmrt::unsupported("kernel '" + entry.name + "' (" + unit.family + ".cu) for " +
                                architecture + " " + wrong +
                                ": no plan is made of it. --emit cuda=DIR writes its source and "
                                "what every kernel uses");
  }
  return Status::ok();
}
