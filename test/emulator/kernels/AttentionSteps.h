//===- AttentionSteps.h - steps of the attention kernels on the emulator -----------===//
#ifndef LLMC_TEST_EMULATOR_KERNELS_ATTENTIONSTEPS_H
#define LLMC_TEST_EMULATOR_KERNELS_ATTENTIONSTEPS_H

#include "test/emulator/kernels/KernelCases.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace llmc::test {

constexpr int64_t attentionContext = 2048, attentionQueryTile = 16;

struct AttentionCase {
  const char *name;
  int64_t heads, kvHeads, keySize, valueSize;
  int64_t element; ///< of the cache: 0 f32, 1 f16, 2 bf16, 3 int8
  int64_t window = 0;
  double softcap = 0;
  bool alibi = false, sinks = false;
  bool isLarge = false; ///< of the whole sweep only
  bool latent = false;  ///< values are the first elements of the one head's keys
  bool hopper = false;  ///< the kernels of sm_90a
};

KernelSpec attentionSpec(const AttentionCase &c);

/// Queries, keys and values of some sequences.
struct Sequences {
  const AttentionCase &c;
  std::vector<int64_t> lengths;
  std::vector<std::vector<float>> q, k, v; ///< [length][heads][size]

  Sequences(const AttentionCase &c, std::vector<int64_t> n) : c(c), lengths(std::move(n)) {
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

/// One step over \p spans: [sequence, position] -> [heads][valueSize]. What no token up to the end
/// of a span wrote is uninitialised: reading it is a fault. \p isTree: all spans are one token of
/// one sequence, that of the first; the first token is the parent of the others, whose keys lie in
/// slots that their positions don't say.
using Outputs = std::map<std::pair<size_t, int64_t>, std::vector<float>>;
Outputs attend(const Sequences &s, const std::vector<Span> &spans, int64_t blockTokens,
               bool isTree = false);

} // namespace llmc::test

#endif // LLMC_TEST_EMULATOR_KERNELS_ATTENTIONSTEPS_H
