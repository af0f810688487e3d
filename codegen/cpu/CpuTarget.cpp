#include "codegen/cpu/CpuTarget.h"

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"

#include <mutex>

using namespace llmc;
using llvm::SmallVector;

static llvm::StringRef triple(CpuArchitecture architecture) {
  return architecture == CpuArchitecture::X86_64 ? "x86_64-unknown-linux-gnu"
                                                 : "aarch64-unknown-linux-gnu";
}

CpuArchitecture llmc::architectureOf(CpuLevel level) {
  switch (level) {
#define LLMRT_CPU_LEVEL(Id, Name, Arch, Cpu, Features, What)                                       \
  case CpuLevel::Id:                                                                               \
    return CpuArchitecture::Arch;
#include "runtime/device/cpu/CpuLevels.inc"
  }
  llvm_unreachable("a level that the table doesn't have");
}

CpuArchitecture llmc::hostArchitecture() {
#if defined(__aarch64__)
  return CpuArchitecture::AArch64;
#else
  return CpuArchitecture::X86_64;
#endif
}

llvm::StringRef llmc::architectureName(CpuArchitecture architecture) {
  return architecture == CpuArchitecture::X86_64 ? "x86-64" : "aarch64";
}

LevelTarget llmc::levelTarget(CpuLevel level) {
  switch (level) {
#define LLMRT_CPU_LEVEL(Id, Name, Arch, Cpu, Features, What)                                       \
  case CpuLevel::Id:                                                                               \
    return {Cpu, Features};
#include "runtime/device/cpu/CpuLevels.inc"
  }
  llvm_unreachable("a level that the table doesn't have");
}

std::unique_ptr<llvm::TargetMachine> llmc::makeTargetMachine(CpuLevel level, int optLevel) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser(); // the kernels have instructions as text
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeAArch64AsmParser();
  });
  std::string error;
  llvm::Triple triple(::triple(architectureOf(level)));
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict; // only the text's own fused multiply-adds
  options.FunctionSections = true;                    // unused memory functions are dropped
  LevelTarget t = levelTarget(level);
  constexpr llvm::CodeGenOptLevel levels[] = {
      llvm::CodeGenOptLevel::None, llvm::CodeGenOptLevel::Less, llvm::CodeGenOptLevel::Default,
      llvm::CodeGenOptLevel::Aggressive};
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, t.cpu, t.features, options, llvm::Reloc::PIC_, std::nullopt, levels[optLevel]));
}

void llmc::optimise(llvm::Module &module, llvm::TargetMachine &machine, int optLevel,
                    Loops loopsAre) {
  llvm::PipelineTuningOptions tuning;
  tuning.SLPVectorization = false;
  tuning.LoopVectorization = tuning.LoopUnrolling = loopsAre == Loops::Scalar;
  llvm::PassBuilder builder(&machine, tuning);
  // A microkernel is for every format: inlined first, only what its constants leave is optimised.
  builder.registerPipelineStartEPCallback(
      [](llvm::ModulePassManager &passes, llvm::OptimizationLevel) {
        passes.addPass(llvm::AlwaysInlinerPass());
        passes.addPass(llvm::GlobalDCEPass());
      });
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  const llvm::OptimizationLevel kLevels[] = {
      llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1, llvm::OptimizationLevel::O2,
      llvm::OptimizationLevel::O3};
  llvm::ModulePassManager passes = optLevel == 0
                                       ? builder.buildO0DefaultPipeline(kLevels[0])
                                       : builder.buildPerModuleDefaultPipeline(kLevels[optLevel]);
  passes.run(module, modules);
}

std::string llmc::emitFile(const llvm::Module &module, llvm::TargetMachine &machine,
                           llvm::CodeGenFileType type) {
  SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream os(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, os, nullptr, type))
    return {};
  passes.run(const_cast<llvm::Module &>(module));
  return std::string(bytes.begin(), bytes.end());
}
