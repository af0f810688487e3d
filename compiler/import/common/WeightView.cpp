#include "compiler/import/common/WeightView.h"

#include <algorithm>
#include <cassert>
#include <cstring>

using namespace llmrt;

namespace llmc {

/// One operation of a view. Most operations only say which rows of which operands they consist of
/// (`pieces`), and share the reading; the others read on their own.
class WeightView::Node {
public:
  Node(uint64_t rowCount, uint64_t columnCount) : rowCount(rowCount), columnCount(columnCount) {}
  virtual ~Node() = default;

  virtual const std::string &name() const = 0;
  virtual Status readRows(uint64_t begin, uint64_t end, float *values) const = 0;
  virtual std::optional<WeightFormat> quantizedFormat() const { return std::nullopt; }
  virtual Status readQuantizedRows(uint64_t, uint64_t, QuantizedRows &) const {
    return internalError("tensor '" + name() + "' can't be read as integers");
  }
  virtual Element floatElement() const { return Element::F32; }
  /// This node transposed, where that has a form of its own; null otherwise.
  virtual std::shared_ptr<const Node> transposed() const { return nullptr; }
  /// Some of its rows, where they have a form of their own; null otherwise.
  virtual std::shared_ptr<const Node> slice(uint64_t, uint64_t) const { return nullptr; }

  const uint64_t rowCount, columnCount;
};

namespace {

using Node = WeightView::Node;
using NodePtr = std::shared_ptr<const Node>;

class SourceNode : public Node {
public:
  explicit SourceNode(WeightSource s)
      : Node(s.logicalRows(), s.logicalColumns()), source(std::move(s)) {
    quantized = source.quantizedFormat();
  }
  const std::string &name() const override { return source.name; }
  Status readRows(uint64_t begin, uint64_t end, float *values) const override {
    return source.readRows(begin, end, values);
  }
  std::optional<WeightFormat> quantizedFormat() const override { return quantized; }
  Status readQuantizedRows(uint64_t begin, uint64_t end, QuantizedRows &result) const override {
    return source.readQuantizedRows(begin, end, *quantized, result);
  }
  Element floatElement() const override {
    return source.encoding == WeightEncoding::F16    ? Element::F16
           : source.encoding == WeightEncoding::BF16 ? Element::BF16
                                                     : Element::F32;
  }
  NodePtr transposed() const override {
    if (isGgufBlock(source.encoding) || isCheckpointForm(source.encoding))
      return nullptr;
    WeightSource other = source;
    other.transposed = !other.transposed;
    return std::make_shared<SourceNode>(std::move(other));
  }
  /// Some rows as a source of their own (which can be transposed); null where rows aren't one run of
  /// bytes.
  NodePtr slice(uint64_t offset, uint64_t count) const override {
    if (!isFloatEncoding(source.encoding) || source.transposed || source.rows == 0)
      return nullptr;
    WeightSource part = source;
    const uint64_t bytes = source.data.size() / source.rows;
    part.data = source.data.subspan(offset * bytes, count * bytes);
    part.rows = count;
    return std::make_shared<SourceNode>(std::move(part));
  }

private:
  WeightSource source;
  std::optional<WeightFormat> quantized;
};

class ValuesNode : public Node {
public:
  ValuesNode(std::string name, std::vector<float> values, uint64_t rows, uint64_t columns)
      : Node(rows, columns), name_(std::move(name)), values_(std::move(values)) {
    assert(values_.size() == rows * columns);
  }
  const std::string &name() const override { return name_; }
  Status readRows(uint64_t begin, uint64_t end, float *values) const override {
    std::copy_n(values_.data() + begin * columnCount, (end - begin) * columnCount, values);
    return checkFinite({values, (end - begin) * columnCount}, "tensor '" + name_ + "'", begin,
                       columnCount);
  }

private:
  std::string name_;
  std::vector<float> values_;
};

/// Rows [from, from + count) of an operand, or zero rows when there is none.
struct Piece {
  const Node *node;
  uint64_t from, count;
};

/// Base of the operations that put rows of their operands in another order.
class RowsNode : public Node {
public:
  RowsNode(std::vector<NodePtr> parts, uint64_t rows, uint64_t columns)
      : Node(rows, columns), operands(std::move(parts)) {}

  const std::string &name() const override { return operands.front()->name(); }

  Status readRows(uint64_t begin, uint64_t end, float *values) const override {
    while (begin != end) {
      const Piece piece = clipped(begin, end);
      if (piece.node)
        LLMRT_RETURN_IF_ERROR(piece.node->readRows(piece.from, piece.from + piece.count, values));
      else
        std::fill_n(values, piece.count * columnCount, 0.0f);
      values += piece.count * columnCount;
      begin += piece.count;
    }
    return Status::ok();
  }

  std::optional<WeightFormat> quantizedFormat() const override {
    const std::optional<WeightFormat> first = operands.front()->quantizedFormat();
    for (const NodePtr &operand : operands)
      if (!first || !same(*first, operand->quantizedFormat()))
        return std::nullopt;
    return first;
  }

  Status readQuantizedRows(uint64_t begin, uint64_t end, QuantizedRows &result) const override {
    const std::optional<WeightFormat> format = quantizedFormat();
    if (!format)
      return Node::readQuantizedRows(begin, end, result);
    result.resize(*format, end - begin, columnCount);
    QuantizedRows part;
    for (uint64_t at = begin; at != end;) {
      const Piece piece = clipped(at, end);
      part.resize(*format, piece.count, columnCount);
      if (piece.node) {
        LLMRT_RETURN_IF_ERROR(
            piece.node->readQuantizedRows(piece.from, piece.from + piece.count, part));
      } else { // scale and minimum 0: the value of any code is 0
        std::ranges::fill(part.codes, uint8_t(0));
        std::ranges::fill(part.scales, 0.0f);
        std::ranges::fill(part.mins, 0.0f);
      }
      std::ranges::copy(part.codes, result.codes.begin() + (at - begin) * columnCount);
      std::ranges::copy(part.scales, result.scales.begin() + (at - begin) * result.groups());
      if (format->hasMin)
        std::ranges::copy(part.mins, result.mins.begin() + (at - begin) * result.groups());
      at += piece.count;
    }
    return Status::ok();
  }

  Element floatElement() const override {
    const Element first = operands.front()->floatElement();
    for (const NodePtr &operand : operands)
      if (operand->floatElement() != first)
        return Element::F32;
    return first;
  }

protected:
  /// The longest run of rows from row \p row on that lies together in one operand.
  virtual Piece pieceAt(uint64_t row) const = 0;
  std::vector<NodePtr> operands;

private:
  Piece clipped(uint64_t begin, uint64_t end) const {
    Piece piece = pieceAt(begin);
    assert(piece.count != 0);
    piece.count = std::min(piece.count, end - begin);
    return piece;
  }
  static bool same(const WeightFormat &a, const std::optional<WeightFormat> &b) {
    return b && a.element == b->element && a.group == b->group && a.scale == b->scale &&
           a.hasMin == b->hasMin && a.min == b->min;
  }
};

class ConcatNode : public RowsNode {
public:
  ConcatNode(std::vector<NodePtr> parts, uint64_t rows)
      : RowsNode(parts, rows, parts.front()->columnCount) {}
  Piece pieceAt(uint64_t row) const override {
    for (const NodePtr &operand : operands) {
      if (row < operand->rowCount)
        return {operand.get(), row, operand->rowCount - row};
      row -= operand->rowCount;
    }
    assert(false && "a row beyond the end");
    return {nullptr, 0, UINT64_MAX};
  }
  NodePtr transposed() const override; // below
};

class StackNode : public RowsNode {
public:
  explicit StackNode(std::vector<NodePtr> parts)
      : RowsNode(parts, paddedRows(parts.front()->rowCount) * parts.size(),
                 parts.front()->columnCount) {}
  static uint64_t paddedRows(uint64_t rows) {
    return (rows + kTileRows - 1) / kTileRows * kTileRows;
  }
  Piece pieceAt(uint64_t row) const override {
    const uint64_t rows = operands.front()->rowCount, padded = paddedRows(rows);
    const uint64_t inPart = row % padded;
    if (inPart >= rows)
      return {nullptr, 0, padded - inPart};
    return {operands[row / padded].get(), inPart, rows - inPart};
  }
};

class InterleaveNode : public RowsNode {
public:
  static uint64_t tiles(uint64_t rows) { return rows / kTileRows + (rows % kTileRows != 0); }
  InterleaveNode(NodePtr first, NodePtr second)
      : RowsNode({first, second}, 2 * kTileRows * tiles(first->rowCount), first->columnCount) {}
  Piece pieceAt(uint64_t row) const override {
    const uint64_t tile = row / kTileRows, inTile = row % kTileRows;
    const Node *node = operands[tile % 2].get();
    const uint64_t from = tile / 2 * kTileRows + inTile;
    if (from >= node->rowCount)
      return {nullptr, 0, kTileRows - inTile};
    return {node, from, std::min(kTileRows - inTile, node->rowCount - from)};
  }
};

class SliceNode : public RowsNode {
public:
  SliceNode(NodePtr operand, uint64_t offset, uint64_t count)
      : RowsNode({operand}, count, operand->columnCount), offset(offset) {}
  Piece pieceAt(uint64_t row) const override {
    return {operands[0].get(), offset + row, rowCount - row};
  }

private:
  uint64_t offset;
};

class UnpermuteNode : public RowsNode {
public:
  UnpermuteNode(NodePtr operand, uint64_t heads)
      : RowsNode({operand}, operand->rowCount, operand->columnCount),
        headRows(operand->rowCount / heads) {}
  Piece pieceAt(uint64_t row) const override {
    const uint64_t inHead = row % headRows, half = headRows / 2;
    return {operands[0].get(), row - inHead + 2 * (inHead % half) + inHead / half, 1};
  }

private:
  uint64_t headRows;
};

/// Base of the operations that pick values out of other rows of one operand.
class ValuesOfNode : public Node {
public:
  ValuesOfNode(NodePtr operand, uint64_t rows, uint64_t columns)
      : Node(rows, columns), operand(std::move(operand)) {}
  const std::string &name() const override { return operand->name(); }
  Element floatElement() const override { return operand->floatElement(); }

protected:
  NodePtr operand;
};

class ReshapeNode : public ValuesOfNode {
public:
  using ValuesOfNode::ValuesOfNode;
  Status readRows(uint64_t begin, uint64_t end, float *values) const override {
    const uint64_t width = operand->columnCount;
    uint64_t at = begin * columnCount;
    const uint64_t last = end * columnCount;
    std::vector<float> row(width);
    while (at != last) {
      const uint64_t inRow = at % width, count = std::min(width - inRow, last - at);
      LLMRT_RETURN_IF_ERROR(operand->readRows(at / width, at / width + 1, row.data()));
      std::copy_n(row.data() + inRow, count, values);
      values += count;
      at += count;
    }
    return Status::ok();
  }
};

/// A transpose that can't be expressed by its operands': reads all rows for every call.
class TransposeNode : public ValuesOfNode {
public:
  explicit TransposeNode(NodePtr operand)
      : ValuesOfNode(operand, operand->columnCount, operand->rowCount) {}
  Status readRows(uint64_t begin, uint64_t end, float *values) const override {
    std::vector<float> row(operand->columnCount);
    for (uint64_t c = 0; c != columnCount; ++c) {
      LLMRT_RETURN_IF_ERROR(operand->readRows(c, c + 1, row.data()));
      for (uint64_t r = begin; r != end; ++r)
        values[(r - begin) * columnCount + c] = row[r];
    }
    return Status::ok();
  }
  NodePtr transposed() const override { return operand; }
};

/// Matrices side by side: what a transposed join is.
class BesideNode : public Node {
public:
  BesideNode(std::vector<NodePtr> parts, uint64_t columns)
      : Node(parts.front()->rowCount, columns), operands(std::move(parts)) {}
  const std::string &name() const override { return operands.front()->name(); }
  Status readRows(uint64_t begin, uint64_t end, float *values) const override {
    std::vector<float> part;
    uint64_t column = 0;
    for (const NodePtr &operand : operands) {
      const uint64_t width = operand->columnCount;
      part.resize((end - begin) * width);
      LLMRT_RETURN_IF_ERROR(operand->readRows(begin, end, part.data()));
      for (uint64_t r = 0; r != end - begin; ++r)
        std::copy_n(part.data() + r * width, width, values + r * columnCount + column);
      column += width;
    }
    return Status::ok();
  }

private:
  std::vector<NodePtr> operands;
};

NodePtr transposeOf(const NodePtr &node) {
  if (NodePtr own = node->transposed())
    return own;
  return std::make_shared<TransposeNode>(node);
}

NodePtr ConcatNode::transposed() const {
  std::vector<NodePtr> parts;
  for (const NodePtr &operand : operands)
    parts.push_back(transposeOf(operand));
  return std::make_shared<BesideNode>(std::move(parts), rowCount);
}

} // namespace

WeightView WeightView::source(WeightSource source) {
  return WeightView(std::make_shared<SourceNode>(std::move(source)));
}
WeightView WeightView::values(std::string name, std::vector<float> values, uint64_t rows,
                              uint64_t columns) {
  return WeightView(
      std::make_shared<ValuesNode>(std::move(name), std::move(values), rows, columns));
}
WeightView WeightView::transpose(const WeightView &view) {
  return WeightView(transposeOf(view.node_));
}
WeightView WeightView::concat(std::vector<WeightView> views) {
  assert(!views.empty());
  std::vector<NodePtr> parts;
  uint64_t rows = 0;
  for (const WeightView &view : views) {
    assert(view.columnCount() == views.front().columnCount());
    parts.push_back(view.node_);
    rows += view.rowCount();
  }
  return WeightView(std::make_shared<ConcatNode>(std::move(parts), rows));
}
WeightView WeightView::stack(std::vector<WeightView> views) {
  assert(!views.empty());
  std::vector<NodePtr> parts;
  for (const WeightView &view : views) {
    assert(view.rowCount() == views.front().rowCount() &&
           view.columnCount() == views.front().columnCount());
    parts.push_back(view.node_);
  }
  return WeightView(std::make_shared<StackNode>(std::move(parts)));
}
WeightView WeightView::interleave(const WeightView &first, const WeightView &second) {
  assert(first.rowCount() == second.rowCount() && first.columnCount() == second.columnCount());
  return WeightView(std::make_shared<InterleaveNode>(first.node_, second.node_));
}
WeightView WeightView::rows(const WeightView &view, uint64_t offset, uint64_t count) {
  assert(offset <= view.rowCount() && count <= view.rowCount() - offset);
  if (NodePtr part = view.node_->slice(offset, count))
    return WeightView(std::move(part));
  return WeightView(std::make_shared<SliceNode>(view.node_, offset, count));
}
WeightView WeightView::unpermute(const WeightView &view, uint64_t heads) {
  assert(heads != 0 && view.rowCount() % heads == 0 && view.rowCount() / heads % 2 == 0);
  return WeightView(std::make_shared<UnpermuteNode>(view.node_, heads));
}
WeightView WeightView::reshape(const WeightView &view, uint64_t rows, uint64_t columns) {
  assert(view.rowCount() * view.columnCount() == rows * columns);
  if (columns == view.columnCount())
    return view;
  return WeightView(std::make_shared<ReshapeNode>(view.node_, rows, columns));
}

uint64_t WeightView::rowCount() const { return node_->rowCount; }
uint64_t WeightView::columnCount() const { return node_->columnCount; }
const std::string &WeightView::name() const { return node_->name(); }
Status WeightView::readRows(uint64_t begin, uint64_t end, float *values) const {
  assert(begin <= end && end <= rowCount());
  return node_->readRows(begin, end, values);
}
std::optional<WeightFormat> WeightView::quantizedFormat() const { return node_->quantizedFormat(); }
Status WeightView::readQuantizedRows(uint64_t begin, uint64_t end, QuantizedRows &result) const {
  assert(begin <= end && end <= rowCount());
  return node_->readQuantizedRows(begin, end, result);
}
Element WeightView::floatElement() const { return node_->floatElement(); }

} // namespace llmc
