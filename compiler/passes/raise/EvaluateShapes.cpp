//===- EvaluateShapes.cpp - Shapes of the results of graph operations ---------===//

#include "compiler/passes/raise/Evaluate.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace llmc;
using namespace llmc::graph;
using namespace llmc::raise;

namespace {

using MaybeShape = std::optional<Shape>;

/// Shape inference of single-result operations; every function gets known operand shapes.
struct ShapeOf {
  ArrayRef<Facts> in;

  const Shape &shape(unsigned i) const { return *in[i].shape; }
  const HostArray *data(unsigned i) const { return in[i].data.get(); }

  MaybeShape reshape(ReshapeOp op) const {
    const HostArray *want = data(1);
    auto total = countElements(shape(0));
    if (!want || !total)
      return std::nullopt;
    Shape result(ArrayRef<int64_t>(want->ints));
    int64_t known = 1, hole = -1;
    for (auto [i, dim] : llvm::enumerate(result)) {
      if (dim == 0 && !op.getAllowZero()) {
        if (i >= shape(0).size())
          return std::nullopt;
        dim = shape(0)[i];
      }
      if (dim == -1) {
        if (hole >= 0)
          return std::nullopt;
        hole = i;
      } else if (dim < 0 || llvm::MulOverflow(known, dim, known)) {
        return std::nullopt;
      }
    }
    if (hole >= 0) {
      if (known == 0 ? *total != 0 : *total % known != 0)
        return std::nullopt;
      result[hole] = known == 0 ? 0 : *total / known;
      known = *total;
    }
    return known == *total ? MaybeShape(result) : std::nullopt;
  }

  MaybeShape flatten(FlattenOp op) const {
    int64_t rank = shape(0).size(), axis = op.getAxis();
    if (axis < -rank || axis > rank)
      return std::nullopt;
    axis = axis < 0 ? axis + rank : axis;
    auto rows = countElements(ArrayRef(shape(0)).take_front(axis));
    auto columns = countElements(ArrayRef(shape(0)).drop_front(axis));
    return rows && columns ? MaybeShape(Shape{*rows, *columns}) : std::nullopt;
  }

  MaybeShape squeeze(SqueezeOp op) const {
    Shape result;
    SmallVector<bool> drop(shape(0).size(), false);
    if (op.getAxes()) {
      if (!data(1))
        return std::nullopt;
      for (int64_t axis : data(1)->ints) {
        auto place = placeAxis(axis, drop.size());
        if (!place || shape(0)[*place] != 1)
          return std::nullopt;
        drop[*place] = true;
      }
    } else {
      for (auto [i, dim] : llvm::enumerate(shape(0)))
        drop[i] = dim == 1;
    }
    for (auto [i, dim] : llvm::enumerate(shape(0)))
      if (!drop[i])
        result.push_back(dim);
    return result;
  }

  MaybeShape unsqueeze() const {
    if (!data(1))
      return std::nullopt;
    int64_t rank = shape(0).size() + data(1)->size();
    SmallVector<bool> isNew(rank, false);
    for (int64_t axis : data(1)->ints) {
      auto place = placeAxis(axis, rank);
      if (!place || isNew[*place])
        return std::nullopt;
      isNew[*place] = true;
    }
    Shape result;
    size_t next = 0;
    for (bool fresh : isNew)
      result.push_back(fresh ? 1 : shape(0)[next++]);
    return result;
  }

  MaybeShape concat(ConcatOp op) const {
    auto axis = placeAxis(op.getAxis(), shape(0).size());
    if (!axis)
      return std::nullopt;
    Shape result = shape(0);
    for (const Facts &part : in.drop_front()) {
      if (part.shape->size() != result.size())
        return std::nullopt;
      for (auto [i, dim] : llvm::enumerate(*part.shape))
        if (static_cast<int64_t>(i) == *axis ? llvm::AddOverflow(result[i], dim, result[i]) != 0
                                             : dim != result[i])
          return std::nullopt;
    }
    return result;
  }

  MaybeShape slice(SliceOp op) const {
    auto ranges = sliceRanges(op, in, shape(0));
    if (!ranges)
      return std::nullopt;
    Shape result;
    for (const SliceRange &range : *ranges)
      result.push_back(range.count);
    return result;
  }

  MaybeShape range() const {
    const HostArray *start = data(0), *limit = data(1), *step = data(2);
    if (!start || !limit || !step || start->size() != 1 || limit->size() != 1 || step->size() != 1)
      return std::nullopt;
    if (start->isFloat()) {
      double count = std::ceil((limit->floats[0] - start->floats[0]) / step->floats[0]);
      if (!(count < 1e9))
        return std::nullopt;
      return Shape{std::max<int64_t>(0, static_cast<int64_t>(count))};
    }
    // In 128 bits, since limit - start may not fit 64.
    __int128 gap = static_cast<__int128>(limit->ints[0]) - start->ints[0], by = step->ints[0];
    if (by == 0)
      return std::nullopt;
    if (by < 0)
      gap = -gap, by = -by;
    __int128 count = gap <= 0 ? 0 : (gap - 1) / by + 1;
    return count < 1'000'000'000 ? MaybeShape(Shape{static_cast<int64_t>(count)}) : std::nullopt;
  }

  MaybeShape matmul() const {
    Shape a = shape(0), b = shape(1);
    if (a.empty() || b.empty())
      return std::nullopt;
    bool isVectorA = a.size() == 1, isVectorB = b.size() == 1;
    if (isVectorA)
      a.insert(a.begin(), 1);
    if (isVectorB)
      b.push_back(1);
    if (a.back() != b[b.size() - 2])
      return std::nullopt;
    auto result = broadcastShapes(ArrayRef(a).drop_back(2), ArrayRef(b).drop_back(2));
    if (!result)
      return std::nullopt;
    if (!isVectorA)
      result->push_back(a[a.size() - 2]);
    if (!isVectorB)
      result->push_back(b.back());
    return result;
  }

  MaybeShape gather(GatherOp op) const {
    auto axis = placeAxis(op.getAxis(), shape(0).size());
    if (!axis)
      return std::nullopt;
    Shape result(ArrayRef(shape(0)).take_front(*axis));
    llvm::append_range(result, shape(1));
    llvm::append_range(result, ArrayRef(shape(0)).drop_front(*axis + 1));
    return result;
  }

  MaybeShape gatherND(GatherNDOp op) const {
    int64_t batch = op.getBatchDims(), rank = shape(0).size(), indexRank = shape(1).size();
    if (batch < 0 || indexRank < 1 || batch >= indexRank || shape(1).back() > rank - batch)
      return std::nullopt;
    Shape result(ArrayRef(shape(1)).drop_back());
    llvm::append_range(result, ArrayRef(shape(0)).drop_front(batch + shape(1).back()));
    return result;
  }

  MaybeShape reduce(ReduceOp op) const {
    auto axes = reducedAxes(op, in, shape(0).size());
    if (!axes)
      return std::nullopt;
    Shape result;
    for (auto [i, dim] : llvm::enumerate(shape(0)))
      if (!(*axes)[i])
        result.push_back(dim);
      else if (op.getKeepdims())
        result.push_back(1);
    return result;
  }

  MaybeShape pad(PadOp op) const {
    if (!data(1) || op.getAxes() || data(1)->size() != static_cast<int64_t>(2 * shape(0).size()))
      return std::nullopt;
    Shape result = shape(0);
    for (size_t i = 0; i < result.size(); ++i)
      if (llvm::AddOverflow(result[i], data(1)->ints[i], result[i]) ||
          llvm::AddOverflow(result[i], data(1)->ints[i + result.size()], result[i]) ||
          result[i] < 0)
        return std::nullopt;
    return result;
  }

  MaybeShape attention(AttentionOp op) const {
    const Shape &q = shape(0), &v = shape(2);
    if (q.size() == 4 && v.size() == 4)
      return Shape{q[0], q[1], q[2], v[3]};
    if (q.size() != 3 || v.size() != 3 || op.getKvNumHeads() == 0)
      return std::nullopt;
    auto kvHeads = static_cast<int64_t>(op.getKvNumHeads()),
         heads = static_cast<int64_t>(op.getQNumHeads());
    return Shape{q[0], q[1], v[2] / kvHeads * heads};
  }
};

} // namespace

void llmc::raise::inferShapes(Operation *op, ArrayRef<Facts> operands,
                              MutableArrayRef<Facts> results) {
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    results[0].shape = Shape(constant.getValue().getShapedType().getShape());
    return;
  }
  if (auto weight = dyn_cast<WeightOp>(op)) {
    results[0].shape = Shape(cast<RankedTensorType>(weight.getType()).getShape());
    return;
  }
  if (isa<ScatterElementsOp, ScatterNDOp>(op)) { // however many elements are put into it
    results[0].shape = operands[0].shape;
    return;
  }
  for (const Facts &operand : operands)
    if (!operand.shape)
      return;
  ShapeOf of{operands};
  auto same = [&](auto) -> MaybeShape { return of.shape(0); };
  if (auto split = dyn_cast<SplitOp>(op)) {
    auto axis = placeAxis(split.getAxis(), of.shape(0).size());
    int64_t parts = results.size();
    if (!axis || (split.getSizes() && (!of.data(1) || of.data(1)->size() != parts)))
      return;
    int64_t dim = of.shape(0)[*axis], rest = dim;
    int64_t chunk = static_cast<int64_t>(llvm::divideCeil(dim, parts));
    for (int64_t i = 0; i < parts; ++i) {
      int64_t size = split.getSizes() ? of.data(1)->ints[i] : std::min(chunk, rest);
      if (size < 0 || size > rest)
        return;
      rest -= size;
      results[i].shape = of.shape(0);
      (*results[i].shape)[*axis] = size;
    }
    return;
  }
  if (auto topK = dyn_cast<TopKOp>(op)) {
    Shape top = of.shape(0);
    auto axis = placeAxis(topK.getAxis(), top.size());
    const HostArray *k = of.data(1);
    if (!axis || !k || k->isFloat() || k->size() != 1 || k->ints[0] < 0 || k->ints[0] > top[*axis])
      return;
    top[*axis] = k->ints[0];
    results[0].shape = results[1].shape = top;
    return;
  }
  if (auto attention = dyn_cast<GroupQueryAttentionOp>(op)) {
    Shape y = of.shape(0);
    if (y.size() != 3)
      return;
    if (!attention.getKey())
      y[2] = y[2] / (attention.getNumHeads() + 2 * attention.getKvNumHeads()) *
             attention.getNumHeads();
    results[0].shape = y;
    return;
  }
  results[0].shape =
      llvm::TypeSwitch<Operation *, MaybeShape>(op)
          .Case<UnaryOp, CastOp, ClipOp, CumSumOp, SoftmaxOp, TriluOp, LayerNormOp, RmsNormOp,
                RotaryEmbeddingOp>(same)
          .Case<BinaryOp, CompareOp>(
              [&](auto) { return broadcastShapes(of.shape(0), of.shape(1)); })
          .Case([&](SelectOp) -> MaybeShape {
            auto both = broadcastShapes(of.shape(1), of.shape(2));
            return both ? broadcastShapes(of.shape(0), *both) : std::nullopt;
          })
          .Case([&](ShapeOp shape) -> MaybeShape {
            int64_t rank = of.shape(0).size();
            auto range = clampSlice(shape.getStart(), shape.getEnd().value_or(INT64_MAX), 1, rank);
            return Shape{range.count};
          })
          .Case([&](SizeOp) -> MaybeShape { return Shape{}; })
          .Case([&](ReshapeOp reshape) { return of.reshape(reshape); })
          .Case([&](FlattenOp flatten) { return of.flatten(flatten); })
          .Case([&](SqueezeOp squeeze) { return of.squeeze(squeeze); })
          .Case([&](UnsqueezeOp) { return of.unsqueeze(); })
          .Case([&](ExpandOp) -> MaybeShape {
            return of.data(1) ? broadcastShapes(of.shape(0), of.data(1)->ints) : std::nullopt;
          })
          .Case([&](TileOp) -> MaybeShape {
            if (!of.data(1) || of.data(1)->size() != static_cast<int64_t>(of.shape(0).size()))
              return std::nullopt;
            Shape result = of.shape(0);
            for (auto [dim, times] : llvm::zip(result, of.data(1)->ints))
              if (times < 0 || llvm::MulOverflow(dim, times, dim))
                return std::nullopt;
            return result;
          })
          .Case([&](TransposeOp transpose) -> MaybeShape {
            if (transpose.getPerm().size() != of.shape(0).size())
              return std::nullopt;
            Shape result;
            for (int64_t dim : transpose.getPerm())
              result.push_back(of.shape(0)[dim]);
            return result;
          })
          .Case([&](ConcatOp concat) { return of.concat(concat); })
          .Case([&](SliceOp slice) { return of.slice(slice); })
          .Case([&](PadOp pad) { return of.pad(pad); })
          .Case([&](RangeOp) { return of.range(); })
          .Case([&](FillOp) -> MaybeShape {
            return of.data(0) && countElements(of.data(0)->ints)
                       ? MaybeShape(Shape(ArrayRef<int64_t>(of.data(0)->ints)))
                       : std::nullopt;
          })
          .Case([&](GatherOp gather) { return of.gather(gather); })
          .Case([&](GatherElementsOp) -> MaybeShape { return of.shape(1); })
          .Case([&](OneHotOp hot) -> MaybeShape {
            Shape result = of.shape(0);
            auto axis = placeAxis(hot.getAxis(), result.size() + 1);
            const HostArray *depth = of.data(1);
            if (!axis || !depth || depth->isFloat() || depth->size() != 1 || depth->ints[0] < 0)
              return std::nullopt;
            result.insert(result.begin() + *axis, depth->ints[0]);
            return result;
          })
          .Case([&](GatherNDOp gather) { return of.gatherND(gather); })
          .Case([&](ReduceOp reduce) { return of.reduce(reduce); })
          .Case([&](MatMulOp) { return of.matmul(); })
          .Case([&](GemmOp gemm) -> MaybeShape {
            if (of.shape(0).size() != 2 || of.shape(1).size() != 2)
              return std::nullopt;
            return Shape{of.shape(0)[gemm.getTransposeA() ? 1 : 0],
                         of.shape(1)[gemm.getTransposeB() ? 0 : 1]};
          })
          .Case([&](DequantizeOp) -> MaybeShape { return of.shape(0); })
          .Case([&](DequantizeNBitsOp nbits) -> MaybeShape {
            Shape result = of.shape(0);
            if (result.size() != 2)
              return std::nullopt;
            result.back() *= 8 / static_cast<int64_t>(nbits.getBits());
            return result;
          })
          .Case([&](MatMulNBitsOp nbits) -> MaybeShape {
            Shape result = of.shape(0);
            if (result.empty() || result.back() != static_cast<int64_t>(nbits.getK()))
              return std::nullopt;
            result.back() = nbits.getN();
            return result;
          })
          .Case([&](AttentionOp attention) { return of.attention(attention); })
          .Default([](Operation *) -> MaybeShape { return std::nullopt; });
  // Attention's cache results: only with past_key, whose length is in dimension 2.
  if (auto attention = dyn_cast<AttentionOp>(op)) {
    for (unsigned i = 1; i < results.size(); ++i)
      results[i].shape = std::nullopt;
  }
}
