#include "test/emulator/kernels/EmulatedKernels.h"

#include "codegen/cpu/CpuCodegen.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/file.h>
#include <unistd.h>

using namespace llmc;
using namespace llmc::test;
namespace fs = std::filesystem;

bool test::wholeSweep() { return std::getenv("LLMC_LARGE") != nullptr; }

int64_t test::evaluate(const CudaAffine &a, const StepSizes &s) {
  return a.constant + a.perToken * s.T + a.perSequence * s.S + a.perRow * s.R + a.perTile * s.Q;
}

namespace {

std::string readFile(const fs::path &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The text of a header: that of a file in SIMT_HEADERS=DIR, else the compiler's.
std::string textOf(const CudaHeader &header) {
  const char *folder = std::getenv("SIMT_HEADERS");
  const fs::path path = fs::path(folder ? folder : "") / header.name.str();
  return folder && fs::exists(path) ? readFile(path) : header.text.str();
}

/// Where SIMT_CACHE=DIR keeps the object of \p text and all that it is built of; else empty.
std::string cachedObject(const std::string &text) {
  const char *folder = std::getenv("SIMT_CACHE");
  if (!folder)
    return "";
  llvm::SHA256 hash;
  hash.update(text);
  for (const CudaHeader &header : cudaHeaders())
    hash.update(textOf(header));
  for (const char *name : {"build-kernels", "Prelude.h", "Abi.h", "Removals.h"})
    hash.update(readFile(fs::path(SIMT_BUILD_KERNELS).parent_path() / name));
  fs::create_directories(folder);
  return (fs::path(folder) / (llvm::toHex(hash.final(), true) + ".so")).string();
}

unsigned blocks(const CudaGrid &grid, const StepSizes &s) {
  return unsigned((evaluate(grid.size, s) + grid.divide - 1) / grid.divide);
}

} // namespace

EmulatedKernels::EmulatedKernels(std::vector<KernelSpec> specs, CudaModel model,
                                 const std::string &architecture)
    : specs_(std::move(specs)) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::Location loc = mlir::UnknownLoc::get(&context);
  for (const KernelSpec &spec : specs_)
    if (failed(verifyKernelSpec(loc, spec)))
      std::abort();
  model.uses.resize(specs_.size());
  auto units = emitCudaUnits(loc, specs_, model);
  if (failed(units))
    std::abort(); // a message was printed
  std::erase_if(*units, [&](const CudaUnit &unit) { return !unit.isFor(architecture); });
  if (units->size() != 1)
    std::abort();
  build(units->front());
}

EmulatedKernels::EmulatedKernels(CudaUnit unit) { build(unit); }

void EmulatedKernels::build(const CudaUnit &unit) {
  entries_ = unit.entries;
  folder_ = (fs::temp_directory_path() / "emulated-kernels-XXXXXX").string();
  if (!mkdtemp(folder_.data()))
    std::abort();
  const std::string cached = cachedObject(unit.text), object = folder_ + "/kernels.so";
  // Held while the object is made: other processes wait for it.
  const int lock = cached.empty() ? -1 : open((cached + ".lock").c_str(), O_CREAT | O_RDWR, 0644);
  if (lock >= 0)
    flock(lock, LOCK_EX);
  if (cached.empty() || !fs::exists(cached)) {
    for (const CudaHeader &header : cudaHeaders())
      std::ofstream(fs::path(folder_) / header.name.str()) << textOf(header);
    const std::string source = folder_ + "/" + unit.family + ".cu";
    std::ofstream(source) << unit.text;
    const std::string command = std::string(SIMT_BUILD_KERNELS) + " checked '" + source + "' '" +
                                object + "' -L '" + SIMT_LIBRARY_FOLDER + "' -I'" + folder_ + "'";
    if (std::system(command.c_str()) != 0)
      std::abort();
    if (!cached.empty()) {
      fs::copy_file(object, cached + ".part", fs::copy_options::overwrite_existing);
      fs::rename(cached + ".part", cached);
    }
  }
  if (lock >= 0)
    close(lock);
  object_ = std::make_unique<simt::KernelObject>((cached.empty() ? object : cached).c_str());
}

EmulatedKernels::~EmulatedKernels() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

const CudaEntry &EmulatedKernels::entry(const std::string &name) const {
  for (const CudaEntry &entry : entries_)
    if (entry.name == name)
      return entry;
  std::abort();
}

void EmulatedKernels::run(const std::string &symbol, const LlmrtCudaStep &step,
                          const StepSizes &bucket, const std::vector<void *> &bindings,
                          int64_t scalar, const std::string &only, const LlmrtKvMaps *maps) {
  if (!only.empty())
    return launch(entry(only), step, bucket, bindings, scalar, maps);
  std::vector<CudaWhen> done;
  for (const CudaEntry &entry : entries_) {
    const KernelSpec &spec = specs_[entry.kernel];
    if (spec.symbol != symbol || std::count(done.begin(), done.end(), entry.when) ||
        (entry.when == CudaWhen::LongTiles && !bucket.longTiles) ||
        (entry.when == CudaWhen::SingleTiles && !bucket.singleTiles))
      continue;
    bool perRow = false;
    for (const KernelConstant &c : spec.constants)
      perRow |= c.name == "rows" && std::get<int64_t>(c.value) == 1;
    if (entry.maxRows != 0 && (perRow ? bucket.R : bucket.T) > entry.maxRows)
      continue;
    done.push_back(entry.when);
    launch(entry, step, bucket, bindings, scalar, maps);
  }
  EXPECT_FALSE(done.empty()) << symbol;
}

void EmulatedKernels::launch(const CudaEntry &entry, const LlmrtCudaStep &step,
                             const StepSizes &bucket, const std::vector<void *> &bindings,
                             int64_t scalar, const LlmrtKvMaps *maps) {
  DeviceArray scratch(size_t(evaluate(entry.scratch, bucket)));
  scratch.zero();
  launchWith(entry, step, bucket, bindings, scalar, scratch, maps);
}

void EmulatedKernels::launchEntry(const CudaEntry &entry, const LlmrtCudaStep &step,
                                  const StepSizes &bucket, const std::vector<void *> &bindings,
                                  const DeviceArray &scratch) {
  launchWith(entry, step, bucket, bindings, 0, scratch, nullptr);
}

void EmulatedKernels::launchWith(const CudaEntry &entry, const LlmrtCudaStep &step,
                                 const StepSizes &bucket, const std::vector<void *> &bindings,
                                 int64_t scalar, const DeviceArray &scratch,
                                 const LlmrtKvMaps *maps) {
  dim3 grid{blocks(entry.x, bucket), blocks(entry.y, bucket), blocks(entry.z, bucket)};
  if (entry.contextSplit)
    grid.z *= unsigned((bucket.longestContext + entry.contextSplit - 1) / entry.contextSplit);
  if (grid.x * grid.y * grid.z == 0)
    return;
  DeviceArray stepMemory(std::vector<LlmrtCudaStep>{step});
  LlmrtCudaBindings b{};
  std::copy(bindings.begin(), bindings.end(), b.pointers);
  b.scalars[0] = scalar;
  b.scratch = scratch.data();
  const void *stepPointer = stepMemory.data();
  LlmrtKvMaps copy = maps ? *maps : LlmrtKvMaps{};
  void *arguments[] = {&stepPointer, &b, &copy};
  simt::clearReports();
  const bool ok =
      simt::launch(object_->kernel(entry.name), grid, {entry.block}, entry.sharedBytes, arguments);
  ASSERT_TRUE(ok) << entry.name << ": " << simt::reports()[0].kind << ": "
                  << simt::reports()[0].text;
}
