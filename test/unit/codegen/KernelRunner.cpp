#include "test/unit/codegen/KernelRunner.h"

#include "test/replay/ForeignObject.h"
#include "test/replay/Recorder.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <dlfcn.h>
#include <immintrin.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace llmc;
using namespace llmc::test;

std::vector<CpuLevel> test::runnableLevels() {
  std::vector<CpuLevel> levels;
  if (__builtin_cpu_supports("x86-64-v3"))
    levels.push_back(CpuLevel::X86V3);
  if (__builtin_cpu_supports("x86-64-v4") && __builtin_cpu_supports("avx512vnni"))
    levels.push_back(CpuLevel::X86V4);
  // ARCH_REQ_XCOMP_PERM for XTILEDATA: Linux enables tiles for processes that ask.
  if (__builtin_cpu_supports("amx-int8") && syscall(SYS_arch_prctl, 0x1023, 18) == 0)
    levels.push_back(CpuLevel::X86V4Amx);
  return levels;
}

/// With LLMC_RECORD_KERNELS=FILE the calls of this machine's first level are recorded, to be done
/// again at level LLMC_RECORD_LEVEL elsewhere (test/replay).
static replay::Recorder *recorder() {
  static std::unique_ptr<replay::Recorder> instance = [] {
    const char *file = std::getenv("LLMC_RECORD_KERNELS"),
               *level = std::getenv("LLMC_RECORD_LEVEL");
    return file && level ? std::make_unique<replay::Recorder>(file, level) : nullptr;
  }();
  return instance.get();
}
static CpuLevel recordedLevel() {
  const std::string name = std::getenv("LLMC_RECORD_LEVEL");
#define LLMRT_CPU_LEVEL(Id, Name, Arch, Cpu, Features, What)                                       \
  if (name == Name)                                                                                \
    return CpuLevel::Id;
#include "runtime/device/cpu/CpuLevels.inc"
  ADD_FAILURE() << "LLMC_RECORD_LEVEL=" << name << " is no level";
  std::abort();
}

LoadedObject::LoadedObject(const std::string &bytes) {
  if (replay::ForeignObject::isForeign(bytes)) {
    foreign = std::make_unique<replay::ForeignObject>(bytes);
    recorder()->addCode(foreign->memory(), foreign->size());
    return;
  }
  fd = memfd_create("kernel", MFD_CLOEXEC);
  if (write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    ADD_FAILURE() << "short write";
  handle = dlopen(("/proc/self/fd/" + std::to_string(fd)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    ADD_FAILURE() << dlerror();
}
LoadedObject::~LoadedObject() {
  if (foreign)
    recorder()->removeCode(foreign->memory());
  if (handle)
    dlclose(handle);
  if (fd >= 0)
    close(fd);
}
LlmrtKernel LoadedObject::find(const std::string &symbol) const {
  if (foreign)
    return reinterpret_cast<LlmrtKernel>(const_cast<void *>(foreign->find(symbol)));
  return reinterpret_cast<LlmrtKernel>(dlsym(handle, symbol.c_str()));
}

namespace {
constexpr size_t kGuard = 256;
constexpr uint8_t kGuardByte = 0xff; // as float a NaN
} // namespace

Buffer::Buffer(size_t bytes) : size(bytes) {
  size_t all = (bytes + kGuard + 63) / 64 * 64;
  memory.reset(static_cast<uint8_t *>(std::aligned_alloc(64, all)));
  std::memset(memory.get(), kGuardByte, all);
  if (recorder())
    recorder()->add(memory.get(), all);
}
void Buffer::Free::operator()(uint8_t *p) const {
  if (recorder())
    recorder()->remove(p);
  std::free(p);
}
bool Buffer::guardIsIntact() const {
  for (size_t i = 0; i < kGuard; ++i)
    if (memory.get()[size + i] != kGuardByte)
      return false;
  return true;
}

CompiledKernel::CompiledKernel(const std::string &kind, std::vector<KernelConstant> constants,
                               CpuLevel level, int optLevel, Text text)
    : name(kind) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  std::vector<KernelSpec> specs = {KernelSpec{"kernel", kind, std::move(constants)}};
  if (text == Text::Shared) {
    specs.push_back(specs[0]);
    specs[1].symbol = "other";
  }
  auto emit = [&](CpuLevel at) {
    auto result = emitCpuObject(mlir::UnknownLoc::get(&context), specs, at, optLevel);
    if (failed(result)) {
      ADD_FAILURE() << "can't compile " << kind;
      std::abort();
    }
    return std::move(*result);
  };
  CpuObject result = emit(level);
  object = std::make_unique<LoadedObject>(result.bytes);
  kernel = object->find("kernel");
  scratchBytes = result.scratchBytes[0];
  if (recorder() && level == runnableLevels().front()) {
    CpuObject other = emit(recordedLevel());
    recorded = std::make_unique<LoadedObject>(other.bytes);
    EXPECT_EQ(other.scratchBytes, result.scratchBytes);
  }
}

void CompiledKernel::run(const LlmrtStep &step, const std::vector<void *> &bindings, int64_t tasks,
                         std::vector<int64_t> scalars, int64_t pieces) const {
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(saved | 0x8040); // denormals are zeros
  for (int64_t p = pieces; p-- > 0;) {
    Buffer scratch(scratchBytes);
    const int64_t begin = tasks * p / pieces, end = tasks * (p + 1) / pieces;
    if (recorded)
      recorder()->before(name, reinterpret_cast<const void *>(recorded->find("kernel")), step,
                         bindings.data(), bindings.size(), scalars.data(), scalars.size(), begin,
                         end, scratch.data(), scratchBytes);
    kernel(&step, bindings.data(), scalars.data(), begin, end, scratch.data());
    if (recorded)
      recorder()->after(scratch.data(), scratchBytes);
    EXPECT_TRUE(scratch.guardIsIntact());
  }
  _mm_setcsr(saved);
}

std::vector<KernelConstant> test::formatConstants(const WeightFormat &f) {
  return {{"w_element", int64_t(f.element)}, {"w_packing", int64_t(f.packing)},
          {"w_group", int64_t(f.group)},     {"w_scale", int64_t(f.scale)},
          {"w_has_min", int64_t(f.hasMin)},  {"w_min", int64_t(f.min)}};
}

std::vector<KernelConstant> test::operator+(std::vector<KernelConstant> a,
                                            const std::vector<KernelConstant> &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<float> test::randomFloats(std::mt19937 &rng, size_t count, float low, float high) {
  std::uniform_real_distribution<float> draw(low, high);
  std::vector<float> values(count);
  for (float &v : values)
    v = draw(rng);
  return values;
}

bool test::sameBits(const std::vector<float> &a, const std::vector<float> &b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
}
