//===- KernelCases.h - what the tests of emitted kernels share -------------------===//
#ifndef LLMC_TEST_EMULATOR_KERNELS_KERNELCASES_H
#define LLMC_TEST_EMULATOR_KERNELS_KERNELCASES_H

#include "test/emulator/kernels/EmulatedKernels.h"
#include "test/unit/codegen/KernelRunner.h"

#include "gtest/gtest.h"

#include <bit>
#include <map>

namespace llmc::test {

/// The cases of a table that this run makes: those marked isLarge in the whole sweep only.
template <class Case, size_t N> std::vector<Case> chosenCases(const Case (&cases)[N]) {
  std::vector<Case> chosen;
  for (const Case &c : cases)
    if (!c.isLarge || wholeSweep())
      chosen.push_back(c);
  return chosen;
}

/// The name of a case as a test's suffix.
inline constexpr auto nameOfCase = [](const auto &info) { return std::string(info.param.name); };

/// The kernel of a case, built when a test first asks: a run of few cases (mutate.py) builds few.
inline EmulatedKernels &kernelsOf(const KernelSpec &spec, const CudaModel &model,
                                  const std::string &architecture = "sm_80") {
  static std::map<std::string, std::unique_ptr<EmulatedKernels>> all;
  std::unique_ptr<EmulatedKernels> &kernels = all[spec.kind + " " + spec.symbol];
  if (!kernels)
    kernels = std::make_unique<EmulatedKernels>(std::vector<KernelSpec>{spec}, model, architecture);
  return *kernels;
}

/// What f32 becomes as an operand of that type; integers meet f16.
inline float rounded(float x, Element e) {
  if (e == Element::BF16) {
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
  }
  return e == Element::F32 ? x : static_cast<float>(static_cast<_Float16>(x));
}

inline std::vector<void *> pointers(std::initializer_list<const DeviceArray *> arrays) {
  std::vector<void *> all;
  for (const DeviceArray *a : arrays)
    all.push_back(a->data());
  return all;
}

/// Runs in each order: the bits must be the same. \p y is cleared before each.
template <class T>
std::vector<T> runAll(EmulatedKernels &kernels, const char *symbol, const LlmrtCudaStep &step,
                      const std::vector<void *> &bindings, DeviceArray &y, int64_t scalar = 0) {
  StepSizes bucket;
  bucket.T = step.T + 5, bucket.R = step.R + 5, bucket.S = 1, bucket.Q = 1;
  std::vector<T> first;
  for (simt::Order order : allOrders) {
    simt::options().order = order;
    kernels.run(symbol, step, bucket, bindings, scalar);
    if (testing::Test::HasFatalFailure())
      return first;
    std::vector<T> got = y.read<T>();
    if (first.empty())
      first = got;
    EXPECT_EQ(std::memcmp(first.data(), got.data(), y.bytes()), 0) << "other bits in another order";
  }
  simt::options().order = simt::Order::Forward;
  return first;
}

} // namespace llmc::test

#endif // LLMC_TEST_EMULATOR_KERNELS_KERNELCASES_H
