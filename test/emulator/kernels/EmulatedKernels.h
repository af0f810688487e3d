//===- EmulatedKernels.h - emitted CUDA kernels, built for the emulator -------===//
#ifndef LLMC_TEST_EMULATOR_KERNELS_EMULATEDKERNELS_H
#define LLMC_TEST_EMULATOR_KERNELS_EMULATEDKERNELS_H

#include "codegen/cuda/CudaCodegen.h"
#include "runtime/device/cuda/KernelAbi.h"
#include "test/emulator/Emulator.h"
#include "test/emulator/KernelObject.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace llmc::test {

/// Memory of the emulated device, an allocation of its own: a byte beyond it is a fault. What is
/// not given is uninitialised.
class DeviceArray {
public:
  explicit DeviceArray(size_t bytes)
      : bytes_(bytes), data_(simt::allocate(bytes ? bytes : 1), simt::release) {}
  template <class T> explicit DeviceArray(const std::vector<T> &values) {
    *this = DeviceArray(values.size() * sizeof(T));
    write(values.data(), bytes_);
  }
  void write(const void *from, size_t bytes, size_t at = 0) {
    if (bytes == 0)
      return;
    std::memcpy(data() + at, from, bytes);
    simt::markInitialised(data() + at, bytes);
  }
  void zero() {
    std::memset(data(), 0, bytes_);
    simt::markInitialised(data(), bytes_);
  }
  unsigned char *data() const { return static_cast<unsigned char *>(data_.get()); }
  size_t bytes() const { return bytes_; }
  template <class T> std::vector<T> read() const {
    std::vector<T> values(bytes_ / sizeof(T));
    std::memcpy(values.data(), data(), values.size() * sizeof(T));
    return values;
  }

private:
  size_t bytes_ = 0;
  std::shared_ptr<void> data_;
};

/// The sizes of a step.
struct StepSizes {
  int64_t T = 0, S = 0, R = 0, Q = 0, longestContext = 1;
  bool longTiles = true, singleTiles = true;
};

/// Kernels of one family: emitted, built in checked mode, loaded. SIMT_HEADERS=DIR has the texts of
/// the headers in place of the compiler's, SIMT_CACHE=DIR keeps the objects (mutate.py).
class EmulatedKernels {
public:
  EmulatedKernels(std::vector<KernelSpec> specs, CudaModel model,
                  const std::string &architecture = "sm_80");
  /// Entries of no kernel: launchEntry() runs them.
  explicit EmulatedKernels(CudaUnit unit);
  EmulatedKernels(const EmulatedKernels &) = delete;
  ~EmulatedKernels();

  /// Launches kernel \p symbol as the runtime does, with the grid of \p bucket; every entry that
  /// fits, one after the other for `LongTiles` and `SingleTiles`. The test fails on a report.
  /// \p entry: this entry only. \p maps: for kernels that take them.
  void run(const std::string &symbol, const LlmrtCudaStep &step, const StepSizes &bucket,
           const std::vector<void *> &bindings, int64_t scalar = 0, const std::string &entry = "",
           const LlmrtKvMaps *maps = nullptr);

  /// Launches \p entry with a workspace that outlives it.
  void launchEntry(const CudaEntry &entry, const LlmrtCudaStep &step, const StepSizes &bucket,
                   const std::vector<void *> &bindings, const DeviceArray &scratch);
  const std::vector<CudaEntry> &entries() const { return entries_; }
  const CudaEntry &entry(const std::string &name) const;

private:
  void build(const CudaUnit &unit);
  void launch(const CudaEntry &entry, const LlmrtCudaStep &step, const StepSizes &bucket,
              const std::vector<void *> &bindings, int64_t scalar, const LlmrtKvMaps *maps);
  void launchWith(const CudaEntry &entry, const LlmrtCudaStep &step, const StepSizes &bucket,
                  const std::vector<void *> &bindings, int64_t scalar, const DeviceArray &scratch,
                  const LlmrtKvMaps *maps);

  std::vector<KernelSpec> specs_;
  std::vector<CudaEntry> entries_;
  std::string folder_; ///< reports read the places from the object's file
  std::unique_ptr<simt::KernelObject> object_;
};

/// Bytes of \p size in a step.
int64_t evaluate(const CudaAffine &size, const StepSizes &step);

/// The orders of threads that each check is made in.
inline constexpr simt::Order allOrders[] = {simt::Order::Forward, simt::Order::Reverse,
                                            simt::Order::Random};

/// Whether the whole sweep is wanted (LLMC_LARGE is set) and not its small part.
bool wholeSweep();

} // namespace llmc::test

#endif // LLMC_TEST_EMULATOR_KERNELS_EMULATEDKERNELS_H
