//===- ShapeRules.cpp - operations that change shapes -------------------------===//
#include "compiler/import/onnx/ShapeRules.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;
using llvm::Twine;

std::string llmc::onnx::toString(llvm::ArrayRef<Dim> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    text += i ? ", " : "";
    text += dims[i].isNumber() ? std::to_string(dims[i].value) : "?";
  }
  return text + "]";
}

std::optional<int64_t> ShapeRules::axis(int64_t axis, int64_t rank) {
  if (axis >= -rank && axis < rank)
    return axis < 0 ? axis + rank : axis;
  (void)report("axis " + Twine(axis) + " is out of range for rank " + Twine(rank));
  return std::nullopt;
}

std::optional<llvm::SmallVector<int64_t>> ShapeRules::axes(llvm::ArrayRef<int64_t> list,
                                                           int64_t rank) {
  llvm::SmallVector<int64_t> result;
  for (int64_t one : list) {
    std::optional<int64_t> place = axis(one, rank);
    if (!place)
      return std::nullopt;
    if (llvm::is_contained(result, *place)) {
      (void)report("axis " + Twine(one) + " comes twice");
      return std::nullopt;
    }
    result.push_back(*place);
  }
  return result;
}

LogicalResult ShapeRules::broadcastInto(Dims &dims, const Dims &more) {
  Dims wider = dims.size() >= more.size() ? dims : more;
  const Dims &narrower = dims.size() >= more.size() ? more : dims;
  size_t shift = wider.size() - narrower.size();
  for (size_t i = 0; i < narrower.size(); ++i) {
    std::optional<Dim> both = broadcast(wider[shift + i], narrower[i]);
    if (!both)
      return report("shapes " + toString(dims) + " and " + toString(more) + " don't broadcast");
    wider[shift + i] = *both;
  }
  dims = std::move(wider);
  return success();
}

LogicalResult ShapeRules::broadcastAll(ValueRange operands) {
  Dims all;
  for (Value operand : operands) {
    std::optional<Dims> dims = shape(operand);
    if (!dims)
      return unknown();
    if (failed(broadcastInto(all, *dims)))
      return failure();
  }
  return set(std::move(all));
}

std::optional<int64_t> ShapeRules::length(Value value) {
  std::optional<Dims> dims = shape(value);
  if (!dims || dims->size() != 1 || !dims->front().isNumber())
    return std::nullopt;
  return dims->front().value;
}

LogicalResult ShapeRules::apply(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<ConstantOp, WeightOp>([&](Operation *) { return unknown(); }) // typed already
      .Case<UnaryOp, ClipOp, CastOp, CumSumOp, SoftmaxOp, TriluOp, LayerNormOp, RmsNormOp,
            RotaryEmbeddingOp, ScatterElementsOp, ScatterNDOp, DequantizeOp>([&](auto same) {
        results[0] = shape(same.getX());
        return success();
      })
      .Case<BinaryOp, CompareOp, SelectOp>([&](auto) { return broadcastAll(op->getOperands()); })
      .Case([&](ShapeOp shapeOp) {
        auto dims = shape(shapeOp.getX());
        if (!dims)
          return set({Dim()});
        int64_t rank = static_cast<int64_t>(dims->size());
        auto place = [&](int64_t bound) {
          return std::clamp<int64_t>(bound < 0 ? bound + rank : bound, 0, rank);
        };
        int64_t start = place(static_cast<int64_t>(shapeOp.getStart()));
        int64_t end = shapeOp.getEnd() ? place(static_cast<int64_t>(*shapeOp.getEnd())) : rank;
        return set({Dim::number(std::max<int64_t>(end - start, 0))});
      })
      .Case([&](SizeOp) { return set({}); })
      .Case([&](FillOp fill) {
        if (const Dims *dims = known.elements(fill.getShape()))
          return set(*dims);
        if (auto rank = length(fill.getShape()); rank && *rank <= 64)
          return set(Dims(*rank));
        return unknown();
      })
      .Case([&](GatherElementsOp gather) {
        results[0] = shape(gather.getIndices());
        return success();
      })
      .Case([&](NonZeroOp nonZero) {
        auto dims = shape(nonZero.getX());
        // Of a scalar it gives one row, as of a vector of one element.
        Dim rank =
            dims ? Dim::number(std::max<int64_t>(static_cast<int64_t>(dims->size()), 1)) : Dim();
        return set({rank, Dim()});
      })
      .Case<ReshapeOp, FlattenOp, SqueezeOp, UnsqueezeOp, ExpandOp, TileOp, TransposeOp, ConcatOp,
            SplitOp, SliceOp, PadOp, RangeOp, GatherOp, GatherNDOp, OneHotOp, TopKOp, ReduceOp,
            ArgReduceOp, MatMulOp, GemmOp, DequantizeNBitsOp, MatMulNBitsOp, AttentionOp,
            GroupQueryAttentionOp>([&](auto typed) { return rule(typed); })
      .Default([&](Operation *) { return unknown(); });
}

/// The dimension that a -1 stands for: the elements of \p all divided by those of \p others,
/// symbols cancelled.
static Dim quotient(const Dims &all, Dims others) {
  int64_t count = 1, rest = 1;
  Dims symbols;
  for (Dim dim : all) {
    if (dim.kind == Dim::Unknown)
      return {};
    if (dim.isNumber()) {
      if (llvm::MulOverflow(count, dim.value, count))
        return {};
      continue;
    }
    auto *same = llvm::find_if(others, [&](Dim other) { return other.same(dim); });
    if (same != others.end())
      others.erase(same);
    else
      symbols.push_back(dim);
  }
  for (Dim dim : others)
    if (!dim.isNumber() || llvm::MulOverflow(rest, dim.value, rest))
      return {};
  if (rest == 0)
    return {};
  if (symbols.size() == 1 && count == rest)
    return symbols[0];
  if (!symbols.empty() || count % rest != 0)
    return {};
  return Dim::number(count / rest);
}

LogicalResult ShapeRules::rule(ReshapeOp op) {
  const Dims *wanted = known.elements(op.getShape());
  std::optional<Dims> from = shape(op.getX());
  if (!wanted) {
    auto rank = length(op.getShape());
    if (!rank || *rank > 64)
      return unknown();
    return set(Dims(*rank));
  }
  Dims dims, others;
  int64_t inferred = -1;
  for (size_t i = 0; i < wanted->size(); ++i) {
    Dim dim = (*wanted)[i];
    if (dim.isNumber() && dim.value < -1)
      return report("the new shape " + toString(*wanted) + " has a dimension below -1");
    if (dim.is(-1)) {
      if (inferred >= 0)
        return report("the new shape " + toString(*wanted) + " has two dimensions of -1");
      inferred = static_cast<int64_t>(i);
    } else if (dim.is(0) && !op.getAllowZero()) {
      if (from && i >= from->size())
        return report("the new shape " + toString(*wanted) + " keeps dimension " + Twine(i) +
                      ", which " + toString(*from) + " doesn't have");
      dim = from ? (*from)[i] : Dim();
    }
    // An entry that is not known might be a 0 that keeps a dimension, or a -1.
    dims.push_back(dim.is(-1) ? Dim() : dim);
    if (!dim.is(-1))
      others.push_back(dim);
  }
  if (inferred >= 0 && from)
    dims[inferred] = quotient(*from, others);
  bool isStatic = from && llvm::all_of(*from, [](Dim dim) { return dim.isNumber(); }) &&
                  llvm::all_of(dims, [](Dim dim) { return dim.isNumber(); });
  if (isStatic) {
    RankedTensorType type = rankedType(dims, op.getY().getType().getElementType());
    if (type &&
        type.getNumElements() != cast<RankedTensorType>(op.getX().getType()).getNumElements())
      return report(toString(*from) + " can't take the shape " + toString(*wanted));
  }
  return set(std::move(dims));
}

/// Product of dimensions, where it is a number or one symbol.
static Dim product(llvm::ArrayRef<Dim> dims) {
  Dim symbol;
  int64_t count = 1;
  for (Dim dim : dims) {
    if (dim.is(0))
      return Dim::number(0);
    if (dim.isNumber() ? llvm::MulOverflow(count, dim.value, count)
                       : dim.kind == Dim::Unknown || symbol.kind != Dim::Unknown)
      return {};
    if (!dim.isNumber())
      symbol = dim;
  }
  if (symbol.kind == Dim::Unknown)
    return Dim::number(count);
  return count == 1 ? symbol : Dim();
}

LogicalResult ShapeRules::rule(FlattenOp op) {
  auto from = shape(op.getX());
  if (!from)
    return set({Dim(), Dim()});
  // The axis may also be the rank: everything is rows then.
  int64_t rank = static_cast<int64_t>(from->size()), at = static_cast<int64_t>(op.getAxis());
  if (at < -rank || at > rank)
    return report("axis " + Twine(at) + " is out of range for rank " + Twine(rank));
  at = at < 0 ? at + rank : at;
  llvm::ArrayRef<Dim> dims = *from;
  return set({product(dims.take_front(at)), product(dims.drop_front(at))});
}

LogicalResult ShapeRules::rule(SqueezeOp op) {
  auto from = shape(op.getX());
  if (!from)
    return unknown();
  int64_t rank = static_cast<int64_t>(from->size());
  Dims dims;
  if (!op.getAxes()) {
    // A dimension that is not a number might turn out to be 1.
    for (Dim dim : *from) {
      if (!dim.isNumber())
        return unknown();
      if (!dim.is(1))
        dims.push_back(dim);
    }
    return set(std::move(dims));
  }
  auto list = known.numbers(op.getAxes());
  if (!list) {
    if (auto count = length(op.getAxes()); count && *count <= rank)
      return set(Dims(rank - *count));
    return unknown();
  }
  auto places = axes(*list, rank);
  if (!places)
    return failure();
  for (int64_t i = 0; i < rank; ++i) {
    Dim dim = (*from)[i];
    if (!llvm::is_contained(*places, i))
      dims.push_back(dim);
    else if (dim.isNumber() && !dim.is(1))
      return report("dimension " + Twine(i) + " of " + toString(*from) + " is not 1");
  }
  return set(std::move(dims));
}

LogicalResult ShapeRules::rule(UnsqueezeOp op) {
  auto from = shape(op.getX());
  auto list = known.numbers(op.getAxes());
  std::optional<int64_t> count = list ? std::optional<int64_t>(list->size()) : length(op.getAxes());
  if (!from || !count || *count > 64)
    return unknown();
  int64_t rank = static_cast<int64_t>(from->size()) + *count;
  if (!list)
    return set(Dims(rank));
  auto places = axes(*list, rank);
  if (!places)
    return failure();
  Dims dims;
  for (int64_t i = 0, next = 0; i < rank; ++i)
    dims.push_back(llvm::is_contained(*places, i) ? Dim::number(1) : (*from)[next++]);
  return set(std::move(dims));
}

LogicalResult ShapeRules::rule(ExpandOp op) {
  auto from = shape(op.getX());
  if (!from)
    return unknown();
  const Dims *wanted = known.elements(op.getShape());
  if (!wanted) {
    auto rank = length(op.getShape());
    if (!rank || *rank > 64)
      return unknown();
    return set(Dims(std::max<size_t>(*rank, from->size())));
  }
  Dims dims = *from;
  if (failed(broadcastInto(dims, *wanted)))
    return failure();
  return set(std::move(dims));
}

LogicalResult ShapeRules::rule(TileOp op) {
  auto dims = shape(op.getX());
  if (!dims)
    return unknown();
  const Dims *repeats = known.elements(op.getRepeats());
  if (repeats && repeats->size() != dims->size())
    return report(Twine(repeats->size()) + " repeats for rank " + Twine(dims->size()));
  for (size_t i = 0; i < dims->size(); ++i) {
    Dim times = repeats ? (*repeats)[i] : Dim();
    Dim &dim = (*dims)[i];
    if (times.isNumber() && times.value < 0)
      return report("a dimension is repeated " + Twine(times.value) + " times");
    dim = times.is(1) ? dim : dim.is(1) ? times : product({dim, times});
  }
  return set(std::move(*dims));
}

LogicalResult ShapeRules::rule(TransposeOp op) {
  auto from = shape(op.getX());
  llvm::ArrayRef<int64_t> perm = op.getPerm();
  if (!from)
    return set(Dims(perm.size()));
  if (perm.size() != from->size())
    return report("perm has " + Twine(perm.size()) + " entries for rank " + Twine(from->size()));
  if (!axes(perm, static_cast<int64_t>(from->size())))
    return failure();
  Dims dims;
  for (int64_t i : perm) {
    if (i < 0)
      return report("perm has the negative entry " + Twine(i));
    dims.push_back((*from)[i]);
  }
  return set(std::move(dims));
}

LogicalResult ShapeRules::rule(ConcatOp op) {
  std::optional<Dims> dims;
  int64_t at = 0;
  bool known = true;
  for (Value part : op.getParts()) {
    auto from = shape(part);
    if (!from) {
      known = false;
      continue;
    }
    auto place = axis(static_cast<int64_t>(op.getAxis()), static_cast<int64_t>(from->size()));
    if (!place)
      return failure();
    if (!dims) {
      dims = std::move(*from);
      at = *place;
      continue;
    }
    if (dims->size() != from->size())
      return report("parts " + toString(*dims) + " and " + toString(*from) + " differ in rank");
    for (int64_t i = 0; i < static_cast<int64_t>(dims->size()); ++i) {
      Dim &dim = (*dims)[i], other = (*from)[i];
      if (i == at)
        dim = sum(dim, other);
      else if (dim.isNumber() && other.isNumber() && dim.value != other.value)
        return report("parts " + toString(*dims) + " and " + toString(*from) +
                      " differ beside axis " + Twine(at));
      else if (!dim.isNumber() && (other.isNumber() || dim.kind == Dim::Unknown))
        dim = other;
    }
  }
  if (dims && !known)
    (*dims)[at] = Dim();
  results[0] = std::move(dims);
  return success();
}
