//===- EvaluateReductions.cpp - Reductions, running sums, matrix products -----===//

#include "compiler/passes/raise/Evaluate.h"

#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace llmc;
using namespace llmc::graph;
using namespace llmc::raise;

/// The value that a reduction of nothing gives.
static double neutral(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::Max:
    return -INFINITY;
  case ReduceKind::Min:
    return INFINITY;
  case ReduceKind::Prod:
    return 1;
  default:
    return 0;
  }
}

static void reduceFloats(ReduceOp op, const HostArray &x, HostArray &out,
                         ArrayRef<int64_t> target) {
  int64_t perResult = out.size() ? x.size() / std::max<int64_t>(out.size(), 1) : 0;
  std::vector<double> sums(out.size(), neutral(op.getKind()));
  for (int64_t i = 0; i < x.size(); ++i) {
    double value = x.floats[i], &sum = sums[target[i]];
    switch (op.getKind()) {
    case ReduceKind::Sum:
    case ReduceKind::Mean:
      sum += value;
      break;
    case ReduceKind::SumSquare:
    case ReduceKind::L2:
      sum += value * value;
      break;
    case ReduceKind::L1:
      sum += std::fabs(value);
      break;
    case ReduceKind::Max:
      sum = std::isnan(value) ? value : std::max(sum, value);
      break;
    case ReduceKind::Min:
      sum = std::isnan(value) ? value : std::min(sum, value);
      break;
    case ReduceKind::Prod:
      sum *= value;
      break;
    default:
      return;
    }
  }
  for (int64_t i = 0; i < out.size(); ++i)
    out.set(i, op.getKind() == ReduceKind::Mean ? sums[i] / static_cast<double>(perResult)
               : op.getKind() == ReduceKind::L2 ? std::sqrt(sums[i])
                                                : sums[i]);
}

static HostArrayRef computeReduce(ReduceOp op, ArrayRef<Facts> operands, ArrayRef<int64_t> shape) {
  const HostArray &x = *operands[0].data;
  auto axes = reducedAxes(op, operands, x.shape.size());
  if (!axes)
    return nullptr;
  auto result = std::make_shared<HostArray>(x.type, shape);
  // Strides of the result along x's dimensions, 0 along reduced ones.
  Shape strides(x.shape.size(), 0);
  int64_t stride = 1;
  for (int64_t i = static_cast<int64_t>(x.shape.size()) - 1; i >= 0; --i)
    if (!(*axes)[i]) {
      strides[i] = stride;
      stride *= x.shape[i];
    }
  std::vector<int64_t> target(x.size());
  Shape place(x.shape.size(), 0);
  for (int64_t i = 0; i < x.size(); ++i) {
    int64_t to = 0;
    for (size_t d = 0; d < place.size(); ++d)
      to += place[d] * strides[d];
    target[i] = to;
    for (int64_t d = static_cast<int64_t>(place.size()) - 1; d >= 0 && ++place[d] == x.shape[d];
         --d)
      place[d] = 0;
  }
  if (x.isFloat()) {
    reduceFloats(op, x, *result, target);
    return op.getKind() > ReduceKind::L2 ? nullptr : result;
  }
  ReduceKind kind = op.getKind();
  std::vector<int64_t> sums(result->size(), kind == ReduceKind::Max    ? INT64_MIN
                                            : kind == ReduceKind::Min  ? INT64_MAX
                                            : kind == ReduceKind::Prod ? 1
                                                                       : 0);
  for (int64_t i = 0; i < x.size(); ++i) {
    int64_t value = x.ints[i], &sum = sums[target[i]];
    if (kind == ReduceKind::Sum)
      sum = static_cast<int64_t>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(value));
    else if (kind == ReduceKind::Prod)
      sum = static_cast<int64_t>(static_cast<uint64_t>(sum) * static_cast<uint64_t>(value));
    else if (kind == ReduceKind::Max)
      sum = std::max(sum, value);
    else if (kind == ReduceKind::Min)
      sum = std::min(sum, value);
    else
      return nullptr;
  }
  for (int64_t i = 0; i < result->size(); ++i)
    result->set(i, sums[i]);
  return result;
}

static HostArrayRef computeCumSum(CumSumOp op, ArrayRef<Facts> operands) {
  const HostArray &x = *operands[0].data, &axisValue = *operands[1].data;
  auto axis = axisValue.size() == 1 ? placeAxis(axisValue.ints[0], x.shape.size()) : std::nullopt;
  if (!axis)
    return nullptr;
  auto result = std::make_shared<HostArray>(x.type, x.shape);
  int64_t inner = *countElements(ArrayRef(x.shape).drop_front(*axis + 1)), dim = x.shape[*axis];
  int64_t outer = *countElements(ArrayRef(x.shape).take_front(*axis));
  for (int64_t line = 0; line < outer * inner; ++line) {
    int64_t base = line / inner * dim * inner + line % inner;
    double sum = 0;
    int64_t whole = 0;
    for (int64_t k = 0; k < dim; ++k) {
      int64_t i = base + (op.getReverse() ? dim - 1 - k : k) * inner;
      if (op.getExclusive())
        x.isFloat() ? result->set(i, sum) : result->set(i, whole);
      if (x.isFloat())
        sum += x.floats[i];
      else
        whole =
            static_cast<int64_t>(static_cast<uint64_t>(whole) + static_cast<uint64_t>(x.ints[i]));
      if (!op.getExclusive())
        x.isFloat() ? result->set(i, sum) : result->set(i, whole);
    }
  }
  return result;
}

/// Products summed in f32 for f32, in the order of k: for outer products (the rotary angles) the
/// exact f32 product.
static HostArrayRef computeMatMul(MatMulOp op, const HostArray &a, const HostArray &b,
                                  ArrayRef<int64_t> shape) {
  if (a.shape.size() < 2 || b.shape.size() < 2)
    return nullptr;
  int64_t m = a.shape[a.shape.size() - 2], k = a.shape.back(), n = b.shape.back();
  auto batchA = ArrayRef(a.shape).drop_back(2), batchB = ArrayRef(b.shape).drop_back(2);
  auto batch = shape.drop_back(2);
  auto result = std::make_shared<HostArray>(a.type, shape);
  int64_t batches = *countElements(batch);
  if (batches * m * n * std::max<int64_t>(k, 1) > (int64_t(1) << 24))
    return nullptr;
  Shape place(batch.size(), 0);
  auto offset = [&](ArrayRef<int64_t> own) {
    Shape strides = stridesOf(own);
    int64_t at = 0, shift = batch.size() - own.size();
    for (size_t i = 0; i < own.size(); ++i)
      at += own[i] == 1 ? 0 : place[i + shift] * strides[i];
    return at;
  };
  for (int64_t z = 0; z < batches; ++z) {
    int64_t baseA = offset(batchA) * m * k, baseB = offset(batchB) * k * n, base = z * m * n;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        uint64_t whole = 0;
        for (int64_t l = 0; l < k; ++l)
          if (a.isFloat())
            sum = roundTo(a.type, sum + roundTo(a.type, a.floats[baseA + i * k + l] *
                                                            b.floats[baseB + l * n + j]));
          else
            whole += static_cast<uint64_t>(a.ints[baseA + i * k + l]) *
                     static_cast<uint64_t>(b.ints[baseB + l * n + j]);
        a.isFloat() ? result->set(base + i * n + j, sum)
                    : result->set(base + i * n + j, static_cast<int64_t>(whole));
      }
    for (int64_t d = static_cast<int64_t>(batch.size()) - 1; d >= 0 && ++place[d] == batch[d]; --d)
      place[d] = 0;
  }
  return result;
}

HostArrayRef llmc::raise::computeReduction(Operation *op, ArrayRef<Facts> operands,
                                           ArrayRef<int64_t> shape) {
  return llvm::TypeSwitch<Operation *, HostArrayRef>(op)
      .Case([&](ReduceOp reduce) { return computeReduce(reduce, operands, shape); })
      .Case([&](CumSumOp sum) { return computeCumSum(sum, operands); })
      .Case([&](MatMulOp matmul) {
        return computeMatMul(matmul, *operands[0].data, *operands[1].data, shape);
      })
      .Default([](Operation *) { return nullptr; });
}
