//===- Driver.cpp - a model's files to a plan -----------------------------------------===//

#include "compiler/driver/Driver.h"
#include "codegen/cpu/CpuCodegen.h"
#include "compiler/driver/CudaKernels.h"
#include "compiler/driver/Diagnostics.h"
#include "compiler/driver/GraphCompiler.h"
#include "compiler/driver/ImportModel.h"
#include "compiler/driver/OutputFile.h"
#include "compiler/driver/Pipeline.h"
#include "compiler/driver/PlanEmitter.h"
#include "compiler/driver/Provenance.h"
#include "compiler/passes/AllPasses.h"
#include "compiler/target/Target.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <atomic>
#include <filesystem>
#include <future>
#include <thread>

using namespace mlir;
using namespace llmc;
using llmrt::Result;
using llmrt::Status;

static std::string printModule(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, OpPrintingFlags().enableDebugInfo(false));
  return text;
}

namespace {

/// One compilation, phase by phase.
class Compilation {
public:
  Compilation(const CompileOptions &options, Progress &progress)
      : options(options), progress(progress), context(registry()),
        diagnostics(&context, std::filesystem::path(options.model).filename().string()) {
    context.loadAllAvailableDialects();
  }

  Status run();
  CompileReport takeReport() { return {std::move(sources), diagnostics.takeRemarks()}; }

private:
  static DialectRegistry registry() {
    DialectRegistry registry;
    registerAllDialects(registry);
    return registry;
  }

  Status check();
  /// Those asked for; else all that have a use for \p specs.
  Result<std::vector<CpuLevel>> levels(llvm::ArrayRef<KernelSpec> specs) const;
  /// Dumps the module where --dump-ir asks for it; true when --emit stops here.
  Result<bool> afterPhase(Phase phase);
  Status compileKernels(plan::ProgramOp program, PlanExtras &extras);
  Status compileCuda(plan::ProgramOp program, PlanExtras &extras);
  /// Writes the CUDA sources and a manifest to the folder of --emit.
  Status emitCuda(plan::ProgramOp program);
  /// Does \p compile for \p count pieces of code, on as many threads as there are for it; \p name
  /// is a piece's in dumps, \p what the message for a failure that has no diagnostic.
  Status forPieces(size_t count, llvm::StringRef what,
                   llvm::function_ref<llvm::StringRef(size_t)> name,
                   llvm::function_ref<LogicalResult(size_t, const CpuDump &)> compile);
  /// What follows the import of a graph that is no decoder.
  Status runGraph();
  /// Measures what the search for 4-bit scales needs to know.
  Status calibrate();
  Status failure(llvm::StringRef fallback) {
    return llmrt::invalidFile(diagnostics.error(fallback));
  }
  unsigned jobs() const;

  const CompileOptions &options;
  TargetSet targets;
  Progress &progress;
  MLIRContext context;
  DiagnosticCollector diagnostics;
  ImportedModel model;
  ModelFiles files;
  ColumnImportance importance;
  std::vector<SourceHash> sources;
  std::future<Result<std::vector<SourceHash>>> hashes; ///< waits for its thread when it goes
};

} // namespace

unsigned Compilation::jobs() const {
  return options.jobs ? options.jobs : std::max(1u, std::thread::hardware_concurrency());
}

Status Compilation::check() {
  if (options.optLevel < 0 || options.optLevel > 3)
    return llmrt::invalidArgument("-O takes 0 to 3, not " + std::to_string(options.optLevel));
  if (options.head != "auto" && options.quantization != "int4")
    return llmrt::invalidArgument("--head " + options.head + " goes with --int4");
  for (const std::string &name : options.disabledPasses) {
    std::vector<std::string> known = optionalPasses();
    if (!llvm::is_contained(known, name))
      return llmrt::invalidArgument(
          "--disable-pass: '" + name +
          "' is not a pass that can be left out; those are: " + llvm::join(known, ", "));
  }
  LLMRT_ASSIGN_OR_RETURN(targets, parseTargets(options.targets));
  if (options.emitPhase == kEmitCuda) {
    if (options.emitPath.empty())
      return llmrt::invalidArgument("--emit cuda=DIR names the folder for the sources");
    if (targets.cuda.empty())
      return llmrt::invalidArgument("--emit cuda needs --target cuda or cuda:ARCH,...");
  } else if (!options.emitPhase.empty() && !phaseByName(options.emitPhase)) {
    std::vector<std::string> known = {"cuda=DIR"};
    for (auto &[name, what] : phaseHelp())
      known.push_back(name);
    return llmrt::invalidArgument("--emit: no phase '" + options.emitPhase +
                                  "'; phases: " + llvm::join(known, ", "));
  }
  return levels({}).status();
}

Result<std::vector<CpuLevel>> Compilation::levels(llvm::ArrayRef<KernelSpec> specs) const {
  std::vector<CpuLevel> all = allCpuLevels();
  std::vector<std::string> names = options.cpuLevels;
  if (names.empty())
    names.push_back(architectureName(hostArchitecture()).str());
  for (const std::string &name : names)
    if (llvm::none_of(all, [&](CpuLevel level) {
          return cpuLevelName(level) == name || architectureName(architectureOf(level)) == name;
        })) {
      std::vector<std::string> known;
      for (CpuLevel level : all)
        known.push_back(cpuLevelName(level).str());
      return llmrt::invalidArgument("--cpu-level: no level '" + name + "'; levels: " +
                                    llvm::join(known, ", ") + "; or all of x86-64 or aarch64");
    }
  // In the table's order, whatever the order asked for: the loader takes the last that fits. A
  // level that is named has code even where the model has no use for it.
  llvm::erase_if(all, [&](CpuLevel level) {
    return !llvm::is_contained(names, cpuLevelName(level)) &&
           !(llvm::is_contained(names, architectureName(architectureOf(level))) &&
             hasUseFor(level, specs));
  });
  return all;
}

Result<bool> Compilation::afterPhase(Phase phase) {
  bool stop = options.emitPhase == phaseName(phase);
  if (options.dumpDir.empty() && !stop)
    return false;
  std::string text = printModule(*model.module);
  if (!options.dumpDir.empty()) {
    std::string name = std::to_string(static_cast<int>(phase)) + "-" + phaseName(phase).str();
    LLMRT_RETURN_IF_ERROR(writeOutputFile(options.dumpDir + "/" + name + ".mlir", text));
  }
  if (stop && options.emitPath.empty()) {
    llvm::outs() << text;
    llvm::outs().flush();
  } else if (stop) {
    LLMRT_RETURN_IF_ERROR(writeOutputFile(options.emitPath, text));
  }
  return stop;
}

Status Compilation::compileKernels(plan::ProgramOp program, PlanExtras &extras) {
  std::vector<KernelSpec> specs = kernelSpecs(program);
  LLMRT_ASSIGN_OR_RETURN(std::vector<CpuLevel> chosen, levels(specs));
  std::vector<CpuPart> parts = cpuParts(specs, chosen);
  std::vector<std::string> compiled(parts.size());
  LLMRT_RETURN_IF_ERROR(forPieces(
      parts.size(), "the kernels could not be compiled",
      [&](size_t i) -> llvm::StringRef { return parts[i].name; },
      [&](size_t i, const CpuDump &dump) {
        FailureOr<std::string> object =
            emitCpuPart(program.getLoc(), parts[i], machineCodeLevel(options.optLevel), dump);
        if (succeeded(object))
          compiled[i] = std::move(*object);
        return success(succeeded(object));
      }));
  for (CpuLevel level : chosen) {
    std::vector<llvm::StringRef> own;
    for (size_t i = 0; i < parts.size(); ++i)
      if (llvm::is_contained(parts[i].objects, level))
        own.push_back(compiled[i]);
    FailureOr<CpuObject> object = linkCpuObject(program.getLoc(), specs, level, own);
    if (failed(object))
      return failure("the kernels could not be linked");
    extras.code.push_back({cpuLevelName(level).str(), std::move(object->bytes)});
    extras.scratchBytes = std::move(object->scratchBytes);
  }
  return Status::ok();
}

Status Compilation::forPieces(size_t count, llvm::StringRef what,
                              llvm::function_ref<llvm::StringRef(size_t)> name,
                              llvm::function_ref<LogicalResult(size_t, const CpuDump &)> compile) {
  progress.begin("kernels", count);
  std::atomic<size_t> next = 0;
  std::atomic<bool> isFailed = false;
  auto work = [&] {
    for (size_t i; (i = next++) < count;) {
      CpuDump dump;
      if (!options.dumpDir.empty())
        dump = [&, i](llvm::StringRef phase, llvm::StringRef text) {
          // A dump that can't be written is no reason to fail a compilation that can.
          (void)writeOutputFile(options.dumpDir + "/codegen/" + name(i).str() + "." + phase.str() +
                                    (phase == "mlir"  ? ".mlir"
                                     : phase == "asm" ? ".s"
                                                      : ".ll"),
                                text.str())
              .isOk();
        };
      if (failed(compile(i, dump)))
        isFailed = true;
      progress.advance(1);
    }
  };
  std::vector<std::future<void>> others;
  for (size_t i = 1; i < std::min<size_t>(jobs(), count); ++i)
    others.push_back(std::async(std::launch::async, work));
  work();
  for (std::future<void> &other : others)
    other.get();
  return isFailed ? failure(what) : Status::ok();
}

Status Compilation::runGraph() {
  if (!options.emitPhase.empty())
    return llmrt::invalidArgument("--emit " + options.emitPhase +
                                  ": the model is no decoder, and has the phase import only");
  if (!targets.cpu || !targets.cuda.empty())
    return llmrt::invalidArgument("--target: the model is no decoder, and runs on CPUs only");
  prepareGraph(*model.module, options.model);
  LLMRT_ASSIGN_OR_RETURN(files, openModelFiles(*model.module, options.model));
  auto main = model.module->lookupSymbol<func::FuncOp>("main");
  GraphTables tables(main);
  LLMRT_ASSIGN_OR_RETURN(std::vector<CpuLevel> chosen, levels({}));
  PlanExtras extras;
  for (CpuLevel level : chosen)
    extras.code.push_back({cpuLevelName(level).str(), {}});
  LLMRT_RETURN_IF_ERROR(forPieces(
      chosen.size(), "the graph could not be compiled",
      [&](size_t i) { return cpuLevelName(chosen[i]); },
      [&](size_t i, const CpuDump &dump) {
        FailureOr<std::string> object =
            emitGraphObject(main, tables, chosen[i],
                            options.optLevel == 0 ? 0 : machineCodeLevel(options.optLevel), dump);
        if (succeeded(object))
          extras.code[i].bytes = std::move(*object);
        return success(succeeded(object));
      }));
  LLMRT_ASSIGN_OR_RETURN(sources, hashSources(files, options.model));
  extras.provenance = makeProvenance(sources, options);
  return writeGraphPlan(*model.module, tables, files, extras, options.output, progress);
}

Status Compilation::compileCuda(plan::ProgramOp program, PlanExtras &extras) {
  FailureOr<std::vector<CudaUnit>> units = emitCudaUnits(program);
  if (failed(units))
    return failure("the CUDA kernels could not be written");
  Result<CudaImages> images = compileCudaUnits(*units, targets.cuda, jobs(), progress);
  LLMRT_RETURN_IF_ERROR(images.status());
  extras.cuda = std::move(*images);
  return Status::ok();
}

Status Compilation::emitCuda(plan::ProgramOp program) {
  FailureOr<std::vector<CudaUnit>> units = emitCudaUnits(program);
  if (failed(units))
    return failure("the CUDA kernels could not be written");
  return writeCudaSources(program, *units, targets.cuda, options.emitPath, jobs(), progress);
}

Status Compilation::calibrate() {
  CalibrationOptions run;
  run.threads = jobs();
  run.readable = [this](Value weight) { return readableWeight(weight, files); };
  bool begun = false;
  run.progress = [&](uint64_t done, uint64_t all) {
    if (!std::exchange(begun, true))
      progress.begin("calibration", all);
    progress.advance(1);
  };
  Result<ColumnImportance> measured = measureImportance(*model.module, run);
  if (measured)
    importance = std::move(*measured);
  else if (measured.status().code() == llmrt::StatusCode::Unsupported)
    emitRemark(model.module->getLoc())
        << "quantized without a measurement of the inputs: " << measured.status().message();
  else
    return measured.status();
  return Status::ok();
}

Status Compilation::run() {
  LLMRT_RETURN_IF_ERROR(check());
  if (!options.dumpDir.empty())
    LLMRT_RETURN_IF_ERROR(makeFolder(options.dumpDir + "/codegen"));

  progress.begin("import");
  LLMRT_ASSIGN_OR_RETURN(model, importModel(options, context, diagnostics));
  LLMRT_ASSIGN_OR_RETURN(bool done, afterPhase(Phase::Import));
  if (done)
    return Status::ok();

  if (!isDecoderGraph(*model.module))
    return runGraph();

  Phase last = phaseByName(options.emitPhase).value_or(Phase::Plan);
  Status phaseStatus;
  progress.begin("passes");
  LogicalResult ran = runPipeline(*model.module, options, last, [&](Phase phase) {
    if (phase == Phase::Raise) {
      // From here on the module is of the llm dialect and names its files.
      nameModel(*model.module, options.model);
      phaseStatus = limitContext(*model.module, options.maxModelLen);
      if (!phaseStatus)
        return LogicalResult::failure();
      Result<ModelFiles> opened = openModelFiles(*model.module, options.model);
      phaseStatus = opened.status();
      if (!opened)
        return LogicalResult::failure();
      files = std::move(*opened);
      // Hashing the sources only waits for the disk and one core: beside all that follows.
      if (last == Phase::Plan && options.emitPhase.empty())
        hashes =
            std::async(std::launch::async, [this] { return hashSources(files, options.model); });
    }
    Result<bool> stopped = afterPhase(phase);
    phaseStatus = stopped.status();
    if (phaseStatus.isOk() && phase == Phase::Raise && last == Phase::Plan &&
        options.emitPhase.empty() && options.quantization == "int4")
      phaseStatus = calibrate();
    return success(phaseStatus.isOk());
  });
  LLMRT_RETURN_IF_ERROR(phaseStatus);
  if (failed(ran))
    return failure("the model could not be compiled");
  if (phaseByName(options.emitPhase))
    return Status::ok();

  plan::ProgramOp program = *model.module->getOps<plan::ProgramOp>().begin();
  if (options.emitPhase == kEmitCuda)
    return emitCuda(program);
  PlanExtras extras;
  if (targets.cpu)
    LLMRT_RETURN_IF_ERROR(compileKernels(program, extras));
  if (!targets.cuda.empty())
    LLMRT_RETURN_IF_ERROR(compileCuda(program, extras));
  LLMRT_ASSIGN_OR_RETURN(sources, hashes.get());
  extras.provenance = makeProvenance(sources, options);
  fillText(model.text, extras);
  extras.importance = std::move(importance);
  for (plan::KernelOp kernel : program.getOps<plan::KernelOp>())
    if (auto flag = kernel.getConstants().getAs<IntegerAttr>("x_int8"); flag && flag.getInt())
      extras.activations = llmrt::fbs::ElementType::I8;

  EmitOptions emit;
  emit.threads = jobs();
  // The self-test is what a CPU computes.
  if (targets.cpu)
    emit.selfTest = options.selfTest;
  return writePlan(program, files, extras, options.output, emit, progress);
}

Status llmc::compileModel(const CompileOptions &options, Progress &progress,
                          CompileReport *report) {
  Compilation compilation(options, progress);
  Status status = compilation.run();
  progress.finish();
  if (report)
    *report = compilation.takeReport();
  return status;
}
