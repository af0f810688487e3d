//===- KnownElements.cpp - elements of small integer tensors ------------------===//
#include "compiler/import/onnx/ShapeInference.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;
using llvm::Twine;

/// Shapes and indices are short; longer tensors are data.
static constexpr int64_t maxElements = 64;

static std::optional<Dims> constantElements(ElementsAttr value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || type.getRank() > 1 || type.getNumElements() > maxElements ||
      !isa<IntegerType>(type.getElementType()))
    return std::nullopt;
  bool isSigned = !type.getElementType().isUnsignedInteger() && !type.getElementType().isInteger(1);
  Dims elements;
  for (const APInt &element : value.getValues<APInt>())
    elements.push_back(Dim::number(isSigned ? element.getSExtValue()
                                            : static_cast<int64_t>(element.getZExtValue())));
  return elements;
}

/// Python's floor division for a remainder with the divisor's sign.
static int64_t floorMod(int64_t a, int64_t b) {
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static Dim binaryElement(BinaryKind kind, Dim a, Dim b, llvm::function_ref<Dim(Dim, Dim)> sum,
                         llvm::function_ref<Dim(Dim, Dim)> difference) {
  if (a.isNumber() && b.isNumber()) {
    int64_t result;
    bool divides = b.value != 0 && !(b.value == -1 && a.value == INT64_MIN);
    switch (kind) {
    case BinaryKind::Add:
      return llvm::AddOverflow(a.value, b.value, result) ? Dim() : Dim::number(result);
    case BinaryKind::Sub:
      return llvm::SubOverflow(a.value, b.value, result) ? Dim() : Dim::number(result);
    case BinaryKind::Mul:
      return llvm::MulOverflow(a.value, b.value, result) ? Dim() : Dim::number(result);
    case BinaryKind::Div:
      return divides ? Dim::number(a.value / b.value) : Dim();
    case BinaryKind::Mod:
      return divides ? Dim::number(floorMod(a.value, b.value)) : Dim();
    case BinaryKind::Min:
      return Dim::number(std::min(a.value, b.value));
    case BinaryKind::Max:
      return Dim::number(std::max(a.value, b.value));
    case BinaryKind::And:
      return Dim::number(a.value && b.value);
    case BinaryKind::Or:
      return Dim::number(a.value || b.value);
    default:
      return {};
    }
  }
  switch (kind) {
  case BinaryKind::Add:
    return sum(a, b);
  case BinaryKind::Sub:
    return b.is(0) ? a : difference(a, b);
  case BinaryKind::Mul:
    return a.is(1) ? b : b.is(1) ? a : a.is(0) || b.is(0) ? Dim::number(0) : Dim();
  case BinaryKind::Div:
    return b.is(1) ? a : Dim();
  case BinaryKind::Min:
  case BinaryKind::Max:
    return a.same(b) ? a : Dim();
  default:
    return {};
  }
}

static Dim compareElement(CompareKind kind, Dim a, Dim b) {
  auto truth = [](bool value) { return Dim::number(value); };
  if (a.isNumber() && b.isNumber())
    switch (kind) {
    case CompareKind::Eq:
      return truth(a.value == b.value);
    case CompareKind::Ne:
      return truth(a.value != b.value);
    case CompareKind::Lt:
      return truth(a.value < b.value);
    case CompareKind::Le:
      return truth(a.value <= b.value);
    case CompareKind::Gt:
      return truth(a.value > b.value);
    case CompareKind::Ge:
      return truth(a.value >= b.value);
    }
  // A symbol is not negative; that is how the "expand with -1" idiom of PyTorch is seen through.
  bool differ = (a.kind == Dim::Symbol && b.isNumber() && b.value < 0) ||
                (b.kind == Dim::Symbol && a.isNumber() && a.value < 0);
  if (kind == CompareKind::Eq && (a.same(b) || differ))
    return truth(!differ);
  if (kind == CompareKind::Ne && (a.same(b) || differ))
    return truth(differ);
  return {};
}

/// Element i of a tensor that is broadcast to \p size elements.
static Dim at(const Dims &elements, size_t i) { return elements[elements.size() == 1 ? 0 : i]; }

/// The common size of elements that broadcast with each other; none if they don't.
static std::optional<size_t> commonSize(std::initializer_list<const Dims *> all) {
  size_t size = 1;
  for (const Dims *one : all)
    if (one && one->size() != 1)
      size = one->size();
  for (const Dims *one : all)
    if (!one || (one->size() != 1 && one->size() != size))
      return std::nullopt;
  return size;
}

Dim ShapeInference::sum(Dim a, Dim b) const {
  if (a.isNumber() && b.isNumber()) {
    int64_t result;
    return llvm::AddOverflow(a.value, b.value, result) ? Dim() : Dim::number(result);
  }
  if (a.is(0))
    return b;
  if (b.is(0))
    return a;
  // The sum of symbols is a symbol of its own, the same one for the same sum in either order. A
  // negative number could take it below zero, which no symbol may be.
  auto isCount = [](Dim dim) {
    return dim.kind == Dim::Symbol || (dim.isNumber() && dim.value > 0);
  };
  if (!isCount(a) || !isCount(b))
    return {};
  auto text = [](Dim dim) {
    return (dim.isNumber() ? Twine(dim.value) : "#" + Twine(dim.value)).str();
  };
  std::string x = text(a), y = text(b);
  if (y < x)
    std::swap(x, y);
  // A name from a model begins with '=', so the sum can't be taken for one.
  std::string key = "+" + x + "+" + y;
  int64_t id = symbols.try_emplace(key, static_cast<int64_t>(symbols.size())).first->second;
  sums[id] = {a, b};
  return Dim::symbol(id);
}

Dim ShapeInference::difference(Dim a, Dim b) const {
  if (b.is(0) && (a.kind == Dim::Symbol || a.value >= 0))
    return a;
  if (a.same(b))
    return Dim::number(0);
  if (a.kind == Dim::Symbol)
    if (auto found = sums.find(a.value); found != sums.end()) {
      if (found->second.first.same(b))
        return found->second.second;
      if (found->second.second.same(b))
        return found->second.first;
    }
  return {};
}

std::optional<Dims> ShapeInference::inferElements(Operation *op) const {
  using Result = std::optional<Dims>;
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  // What follows is about rank 0 and 1 only, where row-major order is the order of the elements.
  if (!type || type.getRank() > 1 || !isa<IntegerType>(type.getElementType()))
    return std::nullopt;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](ConstantOp constant) { return constantElements(constant.getValue()); })
      .Case([&](ShapeOp shapeOp) -> Result {
        Result dims = shape(shapeOp.getX());
        if (!dims)
          return std::nullopt;
        int64_t rank = static_cast<int64_t>(dims->size());
        auto place = [&](int64_t bound) {
          return std::clamp<int64_t>(bound < 0 ? bound + rank : bound, 0, rank);
        };
        int64_t start = place(static_cast<int64_t>(shapeOp.getStart()));
        int64_t end = shapeOp.getEnd() ? place(static_cast<int64_t>(*shapeOp.getEnd())) : rank;
        return Dims(dims->begin() + start, dims->begin() + std::max(start, end));
      })
      .Case<CastOp, SqueezeOp, UnsqueezeOp, ReshapeOp, FlattenOp>([&](auto view) -> Result {
        // To a narrower type only what fits stays; symbols are dimensions and fit 32 bits or more.
        const Dims *x = elements(view.getX());
        unsigned width = type.getElementType().getIntOrFloatBitWidth();
        if (!x || width < 32)
          return std::nullopt;
        Dims copy = *x;
        for (Dim &dim : copy)
          if (dim.isNumber() && !llvm::isIntN(width, dim.value))
            dim = {};
        return copy;
      })
      .Case([&](ConcatOp concat) -> Result {
        Dims all;
        for (Value part : concat.getParts()) {
          const Dims *x = elements(part);
          if (!x || static_cast<int64_t>(all.size() + x->size()) > maxElements)
            return std::nullopt;
          all.append(*x);
        }
        return all;
      })
      .Case([&](GatherOp gather) -> Result {
        const Dims *x = elements(gather.getX());
        const Dims *indices = elements(gather.getIndices());
        if (!x || !indices || cast<TensorType>(gather.getX().getType()).getShape().size() != 1)
          return std::nullopt;
        Dims picked;
        int64_t size = static_cast<int64_t>(x->size());
        for (Dim index : *indices) {
          int64_t i = index.value + (index.value < 0 ? size : 0);
          if (!index.isNumber() || i < 0 || i >= size)
            return std::nullopt;
          picked.push_back((*x)[i]);
        }
        return picked;
      })
      .Case([&](SliceOp slice) -> Result {
        const Dims *x = elements(slice.getX());
        auto starts = numbers(slice.getStarts()), ends = numbers(slice.getEnds());
        auto steps = slice.getSteps() ? numbers(slice.getSteps())
                                      : std::optional(llvm::SmallVector<int64_t>{1});
        if (!x || !starts || !ends || !steps || starts->size() != 1 || ends->size() != 1 ||
            steps->size() != 1 || steps->front() != 1)
          return std::nullopt;
        int64_t size = static_cast<int64_t>(x->size());
        auto place = [&](int64_t bound) {
          return std::clamp<int64_t>(bound < 0 ? bound + size : bound, 0, size);
        };
        int64_t start = place(starts->front()), end = place(ends->front());
        return Dims(x->begin() + start, x->begin() + std::max(start, end));
      })
      .Case([&](FillOp fill) -> Result {
        if (!type.hasStaticShape() || type.getNumElements() > maxElements)
          return std::nullopt;
        Result value = constantElements(fill.getValue());
        return value && value->size() == 1 ? Result(Dims(type.getNumElements(), value->front()))
                                           : std::nullopt;
      })
      .Case([&](BinaryOp binary) -> Result {
        const Dims *a = elements(binary.getA()), *b = elements(binary.getB());
        auto size = commonSize({a, b});
        if (!size)
          return std::nullopt;
        Dims result;
        for (size_t i = 0; i < *size; ++i)
          result.push_back(binaryElement(
              binary.getKind(), at(*a, i), at(*b, i), [&](Dim x, Dim y) { return sum(x, y); },
              [&](Dim x, Dim y) { return difference(x, y); }));
        return result;
      })
      .Case([&](CompareOp compare) -> Result {
        const Dims *a = elements(compare.getA()), *b = elements(compare.getB());
        auto size = commonSize({a, b});
        if (!size)
          return std::nullopt;
        Dims result;
        for (size_t i = 0; i < *size; ++i)
          result.push_back(compareElement(compare.getKind(), at(*a, i), at(*b, i)));
        return result;
      })
      .Case([&](SelectOp select) -> Result {
        const Dims *condition = elements(select.getCondition());
        const Dims *a = elements(select.getA()), *b = elements(select.getB());
        auto size = commonSize({condition, a, b});
        if (!size)
          return std::nullopt;
        Dims result;
        for (size_t i = 0; i < *size; ++i) {
          Dim c = at(*condition, i), x = at(*a, i), y = at(*b, i);
          result.push_back(c.isNumber() ? (c.value ? x : y) : x.same(y) ? x : Dim());
        }
        return result;
      })
      .Default([](Operation *) { return std::nullopt; });
}

const Dims *ShapeInference::elements(Value value) const {
  auto found = known.find(value);
  return found == known.end() ? nullptr : &found->second;
}

std::optional<llvm::SmallVector<int64_t>> ShapeInference::numbers(Value value) const {
  const Dims *dims = elements(value);
  if (!dims)
    return std::nullopt;
  llvm::SmallVector<int64_t> result;
  for (Dim dim : *dims) {
    if (!dim.isNumber())
      return std::nullopt;
    result.push_back(dim.value);
  }
  return result;
}
