//===- ShapeRulesMath.cpp - indexing, reductions, products and composites -----===//
#include "compiler/import/onnx/ShapeRules.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;
using llvm::Twine;

LogicalResult ShapeRules::rule(GatherOp op) {
  auto from = shape(op.getX()), indices = shape(op.getIndices());
  if (!from)
    return unknown();
  auto at = axis(static_cast<int64_t>(op.getAxis()), static_cast<int64_t>(from->size()));
  if (!at)
    return failure();
  if (!indices)
    return unknown();
  Dim size = (*from)[*at];
  if (const Dims *all = known.elements(op.getIndices()); all && size.isNumber())
    for (Dim index : *all)
      if (index.isNumber() && (index.value < -size.value || index.value >= size.value))
        return report("index " + Twine(index.value) + " is out of range for dimension " +
                      Twine(*at) + " of " + toString(*from));
  Dims dims(from->begin(), from->begin() + *at);
  dims.append(*indices);
  dims.append(from->begin() + *at + 1, from->end());
  return set(std::move(dims));
}

LogicalResult ShapeRules::rule(GatherNDOp op) {
  auto from = shape(op.getX()), indices = shape(op.getIndices());
  if (!from || !indices)
    return unknown();
  int64_t batch = static_cast<int64_t>(op.getBatchDims());
  int64_t rank = static_cast<int64_t>(from->size()),
          tupleRank = static_cast<int64_t>(indices->size());
  if (rank == 0 || tupleRank == 0 || batch < 0 || batch >= rank || batch >= tupleRank)
    return report("batch_dims " + Twine(batch) + " for " + toString(*from) + " and indices " +
                  toString(*indices));
  Dim depth = indices->back();
  if (!depth.isNumber())
    return unknown();
  if (depth.value < 1 || depth.value > rank - batch)
    return report("index vectors of " + Twine(depth.value) + " for " + toString(*from) + " with " +
                  Twine(batch) + " batch dimensions");
  Dims dims(indices->begin(), indices->end() - 1);
  dims.append(from->begin() + batch + depth.value, from->end());
  return set(std::move(dims));
}

LogicalResult ShapeRules::rule(OneHotOp op) {
  auto indices = shape(op.getIndices());
  if (!indices)
    return unknown();
  auto at = axis(static_cast<int64_t>(op.getAxis()), static_cast<int64_t>(indices->size()) + 1);
  if (!at)
    return failure();
  const Dims *depth = known.elements(op.getDepth());
  Dims dims = std::move(*indices);
  dims.insert(dims.begin() + *at, depth && depth->size() == 1 ? depth->front() : Dim());
  return set(std::move(dims));
}

LogicalResult ShapeRules::rule(TopKOp op) {
  auto dims = shape(op.getX());
  if (!dims)
    return unknown();
  auto at = axis(static_cast<int64_t>(op.getAxis()), static_cast<int64_t>(dims->size()));
  if (!at)
    return failure();
  const Dims *k = known.elements(op.getK());
  Dim size = (*dims)[*at];
  (*dims)[*at] = k && k->size() == 1 ? k->front() : Dim();
  if (Dim wanted = (*dims)[*at]; wanted.isNumber() && size.isNumber() && wanted.value > size.value)
    return report("k is " + Twine(wanted.value) + " but dimension " + Twine(*at) + " has only " +
                  Twine(size.value));
  results[0] = *dims;
  results[1] = std::move(*dims);
  return success();
}

LogicalResult ShapeRules::rule(ReduceOp op) {
  auto from = shape(op.getX());
  if (!from)
    return unknown();
  int64_t rank = static_cast<int64_t>(from->size());
  std::optional<llvm::SmallVector<int64_t>> list = llvm::SmallVector<int64_t>();
  if (op.getAxes())
    list = known.numbers(op.getAxes());
  if (!list) {
    auto count = length(op.getAxes());
    if (op.getKeepdims())
      return set(Dims(rank));
    return count && *count > 0 && *count <= rank ? set(Dims(rank - *count)) : unknown();
  }
  if (list->empty() && op.getNoopWithEmptyAxes())
    return set(std::move(*from));
  auto places = axes(*list, rank);
  if (!places)
    return failure();
  Dims dims;
  for (int64_t i = 0; i < rank; ++i) {
    if (!places->empty() && !llvm::is_contained(*places, i))
      dims.push_back((*from)[i]);
    else if (op.getKeepdims())
      dims.push_back(Dim::number(1));
  }
  return set(std::move(dims));
}

LogicalResult ShapeRules::rule(ArgReduceOp op) {
  auto dims = shape(op.getX());
  if (!dims)
    return unknown();
  auto at = axis(static_cast<int64_t>(op.getAxis()), static_cast<int64_t>(dims->size()));
  if (!at)
    return failure();
  if (op.getKeepdims())
    (*dims)[*at] = Dim::number(1);
  else
    dims->erase(dims->begin() + *at);
  return set(std::move(*dims));
}

LogicalResult ShapeRules::rule(MatMulOp op) {
  auto a = shape(op.getA()), b = shape(op.getB());
  if (!a || !b)
    return unknown();
  if (a->empty() || b->empty())
    return report("a scalar in a matrix product");
  // A vector is a row on the left and a column on the right; its extra dimension goes again.
  bool isRow = a->size() == 1, isColumn = b->size() == 1;
  std::string shown = toString(*a) + " and " + toString(*b);
  if (isRow)
    a->insert(a->begin(), Dim::number(1));
  if (isColumn)
    b->push_back(Dim::number(1));
  Dim m = (*a)[a->size() - 2], k = a->back(), k2 = (*b)[b->size() - 2], n = b->back();
  if (k.isNumber() && k2.isNumber() && k.value != k2.value)
    return report("shapes " + shown + " have no matrix product");
  Dims dims(a->begin(), a->end() - 2);
  if (failed(broadcastInto(dims, Dims(b->begin(), b->end() - 2))))
    return failure();
  if (!isRow)
    dims.push_back(m);
  if (!isColumn)
    dims.push_back(n);
  return set(std::move(dims));
}

LogicalResult ShapeRules::rule(GemmOp op) {
  auto a = shape(op.getA()), b = shape(op.getB());
  if (!a || !b)
    return set({Dim(), Dim()});
  if (a->size() != 2 || b->size() != 2)
    return report("shapes " + toString(*a) + " and " + toString(*b) + " are not matrices");
  Dim m = (*a)[op.getTransposeA()], k = (*a)[!op.getTransposeA()];
  Dim n = (*b)[!op.getTransposeB()], k2 = (*b)[op.getTransposeB()];
  if (k.isNumber() && k2.isNumber() && k.value != k2.value)
    return report("shapes " + toString(*a) + " and " + toString(*b) + " have no matrix product");
  return set({m, n});
}

LogicalResult ShapeRules::rule(DequantizeNBitsOp op) {
  auto dims = shape(op.getX());
  if (!dims || dims->size() != 2)
    return set({Dim(), Dim()});
  Dim &bytes = dims->back();
  bytes = bytes.isNumber() ? Dim::number(bytes.value * (8 / static_cast<int64_t>(op.getBits())))
                           : Dim();
  return set(std::move(*dims));
}

LogicalResult ShapeRules::rule(MatMulNBitsOp op) {
  auto dims = shape(op.getA());
  if (!dims)
    return unknown();
  int64_t k = static_cast<int64_t>(op.getK());
  if (dims->empty() || (dims->back().isNumber() && dims->back().value != k))
    return report("rows of " + toString(*dims) + " for K = " + Twine(k));
  dims->back() = Dim::number(static_cast<int64_t>(op.getN()));
  return set(std::move(*dims));
}

LogicalResult ShapeRules::rule(AttentionOp op) {
  auto q = shape(op.getQ()), k = shape(op.getK()), v = shape(op.getV());
  if (!q || !k || !v)
    return unknown();
  if (q->size() != k->size() || q->size() != v->size() || (q->size() != 3 && q->size() != 4))
    return report("q, k, v of shapes " + toString(*q) + ", " + toString(*k) + ", " + toString(*v) +
                  "; they need rank 3 or rank 4");
  int64_t qHeads = static_cast<int64_t>(op.getQNumHeads());
  int64_t kvHeads = static_cast<int64_t>(op.getKvNumHeads());
  // To [batch, heads, length, size].
  auto split = [](const Dims &dims, int64_t heads) -> Dims {
    if (dims.size() == 4)
      return dims;
    Dim size = dims[2].isNumber() && heads > 0 && dims[2].value % heads == 0
                   ? Dim::number(dims[2].value / heads)
                   : Dim();
    return {dims[0], Dim::number(heads), dims[1], size};
  };
  Dims qs = split(*q, qHeads), ks = split(*k, kvHeads), vs = split(*v, kvHeads);
  auto past = op.getPastKey() ? shape(op.getPastKey()) : std::optional<Dims>();
  Dim keys = !op.getPastKey() ? ks[2] : past && past->size() == 4 ? sum((*past)[2], ks[2]) : Dim();
  if (q->size() == 4)
    results[0] = Dims{qs[0], qs[1], qs[2], vs[3]};
  else if (vs[3].isNumber() && vs[3].value < (int64_t(1) << 40) && qHeads < (int64_t(1) << 20))
    results[0] = Dims{qs[0], qs[2], Dim::number(qHeads * vs[3].value)};
  else
    results[0] = Dims{qs[0], qs[2], Dim()};
  unsigned next = 1;
  if (op.getPresentKey())
    results[next++] = Dims{ks[0], ks[1], keys, ks[3]};
  if (op.getPresentValue())
    results[next++] = Dims{vs[0], vs[1], keys, vs[3]};
  if (op.getQk())
    results[next++] = Dims{qs[0], qs[1], qs[2], keys};
  return success();
}

LogicalResult ShapeRules::rule(GroupQueryAttentionOp op) {
  auto query = shape(op.getQuery());
  if (!query)
    return unknown();
  if (query->size() != 3)
    return report("query has the shape " + toString(*query) + "; it needs rank 3");
  constexpr int64_t maxHeads = int64_t(1) << 20;
  int64_t heads = static_cast<int64_t>(op.getNumHeads());
  int64_t kvHeads = static_cast<int64_t>(op.getKvNumHeads());
  if (heads <= 0 || kvHeads <= 0 || heads > maxHeads || kvHeads > maxHeads)
    return report("num_heads " + Twine(heads) + " and kv_num_heads " + Twine(kvHeads) +
                  " are not between 1 and " + Twine(maxHeads));
  // Packed, a row holds query, keys and values of all heads.
  Dim width = query->back();
  int64_t shares = op.getKey() ? heads : heads + 2 * kvHeads;
  Dim size, hidden;
  if (width.isNumber()) {
    if (width.value % shares != 0)
      return report("rows of " + Twine(width.value) + " don't hold " + Twine(shares) +
                    " heads of one size");
    size = Dim::number(width.value / shares);
    hidden = Dim::number(width.value / shares * heads);
  }
  results[0] = Dims{(*query)[0], (*query)[1], hidden};
  unsigned next = 1;
  for (Value present : {Value(op.getPresentKey()), Value(op.getPresentValue())})
    // As long as the longest sequence, or as the buffer that past and present share.
    if (present)
      results[next++] = Dims{(*query)[0], Dim::number(kvHeads), Dim(), size};
  return success();
}
