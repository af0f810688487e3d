//===- Window.h - windows that slide over spatial dimensions --------------------===//
#ifndef LLMC_CODEGEN_CPU_GRAPH_WINDOW_H
#define LLMC_CODEGEN_CPU_GRAPH_WINDOW_H

#include "codegen/cpu/graph/Graph.h"

namespace llmc::graphcode {

enum AutoPad : int64_t { PadAsGiven = 0, PadSameUpper = 1, PadSameLower = 2, PadValid = 3 };

/// Lists of an operator's attributes, each with its length in front; an empty one is its default.
struct Window {
  int64_t n = 0; ///< spatial dimensions
  int64_t kernel[kMaxRank], stride[kMaxRank], dilation[kMaxRank], before[kMaxRank], after[kMaxRank],
      size[kMaxRank], result[kMaxRank];

  /// Reads strides, dilations and pads at \p at, which is moved behind them. `kernel` and `size`
  /// (of the input) must be set.
  int32_t read(Graph *g, const int64_t *&at) {
    const int64_t *lists[3];
    int64_t lengths[3];
    for (int i = 0; i < 3; ++i) {
      lengths[i] = *at++;
      lists[i] = at;
      at += lengths[i];
      int64_t wanted = i == 2 ? 2 * n : n;
      if (lengths[i] != 0 && lengths[i] != wanted)
        return fail(g, LLMRT_GRAPH_SHAPE, lengths[i], wanted);
    }
    constexpr int64_t most = int64_t(1) << 31;
    for (int64_t d = 0; d < n; ++d) {
      stride[d] = lengths[0] ? lists[0][d] : 1;
      dilation[d] = lengths[1] ? lists[1][d] : 1;
      before[d] = lengths[2] ? lists[2][d] : 0;
      after[d] = lengths[2] ? lists[2][n + d] : 0;
      if (stride[d] < 1 || dilation[d] < 1 || kernel[d] < 1 || stride[d] > most ||
          dilation[d] > most || kernel[d] > most)
        return fail(g, LLMRT_GRAPH_ARGUMENT, stride[d] < 1 ? stride[d] : dilation[d]);
      if (before[d] < -most || before[d] > most || after[d] < -most || after[d] > most)
        return fail(g, LLMRT_GRAPH_ARGUMENT, before[d]);
    }
    return 0;
  }
  GRAPH_INLINE int64_t extent(int64_t d) const { return (kernel[d] - 1) * dilation[d] + 1; }

  /// Sets `result`, the sizes of what a window gives, and the pads of an automatic padding.
  int32_t place(Graph *g, int64_t autoPad, bool roundsUp) {
    for (int64_t d = 0; d < n; ++d) {
      if (autoPad == PadSameUpper || autoPad == PadSameLower) {
        result[d] = (size[d] + stride[d] - 1) / stride[d];
        int64_t pads = max<int64_t>((result[d] - 1) * stride[d] + extent(d) - size[d], 0);
        before[d] = autoPad == PadSameUpper ? pads / 2 : pads - pads / 2;
        after[d] = pads - before[d];
        continue;
      }
      if (autoPad == PadValid)
        before[d] = after[d] = 0;
      int64_t room = size[d] + before[d] + after[d] - extent(d);
      if (room < 0)
        return fail(g, LLMRT_GRAPH_SHAPE, size[d] + before[d] + after[d], extent(d));
      result[d] = (roundsUp ? (room + stride[d] - 1) / stride[d] : room / stride[d]) + 1;
      // A window that would start behind the input is none.
      if (roundsUp && (result[d] - 1) * stride[d] >= size[d] + before[d])
        --result[d];
    }
    return 0;
  }
  GRAPH_INLINE int64_t kernelCount() const {
    int64_t count = 1;
    for (int64_t d = 0; d < n; ++d)
      count *= kernel[d];
    return count;
  }
  GRAPH_INLINE int64_t sizeCount() const {
    int64_t count = 1;
    for (int64_t d = 0; d < n; ++d)
      count *= size[d];
    return count;
  }
  GRAPH_INLINE int64_t resultCount() const {
    int64_t count = 1;
    for (int64_t d = 0; d < n; ++d)
      count *= result[d];
    return count;
  }
  /// The next index of a row-major walk over \p dims.
  GRAPH_INLINE void next(int64_t *index, const int64_t *dims) const {
    for (int64_t d = n - 1; d >= 0 && ++index[d] == dims[d]; --d)
      index[d] = 0;
  }
};

} // namespace llmc::graphcode

#endif // LLMC_CODEGEN_CPU_GRAPH_WINDOW_H
