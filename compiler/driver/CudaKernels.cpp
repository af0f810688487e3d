//===- CudaKernels.cpp - the kernels of a program for CUDA ----------------------------===//

#include "compiler/driver/CudaKernels.h"
#include "codegen/cpu/CpuCodegen.h"
#include "codegen/cuda/Nvrtc.h"
#include "compiler/cache/CompileCache.h"
#include "compiler/driver/OutputFile.h"
#include "compiler/target/Target.h"
#include "llvm/Support/JSON.h"

#include <algorithm>
#include <atomic>
#include <thread>

using namespace mlir;
using namespace llmc;
using llmrt::Result;
using llmrt::Status;
namespace fbs = llmrt::fbs;

/// PTX of the first architecture is what the driver of any other GPU compiles at load.
static constexpr llvm::StringLiteral kFallback = "compute_80";

std::vector<KernelSpec> llmc::kernelSpecs(plan::ProgramOp program) {
  std::vector<KernelSpec> specs;
  for (plan::KernelOp kernel : program.getOps<plan::KernelOp>()) {
    KernelSpec spec{kernel.getSymName().str(), kernel.getKind().str(), {}};
    for (NamedAttribute attr : kernel.getConstants()) {
      KernelConstant constant{attr.getName().str(), int64_t(0)};
      if (auto integer = dyn_cast<IntegerAttr>(attr.getValue()))
        constant.value = integer.getInt();
      else if (auto real = dyn_cast<FloatAttr>(attr.getValue()))
        constant.value = real.getValueAsDouble();
      else
        constant.value = cast<StringAttr>(attr.getValue()).str();
      spec.constants.push_back(std::move(constant));
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

FailureOr<std::vector<CudaUnit>> llmc::emitCudaUnits(plan::ProgramOp program) {
  std::vector<KernelSpec> specs = kernelSpecs(program);
  CudaModel model;
  if (auto name = program.getModel().getAs<StringAttr>("name"))
    model.name = name.str();
  if (auto context = program.getModel().getAs<IntegerAttr>("max_context"))
    model.maxContext = context.getInt();
  model.compiler = "llmc " LLMC_VERSION;
  model.maxTokens = program.getLimits().getTokens();
  model.queryTile = program.getLimits().getQueryTile();
  llvm::StringMap<size_t> indices;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (failed(verifyKernelSpec(program.getLoc(), specs[i])))
      return failure();
    indices[specs[i].symbol] = i;
  }
  model.uses.resize(specs.size());
  for (plan::CommandOp command : program.getOps<plan::CommandOp>())
    model.uses[indices.lookup(command.getKernel())].push_back(command.getName().str());
  FailureOr<std::vector<CudaUnit>> units = emitCudaUnits(program.getLoc(), specs, model);
  auto outputs = program.getOps<plan::OutputOp>(); // the logits first
  if (succeeded(units) && !outputs.empty())
    units->push_back(
        emitCudaSampling(model, static_cast<int64_t>((*outputs.begin()).getColumns())));
  return units;
}

namespace {

/// One unit for one architecture.
struct Job {
  const CudaUnit *unit;
  std::string architecture;
  Result<CudaImage> image = llmrt::unsupported("not compiled");
};

/// Compiles all, the longest texts first, on \p jobs threads.
void compileAll(std::vector<Job> &work, const CudaCompiler &compiler, unsigned jobs,
                Progress &progress) {
  std::vector<Job *> order;
  for (Job &job : work)
    order.push_back(&job);
  std::sort(order.begin(), order.end(), [](const Job *a, const Job *b) {
    const size_t x = a->unit->text.size(), y = b->unit->text.size();
    return x != y ? x > y : a < b;
  });
  std::atomic<size_t> next = 0;
  auto run = [&] {
    for (size_t i; (i = next.fetch_add(1)) < order.size();) {
      order[i]->image = compiler.compile(*order[i]->unit, order[i]->architecture);
      progress.advance(1);
    }
  };
  std::vector<std::thread> pool;
  for (unsigned i = 1; i < std::min<size_t>(jobs, order.size()); ++i)
    pool.emplace_back(run);
  run();
  for (std::thread &thread : pool)
    thread.join();
}

std::unique_ptr<fbs::Affine> affine(const CudaAffine &a) {
  return std::make_unique<fbs::Affine>(a.constant, a.perToken, a.perSequence, a.perRow, a.perTile);
}

fbs::CudaKernelT launch(const CudaEntry &entry, uint32_t module, const Job &job) {
  fbs::CudaKernelT k;
  k.kernel = static_cast<uint32_t>(entry.kernel);
  k.module_ = module;
  k.sm = job.architecture;
  k.entry = entry.name;
  k.block = entry.block;
  k.shared_bytes = entry.sharedBytes;
  if (auto it = job.image->resources.find(entry.name); it != job.image->resources.end()) {
    k.registers = it->second.registers;
    k.spill_bytes = it->second.spillBytes;
  }
  k.grid_x = affine(entry.x.size);
  k.grid_y = affine(entry.y.size);
  k.grid_z = affine(entry.z.size);
  k.divide_x = entry.x.divide;
  k.divide_y = entry.y.divide;
  k.divide_z = entry.z.divide;
  k.context_split = entry.contextSplit;
  k.max_rows = entry.maxRows;
  k.when = static_cast<fbs::CudaWhen>(entry.when);
  k.scratch = affine(entry.scratch);
  return k;
}

/// The folder of compiled units; none where there is no home for one.
std::string cacheFolder() {
  Result<std::string> folder = CompileCache::defaultFolder();
  return folder ? *folder : "";
}

} // namespace

Result<CudaImages> llmc::compileCudaUnits(const std::vector<CudaUnit> &units,
                                          const std::vector<std::string> &archs, unsigned jobs,
                                          Progress &progress) {
  LLMRT_ASSIGN_OR_RETURN(Nvrtc nvrtc, Nvrtc::load());
  std::vector<std::string> all = archs;
  all.push_back(kFallback.str());
  std::vector<Job> work;
  for (const std::string &arch : all)
    for (const CudaUnit &unit : units)
      if (unit.isFor(arch))
        work.push_back({&unit, arch});
  progress.begin("CUDA kernels", work.size());
  compileAll(work, CudaCompiler(nvrtc, cacheFolder()), jobs, progress);
  CudaImages images;
  for (Job &job : work) {
    if (!job.image)
      return job.image.status();
    LLMRT_RETURN_IF_ERROR(checkCudaResources(*job.unit, job.architecture, *job.image));
    auto module = static_cast<uint32_t>(images.modules.size());
    for (const CudaEntry &entry : job.unit->entries)
      if (entry.isFor(job.architecture))
        (job.unit->isSampling ? images.sampling : images.kernels)
            .push_back(launch(entry, module, job));
    images.modules.push_back(
        {job.architecture + "." + job.unit->family, std::move(job.image->bytes)});
  }
  return images;
}

static std::string formatAffine(const CudaAffine &a) {
  std::string text;
  for (auto [value, name] : {std::pair{a.constant, ""},
                             {a.perToken, " T"},
                             {a.perSequence, " S"},
                             {a.perRow, " R"},
                             {a.perTile, " Q"}})
    if (value != 0)
      text += (text.empty() ? "" : " + ") + std::to_string(value) + name;
  return text.empty() ? "0" : text;
}

static std::string formatGrid(const CudaGrid &grid) {
  std::string text = formatAffine(grid.size);
  return grid.divide <= 1 ? text : "ceil((" + text + ") / " + std::to_string(grid.divide) + ")";
}

/// What one entry uses on one architecture.
static void writeResources(llvm::json::OStream &j, const CudaEntry &entry, const Job &job) {
  const CudaArch &arch = *findCudaArch(job.architecture);
  const CudaResources &r = job.image->resources.at(entry.name);
  Occupancy o = occupancy(arch, entry.block, r.registers, entry.sharedBytes);
  j.attributeObject(job.architecture, [&] {
    j.attribute("registers", r.registers);
    j.attribute("spill_bytes", r.spillBytes);
    j.attribute("stack_bytes", r.stackBytes);
    j.attribute("blocks_per_sm", o.blocks);
    j.attribute("occupancy", o.warps);
    j.attribute("limited_by", llvm::StringRef(o.limit));
  });
}

static std::string writeManifest(plan::ProgramOp program, const std::vector<CudaUnit> &units,
                                 const std::vector<Job> &work) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream j(stream, 2);
  std::vector<plan::KernelOp> kernels(program.getOps<plan::KernelOp>().begin(),
                                      program.getOps<plan::KernelOp>().end());
  auto writeEntry = [&](const CudaUnit &unit, const CudaEntry &entry) {
    plan::KernelOp kernel = unit.isSampling ? plan::KernelOp() : kernels[entry.kernel];
    j.attribute("kernel", kernel ? kernel.getSymName() : "sampling");
    j.attribute("kind", kernel ? kernel.getKind() : "sampling");
    j.attribute("entry", entry.name);
    j.attribute("file", unit.family + ".cu");
    j.attributeArray("parameters", [&] {
      if (!kernel) {
        j.value("logits");
        j.value("tokens");
        return;
      }
      for (Attribute role : kernel.getSignature())
        j.value(cast<StringAttr>(role).getValue());
    });
    j.attribute("max_rows", entry.maxRows);
    static constexpr llvm::StringLiteral when[] = {"always", "long_tiles", "single_tiles"};
    j.attribute("when", llvm::StringRef(when[static_cast<int>(entry.when)]));
    j.attribute("block", entry.block);
    std::string z = formatGrid(entry.z);
    if (entry.contextSplit)
      z += " * ceil(context / " + std::to_string(entry.contextSplit) + ")";
    j.attributeArray("grid", [&] {
      j.value(formatGrid(entry.x));
      j.value(formatGrid(entry.y));
      j.value(z);
    });
    j.attribute("shared_bytes", entry.sharedBytes);
    j.attribute("scratch", formatAffine(entry.scratch));
    j.attributeObject("targets", [&] {
      for (const Job &job : work)
        if (job.unit == &unit && entry.isFor(job.architecture))
          writeResources(j, entry, job);
    });
  };
  j.object([&] {
    j.attributeArray("kernels", [&] {
      for (const CudaUnit &unit : units)
        for (const CudaEntry &entry : unit.entries)
          j.object([&] { writeEntry(unit, entry); });
    });
  });
  return text + "\n";
}

Status llmc::writeCudaSources(plan::ProgramOp program, const std::vector<CudaUnit> &units,
                              const std::vector<std::string> &archs, const std::string &folder,
                              unsigned jobs, Progress &progress) {
  LLMRT_RETURN_IF_ERROR(makeFolder(folder));
  for (const CudaHeader &header : cudaHeaders())
    LLMRT_RETURN_IF_ERROR(writeOutputFile(folder + "/" + header.name.str(), header.text.str()));
  for (const CudaUnit &unit : units)
    LLMRT_RETURN_IF_ERROR(writeOutputFile(folder + "/" + unit.family + ".cu", unit.text));
  std::vector<Job> work;
  if (Result<Nvrtc> nvrtc = Nvrtc::load()) {
    for (const std::string &arch : archs)
      for (const CudaUnit &unit : units)
        if (unit.isFor(arch))
          work.push_back({&unit, arch});
    progress.begin("CUDA kernels", work.size());
    compileAll(work, CudaCompiler(*nvrtc, cacheFolder()), jobs, progress);
    for (const Job &job : work)
      LLMRT_RETURN_IF_ERROR(job.image.status());
  }
  LLMRT_RETURN_IF_ERROR(
      writeOutputFile(folder + "/manifest.json", writeManifest(program, units, work)));
  // After the files: they show what is wrong.
  for (const Job &job : work)
    LLMRT_RETURN_IF_ERROR(checkCudaResources(*job.unit, job.architecture, *job.image));
  return Status::ok();
}
