//===- ContribOps.cpp - attention of ONNX Runtime's com.microsoft -------------===//
//
// Input and attribute lists follow onnxruntime's docs/ContribOperators.md. What is there but not
// handled is refused, never ignored.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/onnx/Operators.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;
using llvm::Twine;

namespace {

/// Inputs: query, key, value, past_key, past_value, seqlens_k, total_sequence_length, cos_cache,
/// sin_cache, position_ids, attention_bias, head_sink, and scales of a quantized cache.
LogicalResult groupQueryAttention(Node &node) {
  int64_t heads = node.requiredInt("num_heads"), kvHeads = node.requiredInt("kv_num_heads");
  float scale = node.floatAttr("scale", 0), softcap = node.floatAttr("softcap", 0);
  int64_t window = node.intAttr("local_window_size", -1);
  bool doRotary = node.boolAttr("do_rotary", false);
  bool interleaved = node.boolAttr("rotary_interleaved", false);
  // -1 is "off", as 0 is.
  bool smooth = node.intAttr("smooth_softmax", 0) > 0;
  if (int64_t output = node.intAttr("qk_output", 0); output != 0)
    return node.fail("qk_output " + Twine(output) + " is not supported; supported: 0 (none)");
  for (llvm::StringRef quant : {"k_quant_type", "v_quant_type"})
    if (llvm::StringRef type = node.stringAttr(quant, "NONE"); type != "NONE")
      return node.fail(quant + " " + type +
                       " is not supported; supported: NONE. Choose the cache's "
                       "type with --kv-cache-dtype");
  node.ignore("kv_cache_bit_width"); // only with a quantized cache
  if (node.input(12) || node.input(13))
    return node.fail("scales of a quantized cache are not supported; choose the cache's type with "
                     "--kv-cache-dtype");
  if (!isa<FloatType>(node.elementType()))
    return node.fail("query is not of floats");
  if (smooth && node.input(11))
    return node.fail("smooth_softmax and head_sink can't both be given");
  if (!node.input(1) != !node.input(2))
    return node.fail("key and value have to be given together, or query holds all three");
  if (!node.input(3) != !node.input(4))
    return node.fail("past_key and past_value have to be given together");
  if (doRotary && (!node.input(7) || !node.input(8)))
    return node.fail("do_rotary needs cos_cache and sin_cache");
  if (window == 0 || window < -1)
    return node.fail("local_window_size is " + Twine(window) + "; it is -1 (none) or positive");
  // Lengths come as [batch], or as [batch, 1] from exporters that keep the reduced dimension.
  Value lengths = node.input(5);
  if (auto rank = node.rank(5); rank && *rank != 1)
    lengths = node.emit<ReshapeOp>(node.elementType(5), lengths, node.indices({-1}), false);
  if (node.failed())
    return failure();
  bool wantsPresent = node.hasOutput(1) || node.hasOutput(2);
  Type element = UnrankedTensorType::get(node.elementType()),
       present = wantsPresent ? element : Type();
  auto op = GroupQueryAttentionOp::create(
      node.builder, node.loc, element, present, present, node.input(0), node.input(1),
      node.input(2), node.input(3), node.input(4), lengths, node.input(6), node.input(7),
      node.input(8), node.input(9), node.input(10), node.input(11), static_cast<uint64_t>(heads),
      static_cast<uint64_t>(kvHeads), llvm::APFloat(scale), llvm::APFloat(softcap),
      static_cast<uint64_t>(window), doRotary, interleaved, smooth);
  node.infer(op);
  node.set(0, op.getY());
  if (wantsPresent) {
    node.set(1, op.getPresentKey());
    node.set(2, op.getPresentValue());
  }
  return success();
}

/// Inputs: query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value,
/// past_sequence_length, cache_indirection.
LogicalResult multiHeadAttention(Node &node) {
  int64_t heads = node.requiredInt("num_heads");
  bool isCausal = node.boolAttr("unidirectional", false);
  float scale = node.floatAttr("scale", 0);
  node.ignore("mask_filter_value"); // of a key_padding_mask, which is refused below
  const char *names[] = {"query",
                         "key",
                         "value",
                         "bias",
                         "key_padding_mask",
                         "attention_bias",
                         "past_key",
                         "past_value",
                         "past_sequence_length",
                         "cache_indirection"};
  for (unsigned i : {3u, 4u, 8u, 9u})
    if (node.input(i))
      return node.fail(
          Twine("input '") + names[i] +
          "' is not supported; supported: query, key, value, attention_bias, past_key, past_value");
  for (unsigned i : {0u, 1u, 2u})
    if (auto rank = node.rank(i); !rank || *rank != 3)
      return node.fail(Twine("input '") + names[i] +
                       "' has no rank of 3; packed forms are not supported");
  if (!node.input(6) != !node.input(7))
    return node.fail("past_key and past_value have to be given together");
  if ((node.hasOutput(1) || node.hasOutput(2)) && !node.input(6))
    return node.fail("present_key and present_value need past_key and past_value");
  if (!isa<FloatType>(node.elementType()))
    return node.fail("query is not of floats");
  if (node.failed())
    return failure();
  Type element = UnrankedTensorType::get(node.elementType());
  Type present = node.input(6) ? element : Type();
  FloatAttr scaleAttr = scale == 0 ? FloatAttr() : node.builder.getF32FloatAttr(scale);
  auto op = AttentionOp::create(node.builder, node.loc, element, present, present, Type(),
                                node.input(0), node.input(1), node.input(2), node.input(5),
                                node.input(6), node.input(7), Value(), /*sinks=*/Value(), isCausal,
                                scaleAttr, llvm::APFloat(0.0f), static_cast<uint64_t>(heads),
                                static_cast<uint64_t>(heads), uint64_t(0), uint64_t(0));
  node.infer(op);
  node.set(0, op.getY());
  node.set(1, op.getPresentKey());
  node.set(2, op.getPresentValue());
  return success();
}

/// Inputs: input, position_ids, cos_cache, sin_cache.
LogicalResult rotaryEmbedding(Node &node) {
  bool interleaved = node.boolAttr("interleaved", false);
  int64_t heads = node.intAttr("num_heads", 0), size = node.intAttr("rotary_embedding_dim", 0);
  if (node.boolAttr("is_packed_batching", false))
    return node.fail("is_packed_batching=1 is not supported");
  if (float scale = node.floatAttr("scale", 1); scale != 1)
    return node.fail("a scale other than 1 is not supported");
  if (auto rank = node.rank(1); !rank || *rank != 2)
    return node.fail("position_ids has to be [batch, sequence]");
  // The number of heads of [batch, sequence, hidden] follows from the width of the cosines if all
  // of a head is rotated.
  auto cosines = node.shapes().shape(node.input(2)), input = node.shapes().shape(node.input(0));
  if (heads == 0 && node.rank() == 3) {
    if (size != 0 || !cosines || cosines->size() != 2 || !cosines->back().isNumber() ||
        cosines->back().value <= 0 || cosines->back().value > INT32_MAX ||
        !input->back().isNumber())
      return node.fail("num_heads is needed");
    heads = input->back().value / (2 * cosines->back().value);
  }
  node.set(0, node.emit<RotaryEmbeddingOp>(
                  node.elementType(), node.input(0), node.input(2), node.input(3), node.input(1),
                  interleaved, static_cast<uint64_t>(heads), static_cast<uint64_t>(size)));
  return success();
}

} // namespace

void llmc::onnx::addContribOps(OperatorTable &table) {
  table.add("com.microsoft", "GroupQueryAttention", {1, 1, 14, 4, groupQueryAttention});
  table.add("com.microsoft", "MultiHeadAttention", {1, 3, 10, 3, multiHeadAttention});
  table.add("com.microsoft", "RotaryEmbedding", {1, 4, 4, 1, rotaryEmbedding});
}
