#include "codegen/cpu/MicrokernelBitcode.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Support/ErrorHandling.h"

using namespace llmc;

extern "C" {
#define LLMRT_CPU_LEVEL(Id, Name, Arch, Cpu, Features, What)                                       \
  extern const char llmc_cpu_bitcode_##Id[], llmc_cpu_bitcode_##Id##_end[];
#include "runtime/device/cpu/CpuLevels.inc"
}

std::vector<CpuLevel> llmc::allCpuLevels() {
  return {
#define LLMRT_CPU_LEVEL(Id, Name, Arch, Cpu, Features, What) CpuLevel::Id,
#include "runtime/device/cpu/CpuLevels.inc"
  };
}

llvm::StringRef llmc::cpuLevelName(CpuLevel level) {
  switch (level) {
#define LLMRT_CPU_LEVEL(Id, Name, Arch, Cpu, Features, What)                                       \
  case CpuLevel::Id:                                                                               \
    return Name;
#include "runtime/device/cpu/CpuLevels.inc"
  }
  llvm_unreachable("a level that the table doesn't have");
}

llvm::StringRef llmc::microkernelBitcode(CpuLevel level) {
  switch (level) {
#define LLMRT_CPU_LEVEL(Id, Name, Arch, Cpu, Features, What)                                       \
  case CpuLevel::Id:                                                                               \
    return {llmc_cpu_bitcode_##Id,                                                                 \
            static_cast<size_t>(llmc_cpu_bitcode_##Id##_end - llmc_cpu_bitcode_##Id)};
#include "runtime/device/cpu/CpuLevels.inc"
  }
  llvm_unreachable("a level that the table doesn't have");
}

llvm::Expected<std::unique_ptr<llvm::Module>> llmc::loadMicrokernels(CpuLevel level,
                                                                     llvm::LLVMContext &context) {
  // Lazy: a function is read when something needs it.
  return llvm::getLazyBitcodeModule(
      llvm::MemoryBufferRef(microkernelBitcode(level), "microkernels." + cpuLevelName(level).str()),
      context);
}

std::string llmc::microkernelName(llvm::StringRef kind) { return ("llmc_kernel_" + kind).str(); }

namespace {

/// taskTiles -> task_tiles
std::string planName(llvm::StringRef parameter) {
  std::string name;
  for (char c : parameter) {
    if (llvm::isUpper(c))
      name += '_';
    name += llvm::toLower(c);
  }
  return name;
}

/// "int64_t taskTiles, float eps" -> task_tiles, eps (real)
std::vector<KernelParameter> parseParameters(llvm::StringRef text) {
  std::vector<KernelParameter> parameters;
  for (llvm::StringRef parameter : llvm::split(text, ',')) {
    auto [type, name] = parameter.trim().split(' ');
    parameters.push_back({planName(name.trim()), type == "float"});
  }
  return parameters;
}

using ParameterTable = llvm::StringMap<std::vector<KernelParameter>>;
const ParameterTable &parameterTable() {
  static const ParameterTable table = [] {
    ParameterTable result;
    llvm::LLVMContext context;
    auto module = loadMicrokernels(allCpuLevels().front(), context);
    if (!module)
      llvm::report_fatal_error(module.takeError());
    for (const llvm::GlobalVariable &variable : (*module)->globals()) {
      llvm::StringRef kind = variable.getName();
      if (kind.consume_front("llmc_parameters_"))
        result[kind] = parseParameters(
            llvm::cast<llvm::ConstantDataArray>(variable.getInitializer())->getAsCString());
    }
    return result;
  }();
  return table;
}

} // namespace

bool llmc::hasMicrokernel(llvm::StringRef kind) { return parameterTable().contains(kind); }

llvm::ArrayRef<KernelParameter> llmc::kernelParameters(llvm::StringRef kind) {
  auto found = parameterTable().find(kind);
  if (found == parameterTable().end())
    return {};
  return found->second;
}
