// Attention against the reference: head sizes, windows, caps, element types; rows alone and in
// batches of prompts and decoding; three orders of threads.
#include "codegen/cpu/kernels/reference/Reference.h"
#include "test/emulator/kernels/KernelCases.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

using namespace llmc;
using namespace llmc::test;

namespace {

constexpr int64_t kContext = 2048, kQueryTile = 16;

struct Case {
  const char *name;
  int64_t heads, kvHeads, keySize, valueSize, element;
  int64_t window = 0;
  double softcap = 0;
  bool alibi = false, sinks = false;
  bool isLarge = false; ///< of the whole sweep only
  bool latent = false;  ///< values are the first elements of the one head's keys
};

// kv_element: 0 f32, 1 f16, 2 bf16, 3 int8.
const Case cases[] = {
    {"d80_f16_window", 6, 2, 80, 80, 1, 37},
    {"d96_bf16_cap", 3, 1, 96, 96, 2, 0, 5.0},
    {"d36_i8_alibi_sinks", 4, 2, 36, 36, 3, 0, 0, true, true},
    {"d24_values136_f32", 6, 1, 24, 136, 0},
    {"d8_values136_group17_f16", 17, 1, 8, 136, 1, 21},
    {"d5_values3_f32", 2, 1, 5, 3, 0},
    {"latent_d40_values24_bf16", 5, 1, 40, 24, 2, 0, 0, false, false, false, true},
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

int64_t bytesOf(int64_t element) { return element == 0 ? 4 : element == 3 ? 1 : 2; }

KernelSpec spec(const Case &c) {
  return {c.name,
          "attention",
          {{"heads", c.heads},
           {"kv_heads", c.kvHeads},
           {"key_size", c.keySize},
           {"value_size", c.valueSize},
           {"scale", 1 / std::sqrt(double(c.keySize))},
           {"softcap", c.softcap},
           {"window", c.window},
           {"kv_element", c.element},
           {"query_tile", kQueryTile},
           {"alibi", int64_t(c.alibi)},
           {"sinks", int64_t(c.sinks)},
           {"latent", int64_t(c.latent)}}};
}

const CudaModel model = {"test", "test", 512, kQueryTile, kContext, {}};

/// Queries, keys and values of some sequences.
struct Sequences {
  const Case &c;
  std::vector<int64_t> lengths;
  std::vector<std::vector<float>> q, k, v; ///< [length][heads][size]

  Sequences(const Case &c, std::vector<int64_t> n) : c(c), lengths(std::move(n)) {
    std::mt19937 rng(31);
    for (int64_t length : lengths) {
      q.push_back(randomFloats(rng, size_t(length * c.heads * c.keySize), -2, 2));
      k.push_back(randomFloats(rng, size_t(length * c.kvHeads * c.keySize), -1, 1));
      v.push_back(randomFloats(rng, size_t(length * c.kvHeads * c.valueSize), -1, 1));
      round(k.back(), c.keySize);
      round(v.back(), c.valueSize);
      for (int64_t t = 0; c.latent && t < length; ++t)
        std::copy_n(k.back().begin() + t * c.keySize, c.valueSize,
                    v.back().begin() + t * c.valueSize);
    }
  }
  /// Of one head of int8: its largest magnitude is 127.
  static float scaleOf(std::span<const float> x) {
    float largest = 0;
    for (float f : x)
      largest = std::max(largest, std::fabs(f));
    return largest / 127;
  }
  float slope(int64_t head) const { return c.alibi ? 0.7f / float(head + 1) : 0.0f; }
  float sink(int64_t head) const { return 2.0f - float(head); }

  /// Makes sequence \p to that of \p from before position \p p.
  void branch(size_t to, size_t from, int64_t p) {
    for (std::vector<std::vector<float>> *x : {&q, &k, &v}) {
      const int64_t width = int64_t((*x)[from].size()) / lengths[from];
      std::copy_n((*x)[from].begin(), p * width, (*x)[to].begin());
    }
  }

private:
  /// To what the cache can hold.
  void round(std::vector<float> &x, int64_t size) const {
    for (size_t i = 0; i < x.size(); i += size_t(size)) {
      const float scale = scaleOf({&x[i], size_t(size)});
      for (size_t j = i; j < i + size_t(size); ++j)
        x[j] = c.element == 3 ? std::nearbyint(x[j] / scale) * scale
                              : rounded(x[j], Element(c.element));
    }
  }
};

struct Span {
  size_t sequence;
  int64_t begin, end;
  bool isMasked = false; ///< rows at position -1, which see nothing
};

void putHead(std::vector<uint8_t> &pool, size_t at, size_t scaleAt, int64_t element,
             std::span<const float> x) {
  const float scale = Sequences::scaleOf(x);
  for (size_t d = 0; d < x.size(); ++d) {
    uint8_t *p = &pool[at + d * size_t(bytesOf(element))];
    if (element == 0) {
      std::memcpy(p, &x[d], 4);
    } else if (element == 3) {
      *p = uint8_t(int8_t(std::nearbyint(x[d] / scale)));
    } else {
      const uint16_t bits = element == 1 ? std::bit_cast<uint16_t>(static_cast<_Float16>(x[d]))
                                         : uint16_t(std::bit_cast<uint32_t>(x[d]) >> 16);
      std::memcpy(p, &bits, 2);
    }
  }
  if (element == 3)
    std::memcpy(&pool[scaleAt], &scale, 4);
}

/// One step over \p spans: [sequence, position] -> [heads][valueSize]. What no token up to the end
/// of a span wrote is uninitialised: reading it is a fault. \p isTree: all spans are one token of
/// one sequence, that of the first; the first token is the parent of the others, whose keys lie in
/// slots that their positions don't say.
using Outputs = std::map<std::pair<size_t, int64_t>, std::vector<float>>;
Outputs attend(const Sequences &s, const std::vector<Span> &spans, int64_t blockTokens,
               bool isTree = false) {
  const Case &c = s.c;
  const int64_t e = bytesOf(c.element), prefix = 32;
  const int64_t keyBytes = c.keySize * e, valueBytes = c.latent ? 0 : c.valueSize * e;
  const int64_t tokenBytes = keyBytes + valueBytes + (c.element == 3 ? 8 : 0);
  const int64_t blockBytes = (prefix + c.kvHeads * tokenBytes) * blockTokens;
  int64_t maxBlocks = 1, blocks = 1;
  for (int64_t length : s.lengths)
    maxBlocks = std::max(maxBlocks, (length + blockTokens - 1) / blockTokens);
  for (const Span &span : spans)
    blocks += (span.end + blockTokens - 1) / blockTokens;
  std::vector<int32_t> free(static_cast<size_t>(blocks)); // a scattered order
  std::iota(free.begin(), free.end(), 0);
  std::shuffle(free.begin(), free.end(), std::mt19937(4));
  DeviceArray kv(size_t(blocks * blockBytes));
  std::vector<uint8_t> pool(size_t(blocks * blockBytes));
  std::vector<int64_t> slots; // of the first token of each span
  std::vector<int32_t> table, positions, starts = {0}, context, tileSeq, tileStart, tileCount;
  std::vector<float> q;
  StepSizes sizes;
  sizes.longTiles = sizes.singleTiles = false;
  for (size_t i = 0; i < spans.size(); ++i) {
    const Span &span = spans[i];
    for (int64_t b = 0; b < maxBlocks; ++b) {
      const bool isUsed = b * blockTokens < span.end;
      table.push_back(isUsed ? free.back() : -1000000); // reading one that isn't there faults
      if (isUsed)
        free.pop_back();
    }
    for (int64_t p = 0; p < span.end; ++p) {
      if (isTree && i > 0 && p < span.begin)
        continue;
      // In a tree, token i of the window lies i slots after the first.
      const int64_t place = isTree ? p + (i > 0 ? int64_t(i) - 1 : 0) : p;
      const int64_t block = table[isTree ? size_t(place / blockTokens)
                                         : i * size_t(maxBlocks) + size_t(p / blockTokens)],
                    at = place % blockTokens;
      if (p == span.begin)
        slots.push_back(block * blockTokens + at);
      for (int64_t g = 0; g < c.kvHeads; ++g) {
        const int64_t head =
            block * blockBytes + prefix * blockTokens + g * tokenBytes * blockTokens;
        const int64_t values = head + keyBytes * blockTokens,
                      scales = values + valueBytes * blockTokens;
        auto put = [&](int64_t to, int64_t scale, const std::vector<float> &x, int64_t size) {
          putHead(pool, size_t(to), size_t(scale), c.element,
                  {&x[size_t((p * c.kvHeads + g) * size)], size_t(size)});
          kv.write(&pool[size_t(to)], size_t(size * e), size_t(to));
          if (c.element == 3)
            kv.write(&pool[size_t(scale)], 4, size_t(scale));
        };
        put(head + at * keyBytes, scales + 4 * at, s.k[span.sequence], c.keySize);
        if (!c.latent)
          put(values + at * valueBytes, scales + 4 * (blockTokens + at), s.v[span.sequence],
              c.valueSize);
      }
    }
    for (int64_t p = span.begin; p < span.end; ++p) {
      if ((p - span.begin) % kQueryTile == 0) {
        tileSeq.push_back(isTree ? 0 : int32_t(i));
        tileStart.push_back(int32_t(positions.size()));
        tileCount.push_back(int32_t(std::min(kQueryTile, span.end - p)));
        (tileCount.back() > 1 ? sizes.longTiles : sizes.singleTiles) = true;
      }
      positions.push_back(span.isMasked ? -1 : int32_t(p));
    }
    auto from = s.q[span.sequence].begin();
    q.insert(q.end(), from + span.begin * c.heads * c.keySize,
             from + span.end * c.heads * c.keySize);
    starts.push_back(int32_t(positions.size()));
    context.push_back(int32_t(span.end));
    sizes.longestContext = std::max(sizes.longestContext, span.end);
  }
  const DeviceArray tableMemory(table), positionMemory(positions), startMemory(starts),
      contextMemory(context), tileSeqMemory(tileSeq), tileStartMemory(tileStart),
      tileCountMemory(tileCount), qMemory(q);
  LlmrtCudaStep step{};
  step.T = int64_t(positions.size()), step.S = int64_t(spans.size()),
  step.Q = int64_t(tileSeq.size());
  auto ints = [](const DeviceArray &a) { return reinterpret_cast<const int *>(a.data()); };
  step.positions = ints(positionMemory), step.queryStart = ints(startMemory);
  step.contextLen = ints(contextMemory), step.blockTable = ints(tableMemory);
  step.maxBlocks = maxBlocks;
  step.tileSeq = ints(tileSeqMemory), step.tileStart = ints(tileStartMemory);
  step.tileCount = ints(tileCountMemory);
  const DeviceArray slotMemory(slots), ancestorMemory(std::vector<int32_t>{-1, 0, 0});
  if (isTree) {
    step.slots = reinterpret_cast<const long long *>(slotMemory.data());
    step.ancestors = ints(ancestorMemory);
    step.ancestorWidth = 1;
  }
  step.kv = kv.data(), step.blockTokens = blockTokens, step.blockBytes = blockBytes;
  std::vector<float> slopes, sinks;
  for (int64_t head = 0; head < c.heads; ++head)
    slopes.push_back(s.slope(head)), sinks.push_back(s.sink(head));
  const DeviceArray slopeMemory(slopes), sinkMemory(sinks),
      y(size_t(step.T * c.heads * c.valueSize) * 4);
  std::vector<void *> bindings = {qMemory.data()};
  if (c.alibi)
    bindings.push_back(slopeMemory.data());
  if (c.sinks)
    bindings.push_back(sinkMemory.data());
  bindings.push_back(y.data());
  // The bucket is larger: tiles and splits that this step does not have.
  sizes.T = step.T + 3, sizes.S = step.S + 3, sizes.Q = step.Q + 3;
  sizes.longestContext += 300;
  kernelsOf(spec(c), model).run(c.name, step, sizes, bindings, prefix);
  Outputs out;
  if (testing::Test::HasFatalFailure())
    return out;
  const std::vector<float> all = y.read<float>();
  auto row = all.begin();
  for (const Span &span : spans)
    for (int64_t p = span.begin; p < span.end; ++p, row += c.heads * c.valueSize)
      out[{span.sequence, p}] = {row, row + c.heads * c.valueSize};
  return out;
}

void expectReference(const Sequences &s, const Outputs &outputs) {
  const Case &c = s.c;
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

class Attention : public testing::TestWithParam<Case> {};

TEST_P(Attention, MatchesTheReferenceInEveryBatchAndOrder) {
  const Case &c = GetParam();
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
  const Case &c = GetParam();
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
  const Case &c = GetParam();
  // One sequence as each branch would have it; the second differs in its last token.
  Sequences s(c, {261, 261});
  s.branch(1, 0, 260);
  const Outputs want[2] = {attend(s, {{0, 259, 260}, {0, 260, 261}}, 16),
                           attend(s, {{1, 260, 261}}, 16)};
  const Outputs got = attend(s, {{0, 259, 260}, {0, 260, 261}, {1, 260, 261}}, 16, true);
  if (HasFatalFailure())
    return;
  EXPECT_EQ(got.at({0, 259}), want[0].at({0, 259}));
  EXPECT_EQ(got.at({0, 260}), want[0].at({0, 260}));
  EXPECT_EQ(got.at({1, 260}), want[1].at({1, 260}));
}

INSTANTIATE_TEST_SUITE_P(Shapes, Attention, testing::ValuesIn(chosenCases(cases)), nameOfCase);

} // namespace
