//===- KernelRunner.h - compiled kernels, loaded as the runtime loads them ---===//
#ifndef LLMC_TEST_UNIT_CODEGEN_KERNELRUNNER_H
#define LLMC_TEST_UNIT_CODEGEN_KERNELRUNNER_H

#include "codegen/cpu/CpuCodegen.h"
#include "compiler/quantize/Pack.h"
#include "runtime/device/cpu/KernelAbi.h"

#include "mlir/IR/Diagnostics.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace llmc::replay {
class ForeignObject;
}

namespace llmc::test {

/// The levels that this machine runs.
std::vector<CpuLevel> runnableLevels();

/// An ELF object in memory, opened with memfd_create and dlopen; of another architecture only while
/// calls are recorded.
class LoadedObject {
public:
  explicit LoadedObject(const std::string &bytes);
  ~LoadedObject();
  LoadedObject(const LoadedObject &) = delete;
  LlmrtKernel find(const std::string &symbol) const;

private:
  int fd = -1;
  void *handle = nullptr;
  std::unique_ptr<replay::ForeignObject> foreign;
};

/// 64-byte aligned bytes with a guard after them that must stay untouched; filled with NaNs.
class Buffer {
public:
  explicit Buffer(size_t bytes = 0);
  template <typename T> static Buffer of(const std::vector<T> &values) {
    Buffer b(values.size() * sizeof(T));
    std::ranges::copy(values, reinterpret_cast<T *>(b.data()));
    return b;
  }
  uint8_t *data() const { return memory.get(); }
  float *floats() const { return reinterpret_cast<float *>(memory.get()); }
  std::vector<float> floatVector() const { return {floats(), floats() + size / 4}; }
  size_t bytes() const { return size; }
  bool guardIsIntact() const;

private:
  struct Free {
    void operator()(uint8_t *p) const;
  };
  std::unique_ptr<uint8_t, Free> memory;
  size_t size;
};

/// Whether a kernel is compiled alone, or beside one that it shares its text with: then what its
/// kind's texts take at run time are no constants.
enum class Text { Own, Shared };

/// One kernel, compiled for a level; sets DAZ and FTZ as the runtime does.
class CompiledKernel {
public:
  CompiledKernel(const std::string &kind, std::vector<KernelConstant> constants, CpuLevel level,
                 int optLevel = 3, Text text = Text::Own);
  /// Runs tasks [0, tasks) in \p pieces calls, last piece first.
  void run(const LlmrtStep &step, const std::vector<void *> &bindings, int64_t tasks,
           std::vector<int64_t> scalars = {}, int64_t pieces = 1) const;

private:
  std::string name;
  std::unique_ptr<LoadedObject> object, recorded; ///< recorded: at the level of the recording
  LlmrtKernel kernel;
  uint64_t scratchBytes;
};

/// The constants of a weight format.
std::vector<KernelConstant> formatConstants(const WeightFormat &format);
std::vector<KernelConstant> operator+(std::vector<KernelConstant> a,
                                      const std::vector<KernelConstant> &b);

std::vector<float> randomFloats(std::mt19937 &rng, size_t count, float low = -1, float high = 1);

/// Equal bits, NaN included.
bool sameBits(const std::vector<float> &a, const std::vector<float> &b);

} // namespace llmc::test

#endif // LLMC_TEST_UNIT_CODEGEN_KERNELRUNNER_H
