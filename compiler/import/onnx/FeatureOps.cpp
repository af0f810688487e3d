//===- FeatureOps.cpp - n-grams, and what ai.onnx.ml has for tensors of numbers -===//
#include "compiler/import/onnx/Operators.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;
using llvm::Twine;

namespace {

/// Input: tokens. The pool holds the n-grams by length, ngram_counts where each length begins and
/// ngram_indexes each one's column of the result.
LogicalResult tfIdfVectorizer(Node &node) {
  llvm::StringRef name = node.stringAttr("mode", "");
  int64_t mode = name == "TF" ? 0 : name == "IDF" ? 1 : 2;
  int64_t shortest = node.requiredInt("min_gram_length");
  int64_t longest = node.requiredInt("max_gram_length");
  int64_t skips = node.requiredInt("max_skip_count");
  auto starts = node.intsAttr("ngram_counts"), columns = node.intsAttr("ngram_indexes");
  auto pool = node.intsAttr("pool_int64s");
  auto weights = node.floatsAttr("weights");
  if (node.failed())
    return failure();
  if (node.has("pool_strings"))
    return node.fail("n-grams of strings are not supported; supported: pool_int64s");
  if (mode == 2 && name != "TFIDF")
    return node.fail("mode is '" + name + "'; supported: TF, IDF, TFIDF");
  if (!starts || !columns || !pool)
    return node.fail("ngram_counts, ngram_indexes and pool_int64s are needed");
  if (shortest < 1 || longest < shortest || skips < 0 ||
      longest > static_cast<int64_t>(starts->size()))
    return node.fail("min_gram_length is " + Twine(shortest) + ", max_gram_length " +
                     Twine(longest) + " and max_skip_count " + Twine(skips) +
                     "; they are 1 <= min <= max <= the number of ngram_counts, and at least 0");
  if (!node.elementType().isInteger(32) && !node.elementType().isInteger(64))
    return node.fail("its tokens are neither int32 nor int64");
  int64_t width = 0;
  for (int64_t column : *columns) {
    if (column < 0 || column >= INT32_MAX)
      return node.fail("ngram_indexes has " + Twine(column) + ", which is no column");
    width = std::max(width, column + 1);
  }
  if (weights && static_cast<int64_t>(weights->size()) != width)
    return node.fail("there are " + Twine(weights->size()) + " weights for " + Twine(width) +
                     " columns");
  llvm::SmallVector<int64_t> counts, grams;
  size_t next = 0; // the n-gram's number, by which ngram_indexes counts
  for (size_t i = 0; i < starts->size(); ++i) {
    int64_t begin = (*starts)[i], length = static_cast<int64_t>(i) + 1;
    int64_t end = i + 1 < starts->size() ? (*starts)[i + 1] : static_cast<int64_t>(pool->size());
    if (begin < 0 || end < begin || end > static_cast<int64_t>(pool->size()) ||
        (end - begin) % length != 0 ||
        static_cast<size_t>((end - begin) / length) > columns->size() - next)
      return node.fail(
          "ngram_counts, ngram_indexes and pool_int64s do not fit together at length " +
          Twine(length));
    std::vector<std::vector<int64_t>> sorted;
    for (int64_t at = begin; at < end; at += length) {
      sorted.emplace_back(pool->begin() + at, pool->begin() + at + length);
      sorted.back().push_back((*columns)[next++]);
    }
    llvm::sort(sorted);
    counts.push_back(static_cast<int64_t>(sorted.size()));
    for (const std::vector<int64_t> &gram : sorted)
      llvm::append_range(grams, gram);
  }
  if (next != columns->size())
    return node.fail("ngram_indexes names " + Twine(columns->size()) + " n-grams, the pool has " +
                     Twine(next));
  llvm::SmallVector<int64_t> integers{mode,  shortest, longest,
                                      skips, width,    static_cast<int64_t>(counts.size())};
  llvm::append_range(integers, counts);
  llvm::append_range(integers, grams);
  Type f32 = node.builder.getF32Type();
  Value weighted;
  if (weights)
    weighted = node.constant(DenseElementsAttr::get(RankedTensorType::get({width}, f32),
                                                    llvm::ArrayRef<float>(*weights)));
  node.set(0, node.libraryOne("tfidf", f32, {node.input(0), weighted}, integers));
  return success();
}

/// Columns of the last dimension; a vector counts as one row.
LogicalResult arrayFeatureExtractor(Node &node) {
  auto rank = node.rank();
  if (!rank || *rank == 0)
    return node.fail("X needs a known rank of at least 1");
  Value columns = node.reshape(node.input(1), {-1});
  Value y = node.emit<GatherOp>(node.elementType(), node.input(0), columns,
                                static_cast<uint64_t>(*rank - 1));
  if (*rank == 1)
    y = node.emit<UnsqueezeOp>(node.elementType(), y, node.indices({0}));
  node.set(0, y);
  return success();
}

/// 1 where x is above the threshold, else 0.
LogicalResult binarizer(Node &node) {
  Type type = node.elementType();
  Value threshold = node.scalar(type, node.floatAttr("threshold", 0));
  node.set(0, node.cast(node.compare(CompareKind::Gt, node.input(0), threshold), type));
  return success();
}

} // namespace

void llmc::onnx::addFeatureOps(OperatorTable &table) {
  table.add("", "TfIdfVectorizer", {9, 1, 1, 1, tfIdfVectorizer});
  table.add("ai.onnx.ml", "ArrayFeatureExtractor", {1, 2, 2, 1, arrayFeatureExtractor});
  table.add("ai.onnx.ml", "Binarizer", {1, 1, 1, 1, binarizer});
}
