// Attention against the reference: head sizes, windows, caps, element types; rows alone and in
// batches of prompts and decoding; three orders of threads.
#include "codegen/cpu/kernels/reference/Reference.h"
#include "test/emulator/kernels/AttentionSteps.h"

#include <cmath>

using namespace llmc;
using namespace llmc::test;

namespace {

const AttentionCase cases[] = {
    {"d80_f16_window", 6, 2, 80, 80, 1, 37},
    {"d96_bf16_cap", 3, 1, 96, 96, 2, 0, 5.0},
    {"d36_i8_alibi_sinks", 4, 2, 36, 36, 3, 0, 0, true, true},
    {"d40_i8", 4, 2, 40, 40, 3},
    {"d24_values136_f32", 6, 1, 24, 136, 0},
    {"d8_values136_group17_f16", 17, 1, 8, 136, 1, 45}, // a window of more than a tile
    {"d5_values3_f32", 2, 1, 5, 3, 0},
    {"latent_d40_values24_bf16", 5, 1, 40, 24, 2, 0, 0, false, false, false, true},
    {"hopper_d64_f16_window", 24, 2, 64, 64, 1, 37, 0, false, false, false, false, true},
    {"hopper_d128_bf16_cap", 8, 1, 128, 128, 2, 0, 5.0, false, false, false, false, true},
    {"hopper_d128_f16", 8, 2, 128, 128, 1, 0, 0, false, false, true, false, true},
    {"hopper_d64_bf16_alibi_sinks", 4, 2, 64, 64, 2, 0, 0, true, true, true, false, true},
    {"hopper_d64_f16_sinks_window", 16, 2, 64, 64, 1, 130, 0, false, true, true, false, true},
    {"hopper_d64_f16_group70", 70, 1, 64, 64, 1, 0, 0, false, false, true, false, true},
    {"hopper_d128_bf16_multi_head", 4, 4, 128, 128, 2, 65, 30.0, false, false, true, false, true},
    {"latent_d576_values512_f16", 20, 1, 576, 512, 1, 0, 0, false, false, true, true},
    {"latent_d576_values512_f32", 3, 1, 576, 512, 0, 0, 0, false, false, true, true},
    {"d64_f32_gqa", 9, 3, 64, 64, 0, 0, 0, false, false, true},
    {"d64_i8_alibi_sinks", 4, 2, 64, 64, 3, 0, 0, true, true, true},
    {"d64_f16_sinks", 4, 2, 64, 64, 1, 9, 0, false, true, true},
    {"d32_f16", 4, 4, 32, 32, 1, 0, 0, false, false, true},
    {"d40_f32", 4, 1, 40, 40, 0, 9, 0, false, false, true},
    {"d48_bf16", 34, 2, 48, 48, 2, 0, 0, false, false, true}, // more rows than 16 a KV head
    {"d64_f16", 9, 3, 64, 64, 1, 0, 0, false, false, true},
    {"d64_bf16_window", 8, 2, 64, 64, 2, 100, 0, false, false, true},
    {"d80_i8", 6, 2, 80, 80, 3, 0, 0, false, false, true},
    {"d80_f32", 4, 4, 80, 80, 0, 0, 0, false, false, true},
    {"d96_f16", 6, 2, 96, 96, 1, 0, 0, false, false, true},
    {"d96_f32_alibi", 3, 1, 96, 96, 0, 33, 0, true, false, true},
    {"d96_i8", 3, 1, 96, 96, 3, 0, 2.0, false, false, true},
    {"d112_f16", 4, 2, 112, 112, 1, 0, 0, false, false, true},
    {"d128_f16", 8, 2, 128, 128, 1, 0, 0, false, false, true},
    {"d128_bf16_cap", 4, 4, 128, 128, 2, 65, 30.0, false, false, true},
    {"d128_f32", 4, 1, 128, 128, 0, 0, 0, false, false, true},
    {"d128_i8_window", 4, 2, 128, 128, 3, 64, 0, false, false, true},
    {"d192_f16_values128", 4, 4, 192, 128, 1, 0, 0, false, false, true},
    {"d256_f16", 8, 4, 256, 256, 1, 0, 50.0, false, false, true},
    {"d256_bf16", 4, 1, 256, 256, 2, 128, 0, false, false, true},
    {"d256_f32", 2, 1, 256, 256, 0, 0, 0, false, false, true},
    {"d256_i8", 2, 1, 256, 256, 3, 0, 0, false, false, true},
    {"d24_values40_f16", 7, 1, 24, 40, 1, 17, 0, false, false, true},
};

void expectReference(const Sequences &s, const Outputs &outputs) {
  const AttentionCase &c = s.c;
  // Queries and probabilities are rounded to the type of the products.
  const double tolerance = c.element == 0 ? 2e-5 : c.element == 2 ? 2e-2 : 3e-3;
  for (const auto &[where, out] : outputs) {
    auto [sequence, p] = where;
    const int64_t lowest = c.window ? std::max<int64_t>(0, p - c.window + 1) : 0;
    for (int64_t head = 0; head < c.heads; ++head) {
      const int64_t g = head / (c.heads / c.kvHeads);
      std::vector<float> k, v;
      for (int64_t t = lowest; t <= p; ++t) {
        auto kt = s.k[sequence].begin() + (t * c.kvHeads + g) * c.keySize;
        auto vt = s.v[sequence].begin() + (t * c.kvHeads + g) * c.valueSize;
        k.insert(k.end(), kt, kt + c.keySize);
        v.insert(v.end(), vt, vt + c.valueSize);
      }
      std::vector<float> q(size_t(c.keySize));
      for (int64_t i = 0; i < c.keySize; ++i)
        q[size_t(i)] = rounded(s.q[sequence][size_t((p * c.heads + head) * c.keySize + i)],
                               Element(c.element));
      const std::vector<double> want = reference::attend(
          q, k, v, p - lowest + 1, c.valueSize, 1 / std::sqrt(double(c.keySize)), c.softcap,
          s.slope(head), c.sinks ? std::optional<double>(s.sink(head)) : std::nullopt);
      for (int64_t i = 0; i < c.valueSize; ++i)
        ASSERT_NEAR(out[size_t(head * c.valueSize + i)], want[size_t(i)], tolerance)
            << "sequence " << sequence << " position " << p << " head " << head << " at " << i;
    }
  }
}

class Attention : public testing::TestWithParam<AttentionCase> {};

TEST_P(Attention, MatchesTheReferenceInEveryBatchAndOrder) {
  const AttentionCase &c = GetParam();
  // The longest goes over the end of a split of 256 keys.
  const Sequences s(c, wholeSweep() ? std::vector<int64_t>{300, 129, 65, 17, 1}
                                    : std::vector<int64_t>{270, 40, 17, 1});
  // Prompts whole and in parts, decoding beside them.
  const std::vector<Span> steps[] = {
      {{0, 262, 270}, {1, 0, 40}, {2, 0, 17}, {3, 0, 1}},
      {{0, 269, 270}, {1, 39, 40}, {2, 3, 9}, {3, 0, 1}},
      {{0, 255, 256}, {0, 256, 257}, {1, 31, 32}, {2, 16, 17}},
      {{1, 5, 38}, {0, 250, 262}},
  };
  Outputs first;
  size_t turn = 0;
  for (simt::Order order : allOrders)
    for (const std::vector<Span> &spans : steps) {
      // Each step in each order; of the small part, each step in one.
      if (turn++ % 3 != 0 && !wholeSweep())
        continue;
      simt::options().order = order;
      Outputs out = attend(s, spans, turn % 2 ? 16 : 64);
      if (HasFatalFailure())
        return;
      expectReference(s, out);
      if (HasFatalFailure())
        return;
      for (auto &[where, row] : out) {
        auto [known, isNew] = first.try_emplace(where, row);
        ASSERT_EQ(known->second, row) << "other bits at position " << where.second;
      }
    }
  if (wholeSweep()) {
    simt::options().order = simt::Order::Random;
    expectReference(s, attend(s, {{0, 0, 300}, {1, 0, 129}, {2, 0, 65}}, 32));
  }
  simt::options().order = simt::Order::Forward;
}

TEST_P(Attention, FullyMaskedRowsGiveZeros) {
  const AttentionCase &c = GetParam();
  const Sequences s(c, {20, 9, 1});
  const Outputs out = attend(s, {{0, 0, 20, true}, {1, 4, 9}, {2, 0, 1, true}}, 16);
  if (HasFatalFailure())
    return;
  for (const auto &[where, row] : out)
    if (where.first != 1)
      for (float f : row)
        ASSERT_EQ(f, 0.0f) << "sequence " << where.first << " row " << where.second;
}

/// Two drafted tokens at one position: each sees the keys before the window, its ancestors and
/// itself, as if it were the only one.
TEST_P(Attention, ATokenOfATreeSeesItsAncestors) {
  const AttentionCase &c = GetParam();
  // One sequence as each branch would have it; the second differs in its last token. The tree
  // begins in one block of the cache and ends in the next.
  Sequences s(c, {273, 273});
  s.branch(1, 0, 272);
  const Outputs want[2] = {attend(s, {{0, 271, 272}, {0, 272, 273}}, 16),
                           attend(s, {{1, 272, 273}}, 16)};
  const Outputs got = attend(s, {{0, 271, 272}, {0, 272, 273}, {1, 272, 273}}, 16, true);
  if (HasFatalFailure())
    return;
  EXPECT_EQ(got.at({0, 271}), want[0].at({0, 271}));
  EXPECT_EQ(got.at({0, 272}), want[0].at({0, 272}));
  EXPECT_EQ(got.at({1, 272}), want[1].at({1, 272}));
}

/// More tiles of keys than the ring has stages, twice: what is free again is told of each time.
TEST(HopperAttention, GoesAroundTheRingOfStages) {
  const AttentionCase c = {"hopper_ring", 4,     1,     128,   128, 1, 0, 0,
                           false,         false, false, false, true};
  const Sequences s(c, {650});
  const Outputs out = attend(s, {{0, 645, 650}}, 64);
  if (!HasFatalFailure())
    expectReference(s, out);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Attention, testing::ValuesIn(chosenCases(cases)), nameOfCase);

} // namespace
