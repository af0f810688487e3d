#include "runtime/device/cpu/LoadModule.h"

#include <cstdlib>

namespace llmrt {

Result<LoadedModule> loadModule(const Plan &plan) {
  std::vector<std::string_view> names;
  std::vector<uint32_t> segments, abis;
  for (const fbs::CodeModule *module : *plan.head().modules())
    if (module->target() == fbs::Target::Cpu) {
      names.push_back(module->level()->string_view());
      segments.push_back(module->segment());
      abis.push_back(module->kernel_abi());
    }
  const char *forced = std::getenv("LLMRT_CPU_LEVEL");
  Result<size_t> choice = chooseCpuModule(names, machineCpuLevel(), forced ? forced : "");
  if (!choice)
    return choice.status().withContext(plan.name());
  LLMRT_ASSIGN_OR_RETURN(CpuLevel level, parseCpuLevel(names[*choice]));
  Result<CodeModule> code = CodeModule::load(std::as_bytes(plan.segment(segments[*choice])),
                                             "the code for " + std::string(names[*choice]));
  if (!code)
    return code.status().withContext(plan.name());
  bool wanted = forced && *forced;
  return LoadedModule{std::move(*code), level, abis[*choice],
                      !wanted && isLesserCode(level, machineCpuLevel())};
}

} // namespace llmrt
