//===- MixtureOps.cpp - mixtures of experts of ONNX Runtime's com.microsoft -----===//
#include "compiler/import/onnx/Operators.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;
using llvm::Twine;

namespace {

/// What MoE and QMoE share; the matrices' operands are weights, scales, bias, zero points each.
LogicalResult mixture(Node &node, llvm::ArrayRef<Value> matrices, Value shares,
                      llvm::ArrayRef<int64_t> bits, int64_t block) {
  int64_t k = node.intAttr("k", 1), fusion = node.intAttr("swiglu_fusion", 0);
  llvm::StringRef name = node.stringAttr("activation_type", "relu");
  bool isNormalized = node.boolAttr("normalize_routing_weights", false);
  double alpha = node.floatAttr("activation_alpha", 1), beta = node.floatAttr("activation_beta", 0);
  double limit = node.floatAttr("swiglu_limit", std::numeric_limits<float>::infinity());
  const llvm::StringRef names[] = {"relu", "gelu", "silu", "identity", "swiglu"};
  const auto *found = llvm::find(names, name);
  if (found == std::end(names))
    return node.fail("activation_type '" + name +
                     "' is not known; it is relu, gelu, silu, swiglu or identity");
  bool isGated = name == "swiglu";
  if (fusion < 0 || fusion > 2 || (fusion != 0 && !isGated))
    return node.fail("swiglu_fusion is " + Twine(fusion) + "; it is 0, or 1 or 2 with swiglu");
  if (isGated && (fusion == 0) != static_cast<bool>(matrices[8]))
    return node.fail("swiglu needs fc3_experts_weights, or fc1 and fc3 fused (swiglu_fusion)");
  if (node.boolAttr("use_sparse_mixer", false))
    return node.fail("use_sparse_mixer=1 is not supported; supported: the k largest logits");
  if (!isa<FloatType>(node.elementType()))
    return node.fail("input is not of floats");
  llvm::SmallVector<Value> operands{node.input(0), node.input(1)};
  llvm::append_range(operands, matrices);
  operands.push_back(shares);
  llvm::SmallVector<int64_t> integers{k, found - names, fusion, isNormalized};
  llvm::append_range(integers, bits);
  integers.push_back(block);
  node.set(
      0, node.libraryOne("mixture", node.elementType(), operands, integers, {alpha, beta, limit}));
  return success();
}

/// Inputs: input, router_probs (logits), and of fc1, fc2, fc3 the weights [experts, out, in] and
/// the bias.
LogicalResult moe(Node &node) {
  Value none;
  return mixture(node,
                 {node.input(2), none, node.input(3), none, node.input(4), none, node.input(5),
                  none, node.input(6), none, node.input(7), none},
                 none, {0, 0, 0}, 0);
}

/// Inputs: input, router_probs, weights, scales and bias of fc1, fc2, fc3, their zero points,
/// router_weights; then what only floats of 4 and 8 bits have.
LogicalResult quantizedMoe(Node &node) {
  int64_t bits = node.intAttr("expert_weight_bits", 4), block = node.intAttr("block_size", 0);
  node.ignore("accuracy_level");
  if (llvm::StringRef type = node.stringAttr("quant_type", "int"); type != "int")
    return node.fail("quant_type '" + type + "' is not supported; supported: int");
  if (node.intAttr("weights_prepacked", 0) > 0)
    return node.fail("prepacked weights are not supported; export with weights_prepacked=0");
  llvm::SmallVector<int64_t> each;
  for (llvm::StringRef name : {"fc1", "fc2", "fc3"}) {
    each.push_back(node.intAttr((name + "_expert_weight_bits").str(), 0));
    each.back() = each.back() > 0 ? each.back() : bits;
    if (each.back() != 2 && each.back() != 4 && each.back() != 8)
      return node.fail(Twine(each.back()) + " bits are not supported; supported: 2, 4, 8");
  }
  if (block < 0 || block >= int64_t(1) << 31 ||
      (block > 0 && !llvm::isPowerOf2_64(static_cast<uint64_t>(block))))
    return node.fail("block_size is " + Twine(block) + "; it is 0 or a power of two");
  for (unsigned i = 15; i < node.numInputs(); ++i)
    if (node.input(i))
      return node.fail("scales of activations and of whole matrices are not supported; supported: "
                       "quant_type int without them");
  for (unsigned i : {2u, 5u, 8u}) {
    if (node.input(i) && !node.elementType(i).isUnsignedInteger(8))
      return node.fail("the experts' weights are not of uint8");
    if (node.input(i) && !node.input(i + 1))
      return node.fail("the experts' weights have no scales");
  }
  return mixture(node,
                 {node.input(2), node.input(3), node.input(4), node.input(11), node.input(5),
                  node.input(6), node.input(7), node.input(12), node.input(8), node.input(9),
                  node.input(10), node.input(13)},
                 node.input(14), each, block);
}

} // namespace

void llmc::onnx::addMixtureOps(OperatorTable &table) {
  table.add("com.microsoft", "MoE", {1, 3, 8, 1, moe});
  table.add("com.microsoft", "QMoE", {1, 3, 21, 1, quantizedMoe});
}
