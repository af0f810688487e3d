//===- AttentionTreeTest.cpp - guesses that lie aside of their positions -------===//
//
// Two texts that part after a common context are one window: their tokens lie in turn in the slots
// behind the context, so that all but the first have another place than their position. Each must
// get the bits that it gets where its text lies in order.
//
//===----------------------------------------------------------------------===//
#include "test/unit/codegen/AttentionBench.h"

using namespace llmc;
using namespace llmc::test;

namespace {

/// Two texts of \p length tokens that are equal before \p fork.
Sequences forked(const Shape &shape, int64_t fork, int64_t length) {
  Sequences s(shape, {length, length});
  for (auto [x, size] : {std::pair(&s.q, shape.heads * shape.keySize),
                         std::pair(&s.k, shape.kvHeads * shape.keySize),
                         std::pair(&s.v, shape.kvHeads * shape.valueSize)})
    std::copy_n((*x)[0].begin(), fork * size, (*x)[1].begin());
  return s;
}

/// A step of the token before the fork and both texts behind it, as a tree.
Outputs attendTree(const CompiledKernel &kernel, const Sequences &s, int64_t fork,
                   int64_t blockTokens, bool cut) {
  const Shape &h = s.shape;
  const int64_t length = s.lengths[0], n = length - fork, tokens = 1 + 2 * n;
  const int64_t keyRun = runBytes(h.keySize, h.element),
                valueRun = h.latent ? 0 : runBytes(h.valueSize, h.element);
  const int64_t prefix = 24, perToken = prefix + h.kvHeads * (keyRun + valueRun) / 16;
  const int64_t blocks = (fork + 2 * n + blockTokens - 1) / blockTokens;
  std::vector<int32_t> table(blocks);
  std::iota(table.begin(), table.end(), 0);
  std::shuffle(table.begin(), table.end(), std::mt19937(4));
  Buffer pool(blocks * blockTokens * perToken);
  LlmrtStep step{};
  step.kv = pool.data(), step.blockTokens = blockTokens, step.blockBytes = blockTokens * perToken;
  auto put = [&](int64_t text, int64_t p, int64_t place) {
    const int64_t at = place % blockTokens;
    uint8_t *layer =
        pool.data() + table[place / blockTokens] * step.blockBytes + blockTokens * prefix;
    for (int64_t g = 0; g < h.kvHeads; ++g) {
      uint8_t *keys = layer + g * blockTokens / 16 * (keyRun + valueRun);
      uint8_t *values = keys + blockTokens / 16 * keyRun;
      putHead(keys + at / 16 * keyRun, at % 16, h.element,
              {&s.k[text][(p * h.kvHeads + g) * h.keySize], size_t(h.keySize)}, true);
      if (!h.latent)
        putHead(values + at / 16 * valueRun, at % 16, h.element,
                {&s.v[text][(p * h.kvHeads + g) * h.valueSize], size_t(h.valueSize)}, false);
    }
    return table[place / blockTokens] * blockTokens + at;
  };
  std::vector<float> q;
  std::vector<int32_t> positions, ancestors(tokens * (n + 1), -1), tileSeq, tileStart, tileCount;
  std::vector<int64_t> slots;
  auto addToken = [&](int64_t text, int64_t p, int64_t place) {
    auto from = s.q[text].begin() + p * h.heads * h.keySize;
    q.insert(q.end(), from, from + h.heads * h.keySize);
    tileSeq.push_back(0), tileStart.push_back(positions.size()), tileCount.push_back(1);
    positions.push_back(p);
    slots.push_back(put(text, p, place));
  };
  for (int64_t p = 0; p + 1 < fork; ++p)
    put(0, p, p);
  addToken(0, fork - 1, fork - 1);
  for (int64_t i = 0; i < 2 * n; ++i) {
    addToken(i % 2, fork + i / 2, fork + i);
    // The token before the fork, then those of the same text.
    int32_t *row = &ancestors[(1 + i) * (n + 1)];
    *row++ = 0;
    for (int64_t j = i % 2; j < i; j += 2)
      *row++ = static_cast<int32_t>(1 + j);
  }
  const std::vector<int32_t> starts = {0, int32_t(tokens)}, context = {int32_t(fork + 2 * n)};
  step.T = step.Q = tokens, step.S = 1, step.maxBlocks = blocks;
  step.positions = positions.data(), step.queryStart = starts.data();
  step.contextLen = context.data(), step.blockTable = table.data(), step.slots = slots.data();
  step.tileSeq = tileSeq.data(), step.tileStart = tileStart.data();
  step.tileCount = tileCount.data();
  step.ancestors = ancestors.data(), step.ancestorWidth = n + 1;
  Buffer qb = Buffer::of(q), y(tokens * h.heads * h.valueSize * 4), sinks = Buffer::of(s.sinks);
  std::vector<float> slopes;
  for (int64_t head = 0; head < h.heads; ++head)
    slopes.push_back(h.slope(head));
  Buffer slopesBuffer = Buffer::of(slopes);
  std::vector<void *> bindings = {qb.data()};
  if (h.alibi)
    bindings.push_back(slopesBuffer.data());
  if (h.sinks)
    bindings.push_back(sinks.data());
  bindings.push_back(y.data());
  std::vector<LlmrtAttentionItem> items;
  const int64_t tasksPerItem = h.kvHeads * std::max<int64_t>(1, h.headTasks);
  int32_t rows = 0;
  for (int32_t tile = 0; tile < tokens; ++tile) {
    const int32_t splits = cut ? positions[tile] / static_cast<int32_t>(h.keySplit) + 1 : 1;
    for (int32_t split = 0; split < splits; ++split, ++rows)
      items.push_back({tile, cut ? split : -1, splits, rows, tile});
  }
  Buffer partials(rows * h.heads * LLMRT_PARTIAL_FLOATS(h.valueSize) * 4);
  Buffer arrivals = Buffer::of(std::vector<uint32_t>(tokens * tasksPerItem));
  step.items = items.data(), step.itemCount = items.size();
  step.partials = partials.floats();
  step.arrivals = reinterpret_cast<uint32_t *>(arrivals.data());
  kernel.run(step, bindings, (h.keySplit ? int64_t(items.size()) : tokens) * tasksPerItem,
             {prefix});
  EXPECT_TRUE(y.guardIsIntact());
  Outputs out;
  for (int64_t t = 0; t < tokens; ++t)
    out[{t == 0 ? 0 : (t - 1) % 2, positions[t]}] = {y.floats() + t * h.heads * h.valueSize,
                                                     y.floats() + (t + 1) * h.heads * h.valueSize};
  return out;
}

class AttentionTrees : public testing::TestWithParam<Shape> {};

TEST_P(AttentionTrees, EveryBranchHasTheBitsOfItsTextAlone) {
  const Shape shape = GetParam();
  std::vector<Outputs> perLevel;
  for (CpuLevel level : runnableLevels()) {
    CompiledKernel kernel = compile(shape, level, 8);
    Outputs all;
    // Inside a run of 16, across runs, key tiles of 64, blocks, splits; a fork after one token.
    for (auto [fork, length] : {std::pair(5, 9), {60, 70}, {124, 137}, {1, 20}, {64, 65}}) {
      Sequences s = forked(shape, fork, length);
      Outputs want = attend(kernel, s, {{0, fork - 1, length}, {1, fork, length}}, 16, 8);
      for (int64_t blockTokens : {16, 48})
        for (bool cut : {false, true}) {
          if (cut && !shape.keySplit)
            continue;
          Outputs got = attendTree(kernel, s, fork, blockTokens, cut);
          ASSERT_EQ(got.size(), want.size());
          for (const auto &[where, out] : got)
            ASSERT_EQ(out, want[where]) << "text " << where.first << ", position " << where.second
                                        << ", fork " << fork << ", blocks of " << blockTokens;
          all.insert(got.begin(), got.end());
        }
    }
    perLevel.push_back(all);
  }
  for (const Outputs &o : perLevel)
    EXPECT_EQ(o, perLevel.front());
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionTrees,
    testing::Values(
        Shape{9, 3, 64, 64}, Shape{9, 3, 64, 64, 0, 1}, Shape{8, 1, 24, 40, 0, 2},
        Shape{9, 3, 64, 64, 0, 3}, Shape{6, 2, 24, 40, 7, 1, 3.0, true}, Shape{4, 1, 20, 12, 40, 3},
        Shape{4, 2, 16, 16, 8, 0, 0, false, true},
        Shape{4, 1, 24, 16, 0, 0, 0, false, false, true, 2},
        Shape{12, 1, 72, 64, 33, 2, 0, false, true, true, 3},
        Shape{
            .heads = 9, .kvHeads = 3, .keySize = 64, .valueSize = 64, .element = 1, .keySplit = 64},
        Shape{.heads = 9,
              .kvHeads = 3,
              .keySize = 64,
              .valueSize = 64,
              .element = 3,
              .sinks = true,
              .keySplit = 128}));

} // namespace
