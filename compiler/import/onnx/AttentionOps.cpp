//===- AttentionOps.cpp - attention and rotary embedding of ai.onnx -----------===//
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
  if ((node.hasOutput(1) || node.hasOutput(2)) && !past)
    return node.fail("present_key and present_value need past_key and past_value");
  if (node.failed())
    return failure();
  Type element = UnrankedTensorType::get(node.elementType());
  Type present = past ? element : Type();
  auto op = AttentionOp::create(node.builder, node.loc, element, present, present,
                                node.hasOutput(3) ? element : Type(), node.input(0), node.input(1),
                                node.input(2), node.input(3), past, pastValue, node.input(6),
                                isCausal, scale, llvm::APFloat(softcap),
                                static_cast<uint64_t>(qHeads), static_cast<uint64_t>(kvHeads),
                                static_cast<uint64_t>(mode), static_cast<uint64_t>(precision));
  node.infer(op);
  node.set(0, op.getY());
  node.set(1, op.getPresentKey());
  node.set(2, op.getPresentValue());
  node.set(3, op.getQk());
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
  table.add("", "RotaryEmbedding", {23, 3, 4, 1, rotaryEmbedding});
}
