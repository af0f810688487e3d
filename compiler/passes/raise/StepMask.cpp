//===- StepMask.cpp - What an attention mask means -------------------------------===//

#include "compiler/passes/raise/Step.h"

#include <cmath>

using namespace mlir;
using namespace llmc;
using namespace llmc::raise;

/// Added to a score, this much hides a key: the smallest that exporters use is the finite minimum
/// of f16.
static constexpr double kHidden = -1e4;

MaskMeaning llmc::raise::readMask(SampleEvaluation &samples, Value mask, bool isCausal) {
  if (!mask)
    return isCausal
               ? MaskMeaning{}
               : MaskMeaning{std::nullopt, "there is no mask, so a token would see later ones"};
  MaskMeaning meaning;
  int64_t leastUnlimited = 0; // The longest run of keys that was seen without a limit.
  for (auto [index, sample] : llvm::enumerate(samples.samples())) {
    HostArrayRef data = samples.data(mask, index);
    if (!data)
      return {std::nullopt,
              "the mask depends on more than the sizes and the attention mask (on token ids, say)"};
    const Shape &shape = data->shape;
    int64_t rank = shape.size();
    auto dim = [&](int64_t fromEnd) { return fromEnd < rank ? shape[rank - 1 - fromEnd] : 1; };
    int64_t rows = dim(1), columns = dim(0), total = sample.total();
    bool fits = (rows == sample.fresh || rows == 1) && (columns == total || columns == 1);
    if (!fits)
      return {std::nullopt, "the mask is not [..., new tokens, keys]"};
    int64_t planes = rows * columns == 0 ? 0 : data->size() / (rows * columns);
    for (int64_t plane = 0; plane < planes; ++plane)
      for (int64_t s = 0; s < sample.fresh; ++s) {
        int64_t position = sample.past + s, first = -1, last = -1, seen = 0;
        for (int64_t t = 0; t < total; ++t) {
          int64_t i = (plane * rows + (rows == 1 ? 0 : s)) * columns + (columns == 1 ? 0 : t);
          bool visible = data->isFloat() ? data->floats[i] == 0 : data->ints[i] != 0;
          if (data->isFloat() && !visible && !(data->floats[i] <= kHidden))
            return {std::nullopt, "the mask adds numbers other than 0 and a large negative one to "
                                  "the scores (a position "
                                  "bias?), which is not supported"};
          if (isCausal && t > position)
            visible = false;
          if (!visible)
            continue;
          first = first < 0 ? t : first;
          last = t;
          ++seen;
        }
        if (seen == 0 || last != position || last - first + 1 != seen)
          return {std::nullopt,
                  llvm::formatv(
                      "the mask is not causal: at {0} past and {1} new tokens, new token {2} sees "
                      "keys {3} to {4}",
                      sample.past, sample.fresh, s, first, last)
                      .str()};
        if (first == 0) {
          leastUnlimited = std::max(leastUnlimited, seen);
          continue;
        }
        if (meaning.window && *meaning.window != seen)
          return {std::nullopt, "the mask shows windows of different sizes"};
        meaning.window = seen;
      }
  }
  if (meaning.window && leastUnlimited > *meaning.window)
    return {std::nullopt, "the mask has a window at some sizes and none at others"};
  return meaning;
}
