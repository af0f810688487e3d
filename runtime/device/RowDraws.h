//===- RowDraws.h - tokens that a device draws itself -----------------------===//
//
// Copying a row of logits to the host costs more than drawing from it where it lies. A device that
// can has a RowDraws: before a step the engine says how each row's token is drawn, and afterwards
// reads the tokens, which are bit for bit the ones that decode/Sampler would have drawn.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_DEVICE_ROWDRAWS_H
#define LLMRT_DEVICE_ROWDRAWS_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace llmrt {

/// Something is added to a logit before a token is drawn.
struct LogitChange {
  int32_t id;
  float bias; ///< minus infinity: the token is never drawn
};

/// How a row's token is drawn; the steps are those of decode/README.md.
struct RowDraw {
  bool onDevice = false; ///< else the host gets the row's logits
  uint64_t noiseKey = 0; ///< PositionNoise::key()
  double scale = 0;      ///< 1 / temperature; 0: the largest logit
  double floor = -std::numeric_limits<double>::infinity(); ///< log(min-p); minus infinity: off
  int32_t topK = 0;                                        ///< 0: off
  float topP = 1;                                          ///< 1: off
  int32_t firstChange = 0;                                 ///< of RowDraws::changes
  int32_t biases = 0, bans = 0; ///< changes: the biases first; no id twice in either
};

/// Made for the largest step: filling it in allocates nothing.
class RowDraws {
public:
  /// What stands for a token where none can be drawn.
  static constexpr int32_t notFinite = -1, allForbidden = -2;
  /// Changes of all rows together; a row that has no room left is the host's.
  static constexpr size_t maxChanges = 8192;

  explicit RowDraws(int64_t maxRows)
      : rows_(static_cast<size_t>(maxRows)), tokens_(static_cast<size_t>(maxRows)) {
    changes_.reserve(maxChanges);
  }

  /// For the next step alone, of \p rows rows, all of them the host's until the engine says
  /// otherwise. \p vocabulary tokens may be drawn; \p massUnit is ProbabilityMass::unit() of that.
  void begin(int64_t rows, int32_t vocabulary, float massUnit) {
    std::fill_n(rows_.begin(), rows, RowDraw());
    changes_.clear();
    vocabulary_ = vocabulary;
    massUnit_ = massUnit;
    any_ = false;
  }
  RowDraw &row(int64_t i) { return rows_[static_cast<size_t>(i)]; }
  const RowDraw &row(int64_t i) const { return rows_[static_cast<size_t>(i)]; }
  std::vector<LogitChange> &changes() { return changes_; }
  const std::vector<LogitChange> &changes() const { return changes_; }
  int32_t vocabulary() const { return vocabulary_; }
  float massUnit() const { return massUnit_; }
  /// Some row is the device's; false again after the step.
  bool any() const { return any_; }
  void setAny(bool any) { any_ = any; }

  /// What was drawn for a row of the last step that was the device's.
  int32_t token(int64_t row) const { return tokens_[static_cast<size_t>(row)]; }
  std::vector<int32_t> &tokens() { return tokens_; }

private:
  std::vector<RowDraw> rows_;
  std::vector<int32_t> tokens_;
  std::vector<LogitChange> changes_;
  int32_t vocabulary_ = 0;
  float massUnit_ = 0;
  bool any_ = false;
};

} // namespace llmrt

#endif // LLMRT_DEVICE_ROWDRAWS_H
