//===- LinearAttentionOps.cpp - recurrent attention and its convolution ----------===//
#include "compiler/import/onnx/Operators.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;
using llvm::Twine;

namespace {

/// Inputs: query, key, value, past_state, decay, beta.
LogicalResult linearAttention(Node &node) {
  llvm::StringRef rule = node.stringAttr("update_rule", "gated_delta");
  bool isGated = rule == "gated" || rule == "gated_delta";
  bool isDelta = rule == "delta" || rule == "gated_delta";
  if (!isGated && !isDelta && rule != "linear")
    return node.fail("update_rule is '" + rule + "'; supported: linear, gated, delta, gated_delta");
  if (static_cast<bool>(node.input(4)) != isGated || static_cast<bool>(node.input(5)) != isDelta)
    return node.fail("update_rule '" + rule + "' " + (isGated ? "needs" : "has no") +
                     " decay and " + (isDelta ? "needs" : "has no") + " beta");
  node.ignore("chunk_size"); // how it may be computed, not what
  int64_t heads = node.requiredInt("q_num_heads"), kvHeads = node.requiredInt("kv_num_heads");
  if (heads <= 0 || kvHeads <= 0 || heads % kvHeads != 0)
    return node.fail("q_num_heads " + Twine(heads) + " is no multiple of kv_num_heads " +
                     Twine(kvHeads));
  double scale = node.floatAttr("scale", 0);
  Type state = node.input(3) ? node.elementType(3) : node.elementType();
  auto results = node.library(
      "linear_attention", node.elementType(), {node.elementType(), state},
      {node.input(0), node.input(1), node.input(2), node.input(3), node.input(4), node.input(5)},
      {heads, kvHeads}, scale);
  node.set(0, results[0]);
  node.set(1, results[1]);
  return success();
}

/// Inputs: x, weight, bias, past_state.
LogicalResult causalConv(Node &node) {
  llvm::StringRef activation = node.stringAttr("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return node.fail("activation is '" + activation + "'; supported: none, silu, swish");
  if (node.intAttr("ndim", 1) != 1)
    return node.fail("ndim is not 1, which is what is supported");
  Type type = node.elementType();
  auto results = node.library("causal_conv", type, {type, type},
                              {node.input(0), node.input(1), node.input(2), node.input(3)},
                              int64_t(activation != "none"));
  node.set(0, results[0]);
  node.set(1, results[1]);
  return success();
}

} // namespace

void llmc::onnx::addLinearAttentionOps(OperatorTable &table) {
  table.add("", "LinearAttention", {27, 3, 6, 2, linearAttention});
  table.add("", "CausalConvWithState", {27, 2, 4, 2, causalConv});
  table.add("com.microsoft", "LinearAttention", {1, 3, 6, 2, linearAttention});
  table.add("com.microsoft", "CausalConvWithState", {1, 2, 4, 2, causalConv});
}
