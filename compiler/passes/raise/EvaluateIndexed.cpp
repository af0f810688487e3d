//===- EvaluateIndexed.cpp - Moving elements: views, gathers, scatters --------===//

#include "compiler/passes/raise/Evaluate.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::graph;
using namespace llmc::raise;

namespace {

/// Calls f(linear index, place) for every place of a shape in row-major order; stops when f gives
/// false.
bool forEachPlace(ArrayRef<int64_t> shape, llvm::function_ref<bool(int64_t, ArrayRef<int64_t>)> f) {
  int64_t count = *countElements(shape);
  Shape place(shape.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    if (!f(i, place))
      return false;
    for (int64_t d = static_cast<int64_t>(shape.size()) - 1; d >= 0 && ++place[d] == shape[d]; --d)
      place[d] = 0;
  }
  return true;
}

int64_t dot(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  int64_t sum = 0;
  for (auto [x, y] : llvm::zip(a, b))
    sum += x * y;
  return sum;
}

/// One computation: operands, the result to fill.
struct Mover {
  ArrayRef<const HostArray *> in;
  HostArray &out;

  const HostArray &x() const { return *in[0]; }

  /// out[place] = x[source(place)]; a negative source means there is no value.
  bool pick(llvm::function_ref<int64_t(ArrayRef<int64_t>)> source) const {
    return forEachPlace(out.shape, [&](int64_t i, ArrayRef<int64_t> place) {
      int64_t from = source(place);
      if (from < 0 || from >= x().size())
        return false;
      out.copy(i, x(), from);
      return true;
    });
  }

  bool reinterpret() const {
    if (out.size() != x().size())
      return false;
    out.floats = x().floats;
    out.ints = x().ints;
    return true;
  }

  bool transpose(ArrayRef<int64_t> perm) const {
    Shape own = stridesOf(x().shape), strides;
    for (int64_t dim : perm)
      strides.push_back(own[dim]);
    return pick([&](ArrayRef<int64_t> place) { return dot(place, strides); });
  }

  bool expand() const {
    Shape own = stridesOf(x().shape), strides(out.shape.size(), 0);
    size_t shift = out.shape.size() - own.size();
    for (size_t i = 0; i < own.size(); ++i)
      strides[i + shift] = x().shape[i] == 1 ? 0 : own[i];
    return pick([&](ArrayRef<int64_t> place) { return dot(place, strides); });
  }

  bool tile() const {
    Shape strides = stridesOf(x().shape);
    return pick([&](ArrayRef<int64_t> place) {
      int64_t from = 0;
      for (auto [i, at] : llvm::enumerate(place))
        from += at % x().shape[i] * strides[i];
      return from;
    });
  }

  bool slice(ArrayRef<SliceRange> ranges) const {
    Shape strides = stridesOf(x().shape);
    return pick([&](ArrayRef<int64_t> place) {
      int64_t from = 0;
      for (auto [i, at] : llvm::enumerate(place))
        from += (ranges[i].start + at * ranges[i].step) * strides[i];
      return from;
    });
  }

  bool concat(int64_t axis) const {
    int64_t outer = *countElements(ArrayRef(out.shape).take_front(axis));
    int64_t inner = *countElements(ArrayRef(out.shape).drop_front(axis + 1));
    int64_t next = 0;
    for (int64_t o = 0; o < outer; ++o)
      for (const HostArray *part : in) {
        int64_t run = part->shape[axis] * inner;
        for (int64_t i = 0; i < run; ++i)
          out.copy(next++, *part, o * run + i);
      }
    return true;
  }

  /// `index` in [-dim, dim), counted from the front, or -1.
  static int64_t wrapIndex(int64_t index, int64_t dim) {
    index = index < 0 ? index + dim : index;
    return index < 0 || index >= dim ? -1 : index;
  }

  bool gather(int64_t axis) const {
    const HostArray &indices = *in[1];
    int64_t inner = *countElements(ArrayRef(x().shape).drop_front(axis + 1));
    int64_t outer = *countElements(ArrayRef(x().shape).take_front(axis)), dim = x().shape[axis],
            next = 0;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t index : indices.ints) {
        int64_t at = wrapIndex(index, dim);
        if (at < 0)
          return false;
        for (int64_t i = 0; i < inner; ++i)
          out.copy(next++, x(), (o * dim + at) * inner + i);
      }
    return true;
  }

  bool gatherElements(int64_t axis) const {
    const HostArray &indices = *in[1];
    Shape strides = stridesOf(x().shape);
    int64_t next = 0;
    return pick([&](ArrayRef<int64_t> place) {
      int64_t at = wrapIndex(indices.ints[next++], x().shape[axis]);
      return at < 0 ? -1 : dot(place, strides) + (at - place[axis]) * strides[axis];
    });
  }

  bool gatherND(int64_t batch) const {
    const HostArray &indices = *in[1];
    Shape strides = stridesOf(x().shape);
    int64_t width = indices.shape.back(), lead = indices.shape.size() - 1;
    int64_t inner = *countElements(ArrayRef(x().shape).drop_front(batch + width)), next = 0;
    return forEachPlace(
        ArrayRef(indices.shape).drop_back(), [&](int64_t row, ArrayRef<int64_t> place) {
          int64_t from = dot(place.take_front(std::min(batch, lead)), strides);
          for (int64_t k = 0; k < width; ++k) {
            int64_t at = wrapIndex(indices.ints[row * width + k], x().shape[batch + k]);
            if (at < 0)
              return false;
            from += at * strides[batch + k];
          }
          for (int64_t i = 0; i < inner; ++i)
            out.copy(next++, x(), from + i);
          return true;
        });
  }

  bool scatterND() const {
    reinterpret();
    const HostArray &indices = *in[1], &updates = *in[2];
    if (indices.shape.empty())
      return false;
    Shape strides = stridesOf(x().shape);
    int64_t width = indices.shape.back();
    if (width > static_cast<int64_t>(x().shape.size()))
      return false;
    int64_t inner = *countElements(ArrayRef(x().shape).drop_front(width));
    int64_t rows = width == 0 ? 0 : indices.size() / width;
    if (updates.size() != rows * inner)
      return false;
    for (int64_t row = 0; row < rows; ++row) {
      int64_t to = 0;
      for (int64_t k = 0; k < width; ++k) {
        int64_t at = wrapIndex(indices.ints[row * width + k], x().shape[k]);
        if (at < 0)
          return false;
        to += at * strides[k];
      }
      for (int64_t i = 0; i < inner; ++i)
        out.copy(to + i, updates, row * inner + i);
    }
    return true;
  }

  bool trilu(int64_t k, bool upper) const {
    int64_t rank = out.shape.size();
    return rank >= 2 && forEachPlace(out.shape, [&](int64_t i, ArrayRef<int64_t> place) {
             int64_t row = place[rank - 2], column = place[rank - 1];
             // column - row is small; k may be any integer.
             bool keep = upper ? column - row >= k : column - row <= k;
             keep ? out.copy(i, x(), i) : out.set(i, int64_t(0));
             return true;
           });
  }

  bool range() const {
    for (int64_t i = 0; i < out.size(); ++i)
      out.isFloat() ? out.set(i, in[0]->floats[0] + static_cast<double>(i) * in[2]->floats[0])
                    : out.set(i, static_cast<int64_t>(static_cast<uint64_t>(in[0]->ints[0]) +
                                                      static_cast<uint64_t>(i) *
                                                          static_cast<uint64_t>(in[2]->ints[0])));
    return true;
  }
};

} // namespace

HostArrayRef llmc::raise::computeIndexed(Operation *op, ArrayRef<const HostArray *> operands,
                                         ArrayRef<int64_t> shape) {
  auto result = std::make_shared<HostArray>(
      cast<TensorType>(op->getResult(0).getType()).getElementType(), shape);
  Mover mover{operands, *result};
  bool ok =
      llvm::TypeSwitch<Operation *, bool>(op)
          .Case<ReshapeOp, FlattenOp, SqueezeOp, UnsqueezeOp>(
              [&](auto) { return mover.reinterpret(); })
          .Case([&](ExpandOp) { return mover.expand(); })
          .Case([&](TileOp) { return mover.tile(); })
          .Case([&](TransposeOp transpose) { return mover.transpose(transpose.getPerm()); })
          .Case([&](ConcatOp concat) {
            return mover.concat(*placeAxis(concat.getAxis(), shape.size()));
          })
          .Case([&](GatherOp gather) {
            return mover.gather(*placeAxis(gather.getAxis(), operands[0]->shape.size()));
          })
          .Case([&](GatherElementsOp gather) {
            auto axis = placeAxis(gather.getAxis(), shape.size());
            return axis && operands[0]->shape.size() == shape.size() && mover.gatherElements(*axis);
          })
          .Case([&](GatherNDOp gather) { return mover.gatherND(gather.getBatchDims()); })
          .Case([&](ScatterNDOp scatter) {
            return scatter.getKind() == ScatterKind::None && mover.scatterND();
          })
          .Case([&](SliceOp slice) {
            SmallVector<Facts> facts;
            for (const HostArray *operand : operands) {
              facts.emplace_back();
              facts.back().data = HostArrayRef(HostArrayRef(), operand); // Not owned.
            }
            auto ranges = sliceRanges(slice, facts, operands[0]->shape);
            return ranges && mover.slice(*ranges);
          })
          .Case([&](TriluOp trilu) {
            if (trilu.getK() && operands[1]->size() != 1)
              return false;
            return mover.trilu(trilu.getK() ? operands[1]->ints[0] : 0, trilu.getUpper());
          })
          .Case([&](RangeOp) { return mover.range(); })
          .Case([&](FillOp fill) {
            HostArrayRef value = fromElements(fill.getValue());
            for (int64_t i = 0; value && i < result->size(); ++i)
              result->copy(i, *value, 0);
            return value != nullptr;
          })
          .Default([](Operation *) { return false; });
  return ok ? result : nullptr;
}
