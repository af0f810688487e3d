#include "codegen/cpu/GraphCodegen.h"

#include "codegen/cpu/CpuTarget.h"
#include "codegen/cpu/GraphEmitter.h"
#include "codegen/cpu/LinkSharedObject.h"
#include "dialects/graph/NodeLocation.h"

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/IPO/Internalize.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llmc;
using namespace llmc::graph;
using llvm::StringRef;
using llvm::Twine;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::success;

extern "C" const char llmc_graph_bitcode_X86_64[], llmc_graph_bitcode_X86_64_end[];
extern "C" const char llmc_graph_bitcode_AArch64[], llmc_graph_bitcode_AArch64_end[];

GraphTables::GraphTables(mlir::func::FuncOp main) {
  main.walk([&](Operation *op) {
    if (mlir::isa<ConstantOp, WeightOp>(op)) {
      weightIndex[op] = static_cast<unsigned>(weights.size());
      weights.push_back(op);
    }
    std::string name = graph::describeNode(op);
    if (nodes.empty() || nodes.back() != name)
      nodes.push_back(std::move(name));
    nodeIndex[op] = static_cast<unsigned>(nodes.size() - 1);
  });
}

namespace {

/// Links what \p module calls of the kernels' library and specialises it.
llvm::Error linkKernels(llvm::Module &module, CpuLevel level) {
  const bool isX86 = architectureOf(level) == CpuArchitecture::X86_64;
  const char *begin = isX86 ? llmc_graph_bitcode_X86_64 : llmc_graph_bitcode_AArch64;
  const char *end = isX86 ? llmc_graph_bitcode_X86_64_end : llmc_graph_bitcode_AArch64_end;
  StringRef bytes(begin, static_cast<size_t>(end - begin));
  auto library = llvm::getLazyBitcodeModule(llvm::MemoryBufferRef(bytes, "graph kernels"),
                                            module.getContext());
  if (!library)
    return library.takeError();
  module.setDataLayout((*library)->getDataLayout());
  module.setTargetTriple((*library)->getTargetTriple());
  for (const llvm::Function &f : module)
    if (f.isDeclaration() && f.getName().starts_with("llmc_graph_") &&
        !(*library)->getFunction(f.getName()))
      return llvm::createStringError("there is no kernel '" +
                                     f.getName().drop_front(strlen("llmc_graph_")) + "'");
  llvm::Type *pointer = llvm::PointerType::get(module.getContext(), 0);
  llvm::Type *i64 = llvm::Type::getInt64Ty(module.getContext());
  llvm::Type *i32 = llvm::Type::getInt32Ty(module.getContext());
  constexpr llvm::StringLiteral memory[] = {"memcpy", "memmove", "memset"};
  for (StringRef name : memory)
    module.getOrInsertFunction(name, pointer, pointer, name == "memset" ? i32 : pointer, i64);
  if (llvm::Linker::linkModules(module, std::move(*library), llvm::Linker::LinkOnlyNeeded))
    return llvm::createStringError("linking the graph kernels' bitcode failed");
  LevelTarget target = levelTarget(level);
  std::string features = target.features.str();
  for (llvm::Function &f : module) {
    if (f.isDeclaration())
      continue;
    f.removeFnAttr("tune-cpu");
    f.addFnAttr("target-cpu", target.cpu);
    // The kernels are compiled for the least level; its features are part of every other.
    f.removeFnAttr("target-features");
    if (!features.empty())
      f.addFnAttr("target-features", features);
    f.addFnAttr("no-builtins");
    for (StringRef name : memory)
      if (f.getName() == name)
        f.setVisibility(llvm::GlobalValue::HiddenVisibility);
  }
  llvm::internalizeModule(module, [&](const llvm::GlobalValue &v) {
    return v.getName() == kGraphMain || llvm::is_contained(memory, v.getName());
  });
  return llvm::Error::success();
}

/// Inlines each kernel into its wrapper, where its type is a constant, and drops what that leaves
/// without a caller before anything is optimised.
void specialise(llvm::Module &module) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  llvm::ModulePassManager passes;
  passes.addPass(llvm::AlwaysInlinerPass(/*InsertLifetime=*/false));
  passes.addPass(llvm::GlobalDCEPass());
  passes.run(module, modules);
}

} // namespace

FailureOr<std::string> llmc::emitGraphObject(mlir::func::FuncOp main, const GraphTables &tables,
                                             CpuLevel level, int optLevel, const CpuDump &dump) {
  auto fail = [&](const Twine &what) -> LogicalResult {
    return mlir::emitError(main.getLoc()) << "CPU code for " << cpuLevelName(level) << ": " << what;
  };
  auto dumpTo = [&](StringRef phase, const llvm::Module &module) {
    if (!dump)
      return;
    std::string text;
    llvm::raw_string_ostream os(text);
    module.print(os, nullptr);
    dump(phase, text);
  };
  llvm::LLVMContext context;
  llvm::Module module("graph", context);
  if (mlir::failed(GraphEmitter(module, tables).emit(main)))
    return failure();
  if (llvm::Error error = linkKernels(module, level))
    return fail(llvm::toString(std::move(error)));
  specialise(module);
  std::string broken;
  llvm::raw_string_ostream brokenStream(broken);
  if (llvm::verifyModule(module, &brokenStream))
    return fail("the LLVM IR is broken: " + broken);
  dumpTo("llvm", module);
  std::unique_ptr<llvm::TargetMachine> machine = makeTargetMachine(level, optLevel);
  if (!machine)
    return fail("this LLVM was built without the " + architectureName(architectureOf(level)) +
                " target");
  // At level 0 the library's own preparation has to do: a graph is compiled in some 50 ms.
  if (optLevel > 0)
    optimise(module, *machine, optLevel, Loops::Scalar);
  dumpTo("llvm-opt", module);
  if (dump)
    dump("asm",
         emitFile(*llvm::CloneModule(module), *machine, llvm::CodeGenFileType::AssemblyFile));
  std::string object = emitFile(module, *machine, llvm::CodeGenFileType::ObjectFile);
  if (object.empty())
    return fail("the target can't emit objects");
  llvm::Expected<std::string> shared = linkSharedObject(llvm::StringRef(object));
  if (!shared)
    return fail(llvm::toString(shared.takeError()));
  return std::move(*shared);
}
