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

/// An RMS norm over each head of x [..., heads * size].
Value normHeads(Node &node, Value x, int64_t heads, Value weight, float epsilon) {
  Type type = Node::elementOf(x.getType());
  llvm::SmallVector<int64_t> apart(cast<RankedTensorType>(x.getType()).getRank() - 1, 0);
  llvm::SmallVector<int64_t> together = apart;
  llvm::append_values(apart, heads, int64_t(-1));
  together.push_back(-1);
  Value y = node.emit<RmsNormOp>(type, node.reshape(x, apart), weight, static_cast<uint64_t>(-1),
                                 llvm::APFloat(epsilon));
  return node.reshape(y, together);
}

/// The norms of query and key that a node may bring along; splits a packed query for it.
LogicalResult normQueryAndKey(Node &node, Value &query, Value &key, Value &value, Value queryWeight,
                              Value keyWeight, int64_t heads, int64_t kvHeads, float epsilon) {
  if (!queryWeight != !keyWeight)
    return node.fail("q_norm_weight and k_norm_weight have to be given together");
  if (!queryWeight)
    return success();
  auto type = dyn_cast<RankedTensorType>(query.getType());
  if (!type || type.getRank() < 2 || heads <= 0 || kvHeads <= 0)
    return node.fail("q_norm_weight needs a query of known rank");
  if (!key) {
    int64_t width = type.getShape().back();
    if (ShapedType::isDynamic(width) || width % (heads + 2 * kvHeads) != 0)
      return node.fail("q_norm_weight needs a packed query of a known width that holds the heads");
    int64_t size = width / (heads + 2 * kvHeads);
    llvm::SmallVector<Type> types(3, UnrankedTensorType::get(type.getElementType()));
    auto parts = SplitOp::create(node.builder, node.loc, types, query,
                                 node.indices({heads * size, kvHeads * size, kvHeads * size}),
                                 type.getRank() - 1);
    node.infer(parts);
    query = parts.getParts()[0], key = parts.getParts()[1], value = parts.getParts()[2];
  }
  if (!isa<RankedTensorType>(key.getType()))
    return node.fail("q_norm_weight needs a key of known rank");
  query = normHeads(node, query, heads, queryWeight, epsilon);
  key = normHeads(node, key, kvHeads, keyWeight, epsilon);
  return success();
}

/// Inputs: query, key, value, past_key, past_value, seqlens_k, total_sequence_length, cos_cache,
/// sin_cache, position_ids, attention_bias, head_sink, k_scale, v_scale, q_norm_weight,
/// k_norm_weight. A quantized cache, bidirectional attention and scores as a result are what no
/// decoder's export has: those stay as they are.
LogicalResult groupQueryAttention(Node &node) {
  int64_t heads = node.requiredInt("num_heads"), kvHeads = node.requiredInt("kv_num_heads");
  float scale = node.floatAttr("scale", 0), softcap = node.floatAttr("softcap", 0);
  int64_t window = node.intAttr("local_window_size", -1);
  bool doRotary = node.boolAttr("do_rotary", false);
  bool interleaved = node.boolAttr("rotary_interleaved", false);
  bool isCausal = node.boolAttr("causal", true);
  float epsilon = node.floatAttr("qk_norm_epsilon", 1e-6f);
  // -1 is "off", as 0 is.
  bool smooth = node.intAttr("smooth_softmax", 0) > 0;
  int64_t output = node.intAttr("qk_output", 0);
  if (output < 0 || output > 2 || (output != 0) != node.hasOutput(3))
    return node.fail("qk_output is " + Twine(output) +
                     "; it is 0 (none), or 1 (before the softmax) "
                     "or 2 (behind it) with a fourth output");
  llvm::StringRef keyQuant = node.stringAttr("k_quant_type", "NONE");
  llvm::StringRef valueQuant = node.stringAttr("v_quant_type", "NONE");
  int64_t bits = node.intAttr("kv_cache_bit_width", 8);
  bool isQuantized = keyQuant != "NONE";
  if (isQuantized != (valueQuant != "NONE") || isQuantized != static_cast<bool>(node.input(12)) ||
      isQuantized != static_cast<bool>(node.input(13)))
    return node.fail("k_quant_type, v_quant_type, k_scale and v_scale have to be given together");
  for (llvm::StringRef type : {keyQuant, valueQuant})
    if (type != "NONE" && type != "PER_TENSOR" && type != "PER_CHANNEL")
      return node.fail("quantization type " + type +
                       " is not known; it is NONE, PER_TENSOR or PER_CHANNEL");
  if (isQuantized &&
      (bits != 8 || !node.input(3) || !node.input(4) || !node.elementType(3).isSignlessInteger(8) ||
       !node.elementType(4).isSignlessInteger(8)))
    return node.fail("a quantized cache that is not int8 is not supported; supported: int8 "
                     "past_key and past_value, kv_cache_bit_width 8");
  if (node.boolAttr("sliding_window_cache", false))
    return node.fail("sliding_window_cache=1 is not supported; export with a full-length cache: "
                     "local_window_size is honoured with it");
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
  if (window == 0 || window < -1 || (window > 0 && !isCausal))
    return node.fail("local_window_size is " + Twine(window) +
                     "; it is -1 (none), or positive with causal attention");
  if (heads <= 0 || kvHeads <= 0 || heads % kvHeads != 0)
    return node.fail("num_heads is " + Twine(heads) + ", which is no multiple of kv_num_heads, " +
                     Twine(kvHeads));
  // Lengths come as [batch], or as [batch, 1] from exporters that keep the reduced dimension.
  Value lengths = node.input(5);
  if (auto rank = node.rank(5); rank && *rank != 1)
    lengths = node.emit<ReshapeOp>(node.elementType(5), lengths, node.indices({-1}), false);
  Value query = node.input(0), key = node.input(1), value = node.input(2);
  if (failed(normQueryAndKey(node, query, key, value, node.input(14), node.input(15), heads,
                             kvHeads, epsilon)) ||
      node.failed())
    return failure();
  bool wantsPresent = node.hasOutput(1) || node.hasOutput(2);
  if (isQuantized || !isCausal || output != 0) {
    llvm::SmallVector<Type> types{node.elementType()};
    if (wantsPresent)
      types.append(2, node.input(3) ? node.elementType(3) : node.elementType());
    if (output != 0)
      types.push_back(node.elementType());
    auto results = node.library(
        "group_query_attention", node.elementType(), types,
        {query, key, value, node.input(3), node.input(4), lengths, node.input(6), node.input(7),
         node.input(8), node.input(9), node.input(10), node.input(11), node.input(12),
         node.input(13), Value(), Value()},
        {heads, kvHeads, window, doRotary, interleaved, smooth, wantsPresent, !isCausal, output, 0},
        {static_cast<double>(scale), static_cast<double>(softcap)});
    node.set(0, results[0]);
    if (wantsPresent) {
      node.set(1, results[1]);
      node.set(2, results[2]);
    }
    node.set(3, results.back());
    return success();
  }
  Type element = UnrankedTensorType::get(node.elementType()),
       present = wantsPresent ? element : Type();
  auto op = GroupQueryAttentionOp::create(
      node.builder, node.loc, element, present, present, query, key, value, node.input(3),
      node.input(4), lengths, node.input(6), node.input(7), node.input(8), node.input(9),
      node.input(10), node.input(11), static_cast<uint64_t>(heads), static_cast<uint64_t>(kvHeads),
      llvm::APFloat(scale), llvm::APFloat(softcap), static_cast<uint64_t>(window), doRotary,
      interleaved, smooth);
  node.infer(op);
  node.set(0, op.getY());
  if (wantsPresent) {
    node.set(1, op.getPresentKey());
    node.set(2, op.getPresentValue());
  }
  return success();
}

/// Inputs: query, key, value, past_key, past_value, block_row_indices, block_col_indices,
/// total_sequence_length, key_total_sequence_lengths, cos_cache, sin_cache. A layout of blocks that
/// a head sees, in compressed sparse rows; heads take turns if there are several.
LogicalResult sparseAttention(Node &node) {
  int64_t heads = node.requiredInt("num_heads"), kvHeads = node.requiredInt("kv_num_heads");
  int64_t block = node.requiredInt("sparse_block_size");
  float scale = node.floatAttr("scale", 0);
  bool doRotary = node.boolAttr("do_rotary", false);
  bool interleaved = node.boolAttr("rotary_interleaved", false);
  if (heads <= 0 || kvHeads <= 0 || heads % kvHeads != 0 || block <= 0)
    return node.fail("num_heads is " + Twine(heads) + ", kv_num_heads " + Twine(kvHeads) +
                     " and sparse_block_size " + Twine(block) +
                     "; the first is a multiple of the second, all are positive");
  if (!isa<FloatType>(node.elementType()))
    return node.fail("query is not of floats");
  if (!node.input(1) != !node.input(2))
    return node.fail("key and value have to be given together, or query holds all three");
  if (doRotary && (!node.input(9) || !node.input(10)))
    return node.fail("do_rotary needs cos_cache and sin_cache");
  if (node.failed())
    return failure();
  Value lengths = node.sub(node.input(8), node.scalar(node.elementType(8), 1));
  auto results =
      node.library("group_query_attention", node.elementType(),
                   {node.elementType(), node.elementType(), node.elementType()},
                   {node.input(0), node.input(1), node.input(2), node.input(3), node.input(4),
                    lengths, node.input(7), node.input(9), node.input(10), Value(), Value(),
                    Value(), Value(), Value(), node.input(5), node.input(6)},
                   {heads, kvHeads, -1, doRotary, interleaved, 0, 1, 0, 0, block},
                   {static_cast<double>(scale), 0.0});
  for (unsigned i = 0; i < 3; ++i)
    node.set(i, results[i]);
  return success();
}

/// Inputs: query, key, value, key_cache, value_cache, cumulative_sequence_length, past_seqlens,
/// block_table, cos_cache, sin_cache, slot_mapping, head_sink, q_norm_weight, k_norm_weight,
/// k_scale, v_scale, attention_metadata (bounds for a scheduler, without bearing on the result).
LogicalResult pagedAttention(Node &node) {
  int64_t heads = node.requiredInt("num_heads"), kvHeads = node.requiredInt("kv_num_heads");
  float scale = node.floatAttr("scale", 0), softcap = node.floatAttr("softcap", 0);
  int64_t window = node.intAttr("local_window_size", -1);
  bool doRotary = node.boolAttr("do_rotary", false), isCausal = node.boolAttr("is_causal", true);
  bool interleaved = node.boolAttr("rotary_interleaved", false);
  float epsilon = node.floatAttr("qk_norm_epsilon", 1e-6f);
  for (llvm::StringRef name : {"k_quant_type", "v_quant_type"})
    if (node.stringAttr(name, "NONE") != "NONE")
      return node.fail("a quantized cache is not supported; supported: " + name + " NONE");
  for (llvm::StringRef name : {"k_cache_dtype", "v_cache_dtype"})
    if (llvm::StringRef type = node.stringAttr(name, "");
        !type.empty() && type != "float16" && type != "bfloat16")
      return node.fail(name + " " + type + " is not supported; supported: float16, bfloat16");
  if (node.stringAttr("kv_cache_layout", "SEPARATE") != "SEPARATE" ||
      node.intAttr("v_head_size", 0) != 0 || node.intAttr("rotary_offset", 0) != 0)
    return node.fail(
        "a latent cache is not supported; supported: kv_cache_layout SEPARATE, without "
        "v_head_size and rotary_offset");
  if (heads <= 0 || kvHeads <= 0 || heads % kvHeads != 0)
    return node.fail("num_heads is " + Twine(heads) + ", which is no multiple of kv_num_heads, " +
                     Twine(kvHeads));
  if (!isa<FloatType>(node.elementType()))
    return node.fail("query is not of floats");
  if (!node.input(4) || node.input(14) || node.input(15))
    return node.fail("value_cache is needed, and k_scale and v_scale are not supported");
  if (!node.input(1) != !node.input(2))
    return node.fail("key and value have to be given together, or query holds all three");
  if (doRotary && (!node.input(8) || !node.input(9)))
    return node.fail("do_rotary needs cos_cache and sin_cache");
  Value query = node.input(0), key = node.input(1), value = node.input(2);
  if (failed(normQueryAndKey(node, query, key, value, node.input(12), node.input(13), heads,
                             kvHeads, epsilon)) ||
      node.failed())
    return failure();
  auto results =
      node.library("paged_attention", node.elementType(),
                   {node.elementType(), node.elementType(3), node.elementType(4)},
                   {query, key, value, node.input(3), node.input(4), node.input(5), node.input(6),
                    node.input(7), node.input(8), node.input(9), node.input(10), node.input(11)},
                   {heads, kvHeads, window, doRotary, interleaved, isCausal},
                   {static_cast<double>(scale), static_cast<double>(softcap)});
  for (unsigned i = 0; i < 3; ++i)
    node.set(i, results[i]);
  return success();
}

/// true where a mask of integers [batch, keys] is not 0, as [batch, 1, 1, keys].
Value keyMask(Node &node, Value mask) {
  Type i1 = node.builder.getI1Type();
  return node.emit<UnsqueezeOp>(i1, node.cast(mask, i1), node.indices({1, 2}));
}

/// A mask of keys and a bias of scores as one mask, of the bias's type.
Value maskAndBias(Node &node, Value mask, Value bias) {
  if (!mask || !bias)
    return mask ? mask : bias;
  Type type = Node::elementOf(bias.getType());
  return node.emit<SelectOp>(type, mask, bias,
                             node.scalar(type, -std::numeric_limits<double>::infinity()));
}

/// Inputs: query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value,
/// past_sequence_length, cache_indirection.
LogicalResult multiHeadAttention(Node &node) {
  int64_t heads = node.requiredInt("num_heads");
  bool isCausal = node.boolAttr("unidirectional", false);
  float scale = node.floatAttr("scale", 0);
  node.ignore("mask_filter_value"); // what is masked has no weight, however far down it is pushed
  const char *names[] = {"query", "key", "value"};
  if (node.input(8) || node.input(9))
    return node.fail("past_sequence_length and cache_indirection are not supported; supported: "
                     "query, key, value, bias, key_padding_mask, attention_bias, past_key, "
                     "past_value");
  if (node.input(4) && node.rank(4) != 2)
    return node.fail("key_padding_mask is not [batch, keys]");
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
  // One bias for all three, one after the other.
  Value inputs[] = {node.input(0), node.input(1), node.input(2)};
  if (Value bias = node.input(3)) {
    llvm::SmallVector<int64_t> sizes;
    for (Value x : inputs)
      sizes.push_back(cast<RankedTensorType>(x.getType()).getShape().back());
    if (llvm::any_of(sizes, ShapedType::isDynamic))
      return node.fail("bias needs query, key and value of known widths");
    llvm::SmallVector<Type> types(3, element);
    auto parts = SplitOp::create(node.builder, node.loc, types, bias, node.indices(sizes), 0);
    node.infer(parts);
    for (unsigned i = 0; i < 3; ++i)
      inputs[i] = node.add(inputs[i], parts.getParts()[i]);
  }
  Value mask = node.input(4) ? keyMask(node, node.input(4)) : Value();
  mask = maskAndBias(node, mask, node.input(5));
  FloatAttr scaleAttr = scale == 0 ? FloatAttr() : node.builder.getF32FloatAttr(scale);
  auto op = AttentionOp::create(node.builder, node.loc, element, present, present, Type(),
                                inputs[0], inputs[1], inputs[2], mask, node.input(6), node.input(7),
                                Value(), /*sinks=*/Value(), isCausal, scaleAttr,
                                llvm::APFloat(0.0f), static_cast<uint64_t>(heads),
                                static_cast<uint64_t>(heads), uint64_t(0), uint64_t(0));
  node.infer(op);
  node.set(0, op.getY());
  node.set(1, op.getPresentKey());
  node.set(2, op.getPresentValue());
  return success();
}

/// Inputs: input [batch, sequence, hidden], weights [hidden, 3 * width], bias, mask_index, past,
/// attention_bias, past_sequence_length. What BERT-like encoders become when ONNX Runtime optimises
/// them.
LogicalResult packedAttention(Node &node) {
  int64_t heads = node.requiredInt("num_heads");
  bool isCausal = node.boolAttr("unidirectional", false);
  float scale = node.floatAttr("scale", 0);
  auto widths = node.intsAttr("qkv_hidden_sizes");
  node.ignore("mask_filter_value");
  if (node.input(4) || node.input(6) || node.hasOutput(1) ||
      node.boolAttr("past_present_share_buffer", false))
    return node.fail("past and present are not supported; export with MultiHeadAttention or "
                     "GroupQueryAttention for a cache");
  if (node.boolAttr("do_rotary", false) || node.intAttr("rotary_embedding_dim", 0) != 0)
    return node.fail("do_rotary is not supported; export with RotaryEmbedding");
  if (node.input(3) && node.rank(3) != 2)
    return node.fail("mask_index is not [batch, keys]");
  auto weights = node.input(1) ? dyn_cast<RankedTensorType>(node.input(1).getType()) : nullptr;
  if (!weights || weights.getRank() != 2 || weights.isDynamicDim(1) || node.rank() != 3)
    return node.fail("input needs the rank 3 and weights a known width");
  int64_t width = weights.getDimSize(1) / 3;
  llvm::SmallVector<int64_t> sizes{width, width, weights.getDimSize(1) - 2 * width};
  if (widths)
    sizes = *widths;
  int64_t sum = 0;
  for (int64_t size : sizes) {
    if (heads <= 0 || size <= 0 || size > INT32_MAX || size % heads != 0)
      return node.fail("its projections of " + Twine(size) + " do not hold " + Twine(heads) +
                       " heads");
    sum += size;
  }
  if (sizes.size() != 3 || sum != weights.getDimSize(1))
    return node.fail("qkv_hidden_sizes do not add up to the " + Twine(weights.getDimSize(1)) +
                     " columns of weights");
  if (node.failed())
    return failure();
  Type type = node.elementType(), element = UnrankedTensorType::get(type);
  Value x = node.emit<MatMulOp>(type, node.input(0), node.input(1));
  if (node.input(2))
    x = node.add(x, node.input(2));
  llvm::SmallVector<Type> types(3, element);
  auto parts = SplitOp::create(node.builder, node.loc, types, x, node.indices(sizes), 2);
  node.infer(parts);
  Value mask = node.input(3) ? keyMask(node, node.input(3)) : Value();
  mask = maskAndBias(node, mask, node.input(5));
  auto op = AttentionOp::create(
      node.builder, node.loc, element, Type(), Type(), Type(), parts.getParts()[0],
      parts.getParts()[1], parts.getParts()[2], mask, Value(), Value(), Value(), Value(), isCausal,
      scale == 0 ? FloatAttr() : node.builder.getF32FloatAttr(scale), llvm::APFloat(0.0f),
      static_cast<uint64_t>(heads), static_cast<uint64_t>(heads), uint64_t(0), uint64_t(0));
  node.infer(op);
  node.set(0, op.getY());
  return success();
}

/// alpha * A' B', the last two dimensions swapped where transA, transB say.
LogicalResult fusedMatMul(Node &node) {
  float alpha = node.floatAttr("alpha", 1);
  bool swaps[] = {node.boolAttr("transA", false), node.boolAttr("transB", false)};
  if (node.boolAttr("transBatchA", false) || node.boolAttr("transBatchB", false))
    return node.fail("transBatchA=1 and transBatchB=1 are not supported; use a Transpose");
  Value operands[] = {node.input(0), node.input(1)};
  for (unsigned i = 0; i < 2; ++i) {
    auto rank = node.rank(i);
    if (!swaps[i] || rank == 1) // of a vector there is nothing to swap
      continue;
    if (!rank || *rank == 0)
      return node.fail("an operand to be transposed has no known rank");
    llvm::SmallVector<int64_t> order;
    for (int64_t d = 0; d < *rank; ++d)
      order.push_back(d);
    std::swap(order[*rank - 2], order[*rank - 1]);
    operands[i] = node.emit<TransposeOp>(node.elementType(), operands[i], order);
  }
  Value y = node.emit<MatMulOp>(node.elementType(), operands[0], operands[1]);
  node.set(0, alpha == 1 ? y : node.mul(y, node.scalar(node.elementType(), alpha)));
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
  table.add("com.microsoft", "GroupQueryAttention", {1, 1, 16, 4, groupQueryAttention});
  table.add("com.microsoft", "SparseAttention", {1, 9, 11, 3, sparseAttention});
  table.add("com.microsoft", "PagedAttention", {1, 1, 17, 3, pagedAttention});
  table.add("com.microsoft", "Attention", {1, 2, 7, 2, packedAttention});
  table.add("com.microsoft", "FusedMatMul", {1, 2, 2, 1, fusedMatMul});
  table.add("com.microsoft", "MultiHeadAttention", {1, 3, 10, 3, multiHeadAttention});
  table.add("com.microsoft", "RotaryEmbedding", {1, 4, 4, 1, rotaryEmbedding});
}
