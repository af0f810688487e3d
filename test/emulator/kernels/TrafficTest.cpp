// What the hot kernels ask of memory, counted by the emulator on whole tiles: shared memory without
// bank conflicts, weights, keys and values in whole sectors. `explain --gpu` prints these figures
// (compiler/target/CudaTraffic.inc).
#include "compiler/target/CudaTraffic.h"
#include "test/emulator/kernels/AttentionSteps.h"
#include "test/unit/codegen/RandomWeight.h"

#include <set>

using namespace llmc;
using namespace llmc::test;

namespace {

struct Sum {
  uint64_t transactions = 0, least = 0;
  double ratio() const { return least ? double(transactions) / double(least) : 0; }
};

/// Counts while it lives.
class Counted {
public:
  Counted() { simt::countTraffic(true); }
  ~Counted() { simt::countTraffic(false); }

  /// Checks what was counted against the row \p name of the table. \p file: whose global accesses
  /// are those of the weights, or of keys and values.
  void expectRow(const std::string &name, const std::string &file) const {
    Sum shared, global;
    for (const simt::MemoryTraffic &t : simt::traffic()) {
      const bool isOperand = t.place.compare(0, file.size(), file) == 0 || t.place == "?";
      if (!t.shared && !isOperand)
        continue;
      Sum &sum = t.shared ? shared : global;
      sum.transactions += t.transactions, sum.least += t.leastTransactions;
      if (t.transactions != t.leastTransactions)
        places += (t.shared ? "\n  banks " : "\n  sectors ") + t.place + ": " +
                  std::to_string(t.transactions) + " of " + std::to_string(t.leastTransactions);
    }
    ASSERT_GT(shared.least, 0u) << name;
    ASSERT_GT(global.least, 0u) << name;
    char row[160];
    std::snprintf(row, sizeof row, "LLMC_CUDA_TRAFFIC(\"%s\", %.2f, %.2f)", name.c_str(),
                  shared.ratio(), global.ratio());
    const CudaTraffic *known = findCudaTraffic(name);
    ASSERT_TRUE(known) << "no row; it would be " << row << places;
    EXPECT_NEAR(known->banks, shared.ratio(), 0.005) << row << places;
    EXPECT_NEAR(known->sectors, global.ratio(), 0.005) << row << places;
  }

private:
  mutable std::string places;
};

struct Product {
  const char *name;
  WeightFormat format;
  int64_t group = 0; ///< of int8 activations; 0: f32
  bool isLarge = true;
  bool grouped = false; ///< two experts, each row's named by its id
};
const Product products[] = {
    {"i4", n16k4(Element::I4, 32, Element::F16, false), 0, false},
    {"i4_min", n16k4(Element::I4, 32, Element::F16, true, Element::F16)},
    {"i4_g128", n16k4(Element::I4, 128, Element::F16, false)},
    {"i4_g128_min", n16k4(Element::I4, 128, Element::F16, true, Element::F16)},
    {"i8", n16k4(Element::I8, 32, Element::F16, false)},
    {"i8_g16", n16k4(Element::I8, 16, Element::F32, false)},
    {"i8_int8_rows", n16k4(Element::I8, 32, Element::F16, false), 32},
    {"i4_int8_rows", n16k4(Element::I4, 32, Element::F16, false), 32},
    {"f16", n16(Element::F16), 0, false},
    {"bf16", n16(Element::BF16)},
    {"f32", n16(Element::F32)},
    {"experts_i4", n16k4(Element::I4, 32, Element::F16, false), 0, false, true},
    {"experts_i8", n16k4(Element::I8, 32, Element::F16, false), 0, true, true},
    {"experts_i4_int8_rows", n16k4(Element::I4, 32, Element::F16, false), 32, true, true},
    {"experts_i8_int8_rows", n16k4(Element::I8, 32, Element::F16, false), 32, true, true},
    {"experts_f16", n16(Element::F16), 0, true, true},
    {"experts_bf16", n16(Element::BF16), 0, true, true},
    {"experts_f32", n16(Element::F32), 0, true, true},
};

/// f16 caches of all sizes of heads that are common; other types of one with rows of a multiple of
/// 128 bytes, which change places, and one without, which are padded.
const AttentionCase attentions[] = {
    {"f16_d16", 4, 2, 16, 16, 1},
    {"f16_d32", 4, 4, 32, 32, 1, 0, 0, false, false, true},
    {"f16_d64", 8, 2, 64, 64, 1, 0, 0, false, false, true},
    {"f16_d80", 4, 4, 80, 80, 1, 0, 0, false, false, true},
    {"f16_d96", 4, 4, 96, 96, 1, 0, 0, false, false, true},
    {"f16_d128", 8, 2, 128, 128, 1, 0, 0, false, false, true},
    {"f16_d256", 4, 2, 256, 256, 1, 0, 0, false, false, true},
    {"f16_d192", 4, 4, 192, 128, 1, 0, 0, false, false, true},
    {"f16_latent", 16, 1, 576, 512, 1, 0, 0, false, false, true, true},
    {"hopper_f16_d64", 8, 2, 64, 64, 1, 0, 0, false, false, false, false, true},
    {"hopper_f16_d128", 8, 1, 128, 128, 1, 0, 0, false, false, false, false, true},
    {"hopper_bf16_d128", 8, 1, 128, 128, 2, 0, 0, false, false, false, false, true},
    {"hopper_bf16_d64", 8, 2, 64, 64, 2, 0, 0, false, false, false, false, true},
    {"bf16_d80", 4, 4, 80, 80, 2, 0, 0, false, false, true},
    {"bf16_d128", 8, 2, 128, 128, 2, 0, 0, false, false, true},
    {"i8_d64", 8, 2, 64, 64, 3},
    {"i8_d96", 4, 4, 96, 96, 3, 0, 0, false, false, true},
    {"i8_d128", 8, 2, 128, 128, 3, 0, 0, false, false, true},
    {"f32_d64", 8, 2, 64, 64, 0, 0, 0, false, false, true},
    {"f32_d80", 4, 4, 80, 80, 0, 0, 0, false, false, true},
};

std::string nameOf(const KernelSpec &spec, bool isNarrow, bool isWgmma = false) {
  return cudaTrafficName(
      spec.kind,
      [&](std::string_view name) -> int64_t {
        for (const KernelConstant &c : spec.constants)
          if (c.name == name)
            return std::get<int64_t>(c.value);
        return 0;
      },
      isNarrow, isWgmma);
}

KernelSpec spec(const Product &c) {
  std::vector<KernelConstant> constants = {
      {"k", int64_t(1024)}, {"n", int64_t(64)},         {"x_int8", int64_t(c.group != 0)},
      {"group", c.group},   {"task_tiles", int64_t(2)}, {"glu", int64_t(0)},
      {"bias", int64_t(0)}};
  if (c.grouped)
    constants =
        constants + std::vector<KernelConstant>{{"groups", int64_t(2)}, {"slots", int64_t(1)},
                                                {"chosen", int64_t(1)}, {"alpha", 0.0},
                                                {"limit", 0.0},         {"x_stride", int64_t(0)}};
  else
    constants = constants +
                std::vector<KernelConstant>{{"residual", int64_t(0)}, {"activation", int64_t(0)}};
  return {std::string("traffic_") + c.name, c.grouped ? "grouped_gemm" : "gemm",
          constants + formatConstants(c.format)};
}

class ProductTraffic : public testing::TestWithParam<Product> {};

TEST_P(ProductTraffic, IsThatOfTheTable) {
  const Product &c = GetParam();
  const int64_t n = 64, k = 1024;
  std::mt19937 rng(5);
  const Weight w = makeWeight(rng, c.format, n, k);
  EmulatedKernels kernels({spec(c)}, {"test", "test", 256, 16, 1024, {}});
  std::vector<uint8_t> packed(w.packed.data(), w.packed.data() + w.packed.bytes());
  if (c.grouped)
    packed.insert(packed.end(), w.packed.data(), w.packed.data() + w.packed.bytes());
  const DeviceArray weights(packed);
  for (int64_t m : {8, 128}) {
    const std::vector<float> x = randomFloats(rng, size_t(m * k));
    DeviceArray input(x);
    if (c.group) {
      const Buffer q = quantizedBuffer(reference::quantizeRows(m, k, c.group, x.data()));
      input = DeviceArray(std::vector<uint8_t>(q.data(), q.data() + q.bytes()));
    }
    DeviceArray y(size_t(m * n) * 4);
    LlmrtCudaStep step{};
    step.T = m;
    StepSizes bucket;
    bucket.T = m;
    std::vector<int32_t> ids; // two rows of the one, two of the other
    for (int64_t i = 0; i < m; ++i)
      ids.push_back(int32_t(i / 2 % 2));
    const DeviceArray idMemory(ids);
    std::vector<void *> bindings = {input.data(), weights.data()};
    if (c.grouped)
      bindings.push_back(idMemory.data());
    bindings.push_back(y.data());
    const Counted counted;
    kernels.run(spec(c).symbol, step, bucket, bindings);
    counted.expectRow(nameOf(spec(c), m == 8), "weights.cuh");
  }
}

class AttentionTraffic : public testing::TestWithParam<AttentionCase> {};

TEST_P(AttentionTraffic, IsThatOfTheTable) {
  const AttentionCase &c = GetParam();
  const Sequences s(c, {128});
  for (bool isDecode : {true, false}) {
    // A query tile of a prompt whose keys are whole tiles, or one token over them.
    const std::vector<Span> spans = {{0, isDecode ? 127 : 112, 128}};
    const Counted counted;
    attend(s, spans, 16);
    counted.expectRow(nameOf(attentionSpec(c), isDecode, c.hopper),
                      c.hopper ? "attention_sm90.cuh" : "attention_block.cuh");
  }
}

TEST(Traffic, EveryRowOfTheTableIsCounted) {
  std::set<std::string> counted;
  for (bool isNarrow : {true, false}) {
    for (const Product &c : products)
      counted.insert(nameOf(spec(c), isNarrow));
    for (const AttentionCase &c : attentions)
      counted.insert(nameOf(attentionSpec(c), isNarrow, c.hopper));
  }
  std::set<std::string> rows;
  for (const CudaTraffic &row : cudaTraffic())
    rows.insert(std::string(row.kernel));
  EXPECT_EQ(rows, counted);
}

/// What codegen/cuda/README.md says of the table.
TEST(Traffic, HasNoConflictsAndWholeSectors) {
  for (const CudaTraffic &row : cudaTraffic()) {
    EXPECT_EQ(row.banks, 1) << row.kernel;
    EXPECT_EQ(row.sectors, 1) << row.kernel;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ProductTraffic, testing::ValuesIn(chosenCases(products)),
                         nameOfCase);
INSTANTIATE_TEST_SUITE_P(Shapes, AttentionTraffic, testing::ValuesIn(chosenCases(attentions)),
                         nameOfCase);

} // namespace
