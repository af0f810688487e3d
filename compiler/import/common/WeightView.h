//===- WeightView.h - matrices made of pieces of tensors ----------------------===//
//
// What the `llm.weight_*` operations mean, as plain C++: transposes, slices, joins and reorderings
// of tensors, evaluated row by row when a plan is written. A view is a small immutable value,
// safe to read from many threads; reading keeps at most a few rows in memory.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_IMPORT_COMMON_WEIGHTVIEW_H
#define LLMC_IMPORT_COMMON_WEIGHTVIEW_H

#include "compiler/import/common/WeightSource.h"

#include <memory>
#include <vector>

namespace llmc {

class WeightView {
public:
  /// A tensor of a file; \p source has passed its check().
  static WeightView source(WeightSource source);
  /// Values that the compiler computed, row-major.
  static WeightView values(std::string name, std::vector<float> values, uint64_t rows,
                           uint64_t columns);
  static WeightView transpose(const WeightView &view);
  /// The views one below the other; all have the same columns, and there is at least one.
  static WeightView concat(std::vector<WeightView> views);
  /// The same, with zero rows after each view up to a multiple of 16; all have one shape.
  static WeightView stack(std::vector<WeightView> views);
  /// 16 rows of \p first, 16 of \p second, and so on; both padded with zero rows to a multiple of
  /// 16, so that a gate and an up projection meet in one product.
  static WeightView interleave(const WeightView &first, const WeightView &second);
  /// Rows [offset, offset + count).
  static WeightView rows(const WeightView &view, uint64_t offset, uint64_t count);
  /// GGUF's row order of llama models undone: for each of \p heads heads of d rows, row j + k * d/2
  /// is row 2j + k of \p view (j < d/2, k is 0 or 1).
  static WeightView unpermute(const WeightView &view, uint64_t heads);
  /// The same values, row-major, in another shape of as many.
  static WeightView reshape(const WeightView &view, uint64_t rows, uint64_t columns);

  uint64_t rowCount() const;
  uint64_t columnCount() const;
  /// The name of the first tensor in it.
  const std::string &name() const;

  /// Writes rows [begin, end) as f32; see WeightSource::readRows for what fails.
  llmrt::Status readRows(uint64_t begin, uint64_t end, float *values) const;

  /// The format in which every part can be read as integers, the same for all parts; none if there
  /// is no such format.
  std::optional<WeightFormat> quantizedFormat() const;
  /// Reads rows [begin, end) as integers of quantizedFormat().
  llmrt::Status readQuantizedRows(uint64_t begin, uint64_t end, QuantizedRows &result) const;

  /// The narrowest of F32, F16, BF16 that holds every part's values exactly: that of the tensors
  /// when all are stored in the same one, otherwise F32.
  Element floatElement() const;

  class Node;

private:
  explicit WeightView(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  std::shared_ptr<const Node> node_;
};

} // namespace llmc

#endif // LLMC_IMPORT_COMMON_WEIGHTVIEW_H
