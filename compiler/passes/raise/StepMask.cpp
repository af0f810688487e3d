//===- StepMask.cpp - What an attention mask means -------------------------------===//

#include "compiler/passes/raise/Step.h"

#include <cmath>

using namespace mlir;
using namespace llmc;
using namespace llmc::raise;

namespace {

/// Added to a score, this much hides a key: the smallest that exporters use is the finite minimum
/// of f16.
constexpr double kHidden = -1e4;
/// The same beside a position bias, which may itself reach far below zero.
constexpr double kHiddenBesideBias = -6e4;

/// A mask's values at one sample as [planes, new tokens, keys], broadcast.
class MaskValues {
public:
  MaskValues(const HostArray &data, const Sample &sample) : data(data), sample(sample) {
    const Shape &shape = data.shape;
    const int64_t rank = shape.size();
    auto dim = [&](int64_t fromEnd) { return fromEnd < rank ? shape[rank - 1 - fromEnd] : 1; };
    rows = dim(1), columns = dim(0), heads = dim(2);
    planes = rows * columns == 0 ? 0 : data.size() / (rows * columns);
  }
  bool fits() const {
    return (rows == sample.fresh || rows == 1) && (columns == sample.total() || columns == 1);
  }
  double at(int64_t plane, int64_t token, int64_t key) const {
    return data.number((plane * rows + (rows == 1 ? 0 : token)) * columns +
                       (columns == 1 ? 0 : key));
  }
  bool isFloat() const { return data.isFloat(); }
  /// Numbers that neither hide a key nor leave its score alone.
  bool isBiased() const {
    return isFloat() &&
           llvm::any_of(data.floats, [](double v) { return v != 0 && !(v <= kHidden); });
  }

  int64_t planes = 0, heads = 1;

private:
  const HostArray &data;
  const Sample &sample;
  int64_t rows = 1, columns = 1;
};

/// Checks that the bias of a row's visible keys [first, last] falls by one slope a key, the same in
/// every row of its head; a constant of the row makes no difference to a softmax.
bool addSlope(const MaskValues &mask, int64_t plane, int64_t token, int64_t first, int64_t last,
              std::vector<float> &slopes) {
  if (slopes.empty())
    slopes.assign(mask.heads, NAN);
  if (static_cast<int64_t>(slopes.size()) != mask.heads)
    return false;
  if (first == last)
    return true;
  float &slope = slopes[plane % mask.heads];
  const double start = mask.at(plane, token, first);
  if (std::isnan(slope)) // From the first pair, which most biases hold without rounding.
    slope = static_cast<float>(mask.at(plane, token, first + 1) - start);
  for (int64_t key = first + 1; key <= last; ++key) {
    const double expected = start + double(slope) * double(key - first);
    const double tolerance = 1e-4 + 1e-5 * (std::fabs(expected) + std::fabs(start));
    if (!(std::fabs(mask.at(plane, token, key) - expected) <= tolerance))
      return false;
  }
  return true;
}

} // namespace

MaskMeaning llmc::raise::readMask(SampleEvaluation &samples, Value mask, bool isCausal) {
  if (!mask)
    return isCausal ? MaskMeaning{}
                    : MaskMeaning{{}, {}, "there is no mask, so a token would see later ones"};
  const auto fail = [](const Twine &why) { return MaskMeaning{{}, {}, why.str()}; };
  MaskMeaning meaning;
  SmallVector<HostArrayRef> all;
  bool isBiased = false;
  for (auto [index, sample] : llvm::enumerate(samples.samples())) {
    all.push_back(samples.data(mask, index));
    if (!all.back())
      return fail("the mask depends on more than the sizes and the attention mask (on token ids, "
                  "say)");
    isBiased |= MaskValues(*all.back(), sample).isBiased();
  }
  const double hidden = isBiased ? kHiddenBesideBias : kHidden;
  int64_t leastUnlimited = 0; // The longest run of keys that was seen without a limit.
  for (auto [data, sample] : llvm::zip(all, samples.samples())) {
    const MaskValues values(*data, sample);
    if (!values.fits())
      return fail("the mask is not [..., new tokens, keys]");
    for (int64_t plane = 0; plane < values.planes; ++plane)
      for (int64_t s = 0; s < sample.fresh; ++s) {
        int64_t position = sample.past + s, first = -1, last = -1, seen = 0;
        for (int64_t t = 0; t < sample.total(); ++t) {
          const double value = values.at(plane, s, t);
          bool visible = values.isFloat() ? !(value <= hidden) : value != 0;
          if (!visible || (isCausal && t > position))
            continue;
          first = first < 0 ? t : first;
          last = t;
          ++seen;
        }
        if (seen == 0 || last != position || last - first + 1 != seen)
          return fail(llvm::formatv("the mask is not causal: at {0} past and {1} new tokens, new "
                                    "token {2} sees keys {3} to {4}",
                                    sample.past, sample.fresh, s, first, last)
                          .str());
        if (isBiased && !addSlope(values, plane, s, first, last, meaning.slopes))
          return fail("the mask adds numbers other than 0 and a large negative one to the scores, "
                      "and they do not fall by one slope a key (ALiBi), which is the position bias "
                      "that is supported");
        if (first == 0) {
          leastUnlimited = std::max(leastUnlimited, seen);
          continue;
        }
        if (meaning.window && *meaning.window != seen)
          return fail("the mask shows windows of different sizes");
        meaning.window = seen;
      }
  }
  if (meaning.window && leastUnlimited > *meaning.window)
    return fail("the mask has a window at some sizes and none at others");
  return meaning;
}
