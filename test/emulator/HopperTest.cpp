// Copies by tensor map, mbarriers and products of warpgroups: their results, and what is reported
// where a wait, a fence or an arrival is missing.
#include "runtime/device/cuda/KernelAbi.h"
#include "test/emulator/Emulator.h"
#include "test/emulator/KernelObject.h"
#include "test/emulator/TensorCopies.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

using namespace simt;

namespace {

constexpr int tiles = 3, rows = 64 * tiles;

struct Case {
  const char *kernel;
  const char *kind; ///< "": none
};

const Case cases[] = {
    {"good", ""},
    {"no_full_wait", "copy in flight|shared race|uninitialised shared read"},
    {"no_empty_wait", "copy in flight|shared race|bad mbarrier"},
    {"empty_too_early", "copy in flight|shared race|bad mbarrier"},
    {"no_init_fence", "missing proxy fence"},
    {"too_many_bytes", "deadlock"},
    {"too_many_arrivals", "bad mbarrier"},
    {"misplaced_copy", "misaligned access"},
    {"no_wgmma_fence", "missing wgmma fence"},
    {"no_product_wait", "product in flight|copy in flight|shared race|bad mbarrier"},
    {"sums_touched", "product in flight"},
    {"operand_touched", "product in flight"},
    {"warps_differ", "warpgroup divergence"},
    {"copy_left_at_exit", "copy in flight|deadlock"},
    {"good_written", ""},
    {"no_proxy_fence", "missing proxy fence"},
    {"proxy_fence_too_early", "missing proxy fence"},
    {"no_barrier_after_write", "shared race|uninitialised shared read|missing proxy fence"},
};

/// One launch over B[2][1][rows][64] of f16, of which the kernel copies the second.
struct OneLaunch {
  std::vector<float> b = std::vector<float>(size_t(rows) * 64);
  std::vector<float> out = std::vector<float>(size_t(tiles) * 2 * 64 * 64);
  bool ok = false;

  OneLaunch(const char *kernel, Order order) {
    static KernelObject object(SIMT_HOPPER);
    options().order = order;
    clearReports();
    const size_t bytes = size_t(2 * rows) * 64 * 2;
    auto *memory = static_cast<_Float16 *>(allocate(bytes));
    std::mt19937 rng(7);
    for (int i = 0; i < 2 * rows * 64; ++i) {
      memory[i] = static_cast<_Float16>(int(rng() % 17) - 8);
      if (i >= rows * 64)
        b[size_t(i - rows * 64)] = float(memory[i]);
    }
    markInitialised(memory, bytes);
    LlmrtTensorMap map;
    const uint64_t sizes[] = {64, rows, 1, 2}, strides[] = {128, rows * 128, rows * 128};
    const uint32_t box[] = {64, 64, 1, 1};
    EXPECT_EQ(encodeTensorMap(&map, {memory, 4, sizes, strides, box}), "");
    auto *result = static_cast<float *>(allocate(out.size() * 4));
    int n = tiles;
    void *arguments[] = {&result, &n, &map};
    ok = launch(object.kernel(kernel), {1}, {160}, 8192 + 1024, arguments);
    std::memcpy(out.data(), result, out.size() * 4);
    release(memory);
    release(result);
    options().order = Order::Forward;
  }
};

class Hopper : public testing::TestWithParam<std::tuple<Case, Order>> {};

TEST_P(Hopper, ReportsWhatIsMissing) {
  const auto &[c, order] = GetParam();
  const OneLaunch run(c.kernel, order);
  if (!*c.kind) {
    ASSERT_TRUE(run.ok) << reports()[0].kind << ": " << reports()[0].text;
    return;
  }
  ASSERT_FALSE(run.ok);
  const Report &r = reports()[0];
  EXPECT_NE(("|" + std::string(c.kind) + "|").find("|" + r.kind + "|"), std::string::npos)
      << r.kind << ": " << r.text;
  EXPECT_TRUE(r.text.find("hopper.cu:") != std::string::npos || r.kind == "deadlock") << r.text;
}

TEST(HopperProducts, ProductsOfBothLayoutsAreThoseOfTheTile) {
  for (Order order : {Order::Forward, Order::Reverse, Order::Random}) {
    const OneLaunch run("good", order);
    ASSERT_TRUE(run.ok);
    auto a = [](int row, int k) { return float((row + 3 * k) % 8 - 3); };
    for (int tile = 0; tile < tiles; ++tile)
      for (int row = 0; row < 64; ++row)
        for (int n = 0; n < 64; ++n) {
          float transposed = 0, straight = 0;
          for (int k = 0; k < 64; ++k) {
            transposed += a(row, k) * run.b[size_t((tile * 64 + n) * 64 + k)];
            straight += a(row, k) * run.b[size_t((tile * 64 + k) * 64 + n)];
          }
          ASSERT_EQ(run.out[size_t(((2 * tile) * 64 + row) * 64 + n)], transposed);
          ASSERT_EQ(run.out[size_t(((2 * tile + 1) * 64 + row) * 64 + n)], straight);
        }
  }
}

TEST(HopperProducts, RefusesMapsThatTheDriverRefuses) {
  LlmrtTensorMap map;
  alignas(16) static char memory[64];
  const uint64_t sizes[] = {64, 16, 1, 1}, strides[] = {128, 2048, 2048};
  const uint32_t box[] = {64, 16, 1, 1};
  EXPECT_EQ(encodeTensorMap(&map, {memory, 4, sizes, strides, box}), "");
  EXPECT_NE(encodeTensorMap(&map, {memory + 8, 4, sizes, strides, box}), "");
  const uint64_t odd[] = {136, 2048, 2048};
  EXPECT_NE(encodeTensorMap(&map, {memory, 4, sizes, odd, box}), "");
  const uint32_t wide[] = {128, 16, 1, 1};
  EXPECT_NE(encodeTensorMap(&map, {memory, 4, sizes, strides, wide}), "");
}

std::string nameOf(const testing::TestParamInfo<Hopper::ParamType> &info) {
  static const char *const orders[] = {"forward", "reverse", "random"};
  return std::string(std::get<0>(info.param).kernel) + "_" + orders[int(std::get<1>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(All, Hopper,
                         testing::Combine(testing::ValuesIn(cases),
                                          testing::Values(Order::Forward, Order::Reverse,
                                                          Order::Random)),
                         nameOf);

} // namespace
