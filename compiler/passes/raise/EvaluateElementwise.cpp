//===- EvaluateElementwise.cpp - Element by element, with broadcast -----------===//

#include "compiler/passes/raise/Evaluate.h"

#include <cmath>

using namespace mlir;
using namespace llmc;
using namespace llmc::graph;
using namespace llmc::raise;

namespace {

/// Where each element of a broadcast result comes from in one operand.
class BroadcastIndex {
public:
  BroadcastIndex(ArrayRef<int64_t> from, ArrayRef<int64_t> to) : shape(to), strides(to.size(), 0) {
    Shape own = stridesOf(from);
    size_t shift = to.size() - from.size();
    for (size_t i = 0; i < from.size(); ++i)
      if (from[i] != 1)
        strides[i + shift] = own[i];
    place.resize(to.size(), 0);
  }

  int64_t next() {
    int64_t result = offset;
    for (int64_t i = static_cast<int64_t>(shape.size()) - 1; i >= 0; --i) {
      offset += strides[i];
      if (++place[i] < shape[i])
        break;
      offset -= strides[i] * shape[i];
      place[i] = 0;
    }
    return result;
  }

private:
  Shape shape, strides, place;
  int64_t offset = 0;
};

} // namespace

static double applyFloat(UnaryKind kind, double x, bool isSingle) {
  // Functions of an f32 are computed in f32, as a run does.
  auto f = [&](auto single, auto twice) {
    return isSingle ? static_cast<double>(single(static_cast<float>(x))) : twice(x);
  };
  switch (kind) {
  case UnaryKind::Neg:
    return -x;
  case UnaryKind::Abs:
    return std::fabs(x);
  case UnaryKind::Exp:
    return f([](float v) { return std::exp(v); }, [](double v) { return std::exp(v); });
  case UnaryKind::Log:
    return f([](float v) { return std::log(v); }, [](double v) { return std::log(v); });
  case UnaryKind::Sqrt:
    return std::sqrt(x);
  case UnaryKind::Reciprocal:
    return 1.0 / x;
  case UnaryKind::Sin:
    return f([](float v) { return std::sin(v); }, [](double v) { return std::sin(v); });
  case UnaryKind::Cos:
    return f([](float v) { return std::cos(v); }, [](double v) { return std::cos(v); });
  case UnaryKind::Tan:
    return std::tan(x);
  case UnaryKind::Tanh:
    return std::tanh(x);
  case UnaryKind::Erf:
    return std::erf(x);
  case UnaryKind::Sigmoid:
    return 1.0 / (1.0 + std::exp(-x));
  case UnaryKind::Relu:
    return x > 0 || std::isnan(x) ? x : 0.0;
  case UnaryKind::Softplus:
    return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
  case UnaryKind::Silu:
    return x / (1.0 + std::exp(-x));
  case UnaryKind::GeluErf:
    return 0.5 * x * (1.0 + std::erf(x * M_SQRT1_2));
  case UnaryKind::GeluTanh:
    return 0.5 * x * (1.0 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  case UnaryKind::Floor:
    return std::floor(x);
  case UnaryKind::Ceil:
    return std::ceil(x);
  case UnaryKind::Round:
    return std::nearbyint(x);
  case UnaryKind::Sign:
    return x > 0 ? 1.0 : x < 0 ? -1.0 : x;
  default:
    return std::nan("");
  }
}

static HostArrayRef computeUnary(UnaryOp op, const HostArray &x, ArrayRef<int64_t> shape) {
  UnaryKind kind = op.getKind();
  auto result = std::make_shared<HostArray>(cast<TensorType>(op.getType()).getElementType(), shape);
  bool isSingle = x.type.isF32();
  for (int64_t i = 0, n = x.size(); i < n; ++i) {
    if (kind == UnaryKind::IsNaN)
      result->ints[i] = x.isFloat() && std::isnan(x.floats[i]);
    else if (kind == UnaryKind::IsInf)
      result->ints[i] = x.isFloat() && std::isinf(x.floats[i]);
    else if (kind == UnaryKind::Not)
      result->ints[i] = !x.ints[i];
    else if (x.isFloat())
      result->set(i, applyFloat(kind, x.floats[i], isSingle));
    else if (kind == UnaryKind::Neg)
      result->set(i, static_cast<int64_t>(-static_cast<uint64_t>(x.ints[i])));
    else if (kind == UnaryKind::Abs)
      result->set(i, x.ints[i] < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(x.ints[i]))
                                   : x.ints[i]);
    else if (kind == UnaryKind::Sign)
      result->set(i, int64_t(x.ints[i] > 0) - int64_t(x.ints[i] < 0));
    else if (kind == UnaryKind::BitNot)
      result->set(i, ~x.ints[i]);
    else if (kind == UnaryKind::Relu)
      result->set(i, std::max<int64_t>(x.ints[i], 0));
    else
      return nullptr;
  }
  return result;
}

static double applyFloat(BinaryKind kind, double a, double b) {
  switch (kind) {
  case BinaryKind::Add:
    return a + b;
  case BinaryKind::Sub:
    return a - b;
  case BinaryKind::Mul:
    return a * b;
  case BinaryKind::Div:
    return a / b;
  case BinaryKind::Pow:
    return std::pow(a, b);
  case BinaryKind::FMod:
    return std::fmod(a, b);
  case BinaryKind::Mod: {
    double rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
  case BinaryKind::Min:
    return std::isnan(a) || std::isnan(b) ? std::nan("") : std::min(a, b);
  case BinaryKind::Max:
    return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b);
  default:
    return std::nan("");
  }
}

/// Integers wrap; division by zero has no value.
static std::optional<int64_t> applyInteger(BinaryKind kind, int64_t a, int64_t b) {
  auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  bool overflowsDivision = a == INT64_MIN && b == -1;
  switch (kind) {
  case BinaryKind::Add:
    return static_cast<int64_t>(ua + ub);
  case BinaryKind::Sub:
    return static_cast<int64_t>(ua - ub);
  case BinaryKind::Mul:
    return static_cast<int64_t>(ua * ub);
  case BinaryKind::Div:
    if (b == 0)
      return std::nullopt;
    return overflowsDivision ? a : a / b;
  case BinaryKind::Mod:
  case BinaryKind::FMod: {
    if (b == 0)
      return std::nullopt;
    int64_t rest = overflowsDivision ? 0 : a % b;
    return kind == BinaryKind::Mod && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
  case BinaryKind::Pow: {
    if (b < 0)
      return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    uint64_t result = 1;
    for (; ub; ub >>= 1, ua *= ua)
      if (ub & 1)
        result *= ua;
    return static_cast<int64_t>(result);
  }
  case BinaryKind::Min:
    return std::min(a, b);
  case BinaryKind::Max:
    return std::max(a, b);
  case BinaryKind::And:
    return a && b;
  case BinaryKind::Or:
    return a || b;
  case BinaryKind::Xor:
    return (a != 0) != (b != 0);
  case BinaryKind::BitAnd:
    return a & b;
  case BinaryKind::BitOr:
    return a | b;
  case BinaryKind::BitXor:
    return a ^ b;
  case BinaryKind::ShiftLeft:
    return ub < 64 ? static_cast<int64_t>(ua << ub) : 0;
  case BinaryKind::ShiftRight:
    return ub < 64 ? static_cast<int64_t>(ua >> ub) : 0;
  }
  return std::nullopt;
}

static bool compare(CompareKind kind, auto a, auto b) {
  switch (kind) {
  case CompareKind::Eq:
    return a == b;
  case CompareKind::Ne:
    return a != b;
  case CompareKind::Lt:
    return a < b;
  case CompareKind::Le:
    return a <= b;
  case CompareKind::Gt:
    return a > b;
  case CompareKind::Ge:
    return a >= b;
  }
  return false;
}

HostArrayRef llmc::raise::computeElementwise(Operation *op, ArrayRef<const HostArray *> operands,
                                             ArrayRef<int64_t> shape) {
  if (auto unary = dyn_cast<UnaryOp>(op))
    return computeUnary(unary, *operands[0], shape);
  auto result = std::make_shared<HostArray>(
      cast<TensorType>(op->getResult(0).getType()).getElementType(), shape);
  int64_t n = result->size();
  const HostArray &a = *operands[0];
  if (isa<CastOp>(op)) {
    for (int64_t i = 0; i < n; ++i)
      a.isFloat() ? result->set(i, a.floats[i]) : result->set(i, a.ints[i]);
    return result;
  }
  if (auto clip = dyn_cast<ClipOp>(op)) {
    unsigned next = 1;
    const HostArray *low = clip.getLow() ? operands[next++] : nullptr;
    const HostArray *high = clip.getHigh() ? operands[next] : nullptr;
    if ((low && low->size() != 1) || (high && high->size() != 1))
      return nullptr;
    for (int64_t i = 0; i < n; ++i) {
      if (a.isFloat()) {
        double x = a.floats[i];
        x = low && x < low->floats[0] ? low->floats[0] : x;
        result->floats[i] = high && x > high->floats[0] ? high->floats[0] : x;
      } else {
        int64_t x = a.ints[i];
        x = low ? std::max(x, low->ints[0]) : x;
        result->ints[i] = high ? std::min(x, high->ints[0]) : x;
      }
    }
    return result;
  }
  BroadcastIndex ia(a.shape, shape), ib(operands[1]->shape, shape);
  const HostArray &b = *operands[1];
  if (isa<SelectOp>(op)) {
    const HostArray &c = *operands[2];
    BroadcastIndex ic(c.shape, shape);
    for (int64_t i = 0; i < n; ++i) {
      int64_t at = ia.next(), yes = ib.next(), no = ic.next();
      a.ints[at] ? result->copy(i, b, yes) : result->copy(i, c, no);
    }
    return result;
  }
  if (auto relation = dyn_cast<CompareOp>(op)) {
    for (int64_t i = 0; i < n; ++i) {
      int64_t at = ia.next(), bt = ib.next();
      result->ints[i] = a.isFloat() ? compare(relation.getKind(), a.floats[at], b.floats[bt])
                                    : compare(relation.getKind(), a.ints[at], b.ints[bt]);
    }
    return result;
  }
  auto binary = dyn_cast<BinaryOp>(op);
  if (!binary)
    return nullptr;
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = ia.next(), bt = ib.next();
    if (a.isFloat()) {
      result->set(i, applyFloat(binary.getKind(), a.floats[at], b.floats[bt]));
      continue;
    }
    auto value = applyInteger(binary.getKind(), a.ints[at], b.ints[bt]);
    if (!value)
      return nullptr;
    result->set(i, *value);
  }
  return result;
}
