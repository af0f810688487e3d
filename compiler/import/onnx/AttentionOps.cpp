//===- AttentionOps.cpp - attention and rotary embedding of ai.onnx -----------===//
#include "compiler/import/onnx/Importer.h"
#include "compiler/import/onnx/Operators.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;
using llvm::Twine;

namespace {

LogicalResult attention(Node &node) {
  bool isCausal = node.boolAttr("is_causal", false);
  FloatAttr scale;
  if (node.has("scale"))
    scale = node.builder.getF32FloatAttr(node.floatAttr("scale", 0));
  float softcap = node.floatAttr("softcap", 0);
  int64_t qHeads = node.intAttr("q_num_heads", 0), kvHeads = node.intAttr("kv_num_heads", 0);
  int64_t mode = node.intAttr("qk_matmul_output_mode", 0);
  int64_t precision = node.intAttr("softmax_precision", 0);
  if (!isa<FloatType>(node.elementType()))
    return node.fail("query is not of floats");
  if (softcap < 0)
    return node.fail("softcap is negative");
  if (mode < 0 || mode > 3)
    return node.fail("qk_matmul_output_mode is " + Twine(mode) + "; it is 0 to 3");
  if (precision != 0 && precision != 1 && precision != 10 && precision != 16 && precision != 11)
    return node.fail("softmax_precision is " + dataTypeName(static_cast<DataType>(precision)) +
                     "; supported: float, float16, bfloat16, double");
  Value past = node.input(4), pastValue = node.input(5);
  if (!past != !pastValue)
    return node.fail("past_key and past_value have to be given together");
  if (node.input(6) && past)
    return node.fail("nonpad_kv_seqlen and past_key can't both be given");
  int64_t left = node.version >= 25 ? node.intAttr("left_window_size", -1) : -1;
  int64_t right = node.version >= 25 ? node.intAttr("right_window_size", -1) : -1;
  if (left < -1 || right < -1)
    return node.fail("a window size is below -1");
  if (node.failed())
    return failure();
  bool givesPresent = node.hasOutput(1) || node.hasOutput(2);
  if (left >= 0 || right >= 0 || (givesPresent && !past)) {
    // What no decoder's export has: it stays as it is.
    llvm::SmallVector<Type> types(1 + (givesPresent ? 2 : 0) + (node.hasOutput(3) ? 1 : 0),
                                  node.elementType());
    auto results =
        node.library("attention", node.elementType(), types,
                     {node.input(0), node.input(1), node.input(2), node.input(3), past, pastValue,
                      node.input(6)},
                     {scale != nullptr, isCausal, qHeads, kvHeads, mode, givesPresent,
                      node.hasOutput(3), left, right},
                     {scale ? scale.getValueAsDouble() : 0.0, static_cast<double>(softcap)});
    node.set(0, results[0]);
    if (givesPresent) {
      node.set(1, results[1]);
      node.set(2, results[2]);
    }
    if (node.hasOutput(3))
      node.set(3, results.back());
    return success();
  }
  Type element = UnrankedTensorType::get(node.elementType());
  Type present = past ? element : Type();
  auto op = AttentionOp::create(node.builder, node.loc, element, present, present,
                                node.hasOutput(3) ? element : Type(), node.input(0), node.input(1),
                                node.input(2), node.input(3), past, pastValue, node.input(6),
                                /*sinks=*/Value(), isCausal, scale, llvm::APFloat(softcap),
                                static_cast<uint64_t>(qHeads), static_cast<uint64_t>(kvHeads),
                                static_cast<uint64_t>(mode), static_cast<uint64_t>(precision));
  node.infer(op);
  node.set(0, op.getY());
  node.set(1, op.getPresentKey());
  node.set(2, op.getPresentValue());
  node.set(3, op.getQk());
  return success();
}

/// The body of an attribute of FlexAttention on the scores or probabilities, if it is there.
FailureOr<Value> modified(Node &node, llvm::StringRef name, Value x) {
  const AttributeView *attribute = node.attribute(name);
  if (!attribute)
    return x;
  auto body = attribute->graph();
  if (!body)
    return node.fail(llvm::toString(body.takeError()));
  auto values = node.importer.inlineBody(node, *body, x);
  if (failed(values))
    return failure();
  if (values->size() != 1 || !isa<TensorType>(values->front().getType()))
    return node.fail(name + " does not give one tensor");
  return values->front();
}

/// q, k, v of rank 4; softmax(score_mod(q k^T * scale)), prob_mod, times v.
LogicalResult flexAttention(Node &node) {
  Type type = node.elementType(), i64 = node.builder.getI64Type();
  int64_t precision = node.intAttr("softmax_precision", 0);
  Type inner = type.isF64() ? type : Type(node.builder.getF32Type());
  if (precision != 0)
    inner = mlirElementType(node.builder.getContext(), static_cast<DataType>(precision));
  if (!inner || !isa<FloatType>(inner) || !isa<FloatType>(type))
    return node.fail("its elements, or softmax_precision, are not floats");
  auto dim = [&](Value x, int64_t i) {
    return node.emit<GatherOp>(i64, node.shapeOf(x), node.indices({i}), uint64_t(0));
  };
  auto join = [&](llvm::ArrayRef<Value> parts) {
    return node.emit<ConcatOp>(i64, ValueRange(parts), int64_t(0));
  };
  Value q = node.input(0), heads = dim(q, 1);
  // Each key head serves as many query heads as there are times more of those.
  auto repeated = [&](Value x) {
    Value times = node.div(heads, dim(x, 1));
    Value wide = node.emit<UnsqueezeOp>(type, x, node.indices({2}));
    Value shape = join({dim(x, 0), dim(x, 1), times, dim(x, 2), dim(x, 3)});
    wide = node.emit<ExpandOp>(type, wide, shape);
    return node.emit<ReshapeOp>(type, wide, join({dim(x, 0), heads, dim(x, 2), dim(x, 3)}), true);
  };
  Value k = repeated(node.input(1)), v = repeated(node.input(2));
  k = node.emit<TransposeOp>(type, k, llvm::ArrayRef<int64_t>{0, 1, 3, 2});
  Value root;
  if (node.has("scale")) {
    root = node.scalar(type, std::sqrt(node.floatAttr("scale", 1)));
  } else {
    Value size = node.cast(node.reshape(dim(q, 3), {}), node.builder.getF32Type());
    root = node.cast(node.unary(UnaryKind::Sqrt, node.unary(UnaryKind::Reciprocal,
                                                            node.unary(UnaryKind::Sqrt, size))),
                     type);
  }
  Value scores = node.cast(node.emit<MatMulOp>(type, node.mul(q, root), node.mul(k, root)), inner);
  auto changed = modified(node, "score_mod", scores);
  if (failed(changed))
    return failure();
  Value p =
      node.emit<SoftmaxOp>(inner, node.cast(*changed, inner), static_cast<uint64_t>(-1), false);
  changed = modified(node, "prob_mod", p);
  if (failed(changed))
    return failure();
  Value y = node.emit<MatMulOp>(inner, node.cast(*changed, inner), node.cast(v, inner));
  node.set(0, node.cast(y, type));
  return success();
}

LogicalResult rotaryEmbedding(Node &node) {
  bool interleaved = node.boolAttr("interleaved", false);
  int64_t heads = node.intAttr("num_heads", 0), size = node.intAttr("rotary_embedding_dim", 0);
  if (auto rank = node.rank(); rank && *rank != 3 && *rank != 4)
    return node.fail("the input has rank " + Twine(*rank) + "; it needs 3 or 4");
  if (node.rank() == 3 && heads <= 0)
    return node.fail("num_heads is needed for an input of rank 3");
  node.set(0, node.emit<RotaryEmbeddingOp>(
                  node.elementType(), node.input(0), node.input(1), node.input(2), node.input(3),
                  interleaved, static_cast<uint64_t>(heads), static_cast<uint64_t>(size)));
  return success();
}

} // namespace

void llmc::onnx::addAttentionOps(OperatorTable &table) {
  table.add("", "Attention", {23, 3, 6, 4, attention});
  table.add("", "Attention", {24, 3, 7, 4, attention});
  table.add("", "Attention", {25, 3, 7, 4, attention});
  table.add("ai.onnx.preview", "FlexAttention", {1, 3, 3, 1, flexAttention});
  table.add("", "RotaryEmbedding", {23, 3, 4, 1, rotaryEmbedding});
}
