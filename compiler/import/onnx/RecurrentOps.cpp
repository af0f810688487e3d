//===- RecurrentOps.cpp - RNN, GRU, LSTM ----------------------------------------===//
#include "compiler/import/onnx/Operators.h"

using namespace llmc::onnx;
using namespace llmc::graph;
using namespace mlir;
using llvm::Twine;

namespace {

/// Activations as the kernel numbers them, with the defaults of their alpha and beta.
struct Activation {
  llvm::StringRef name;
  double alpha, beta;
};
constexpr Activation activations[] = {{"Sigmoid", 0, 0},      {"Tanh", 0, 0},
                                      {"Relu", 0, 0},         {"Affine", 1, 0},
                                      {"LeakyRelu", 0.01, 0}, {"ThresholdedRelu", 1, 0},
                                      {"ScaledTanh", 1, 1},   {"HardSigmoid", 0.2, 0.5},
                                      {"Elu", 1, 0},          {"Softsign", 0, 0},
                                      {"Softplus", 0, 0}};

LogicalResult recurrent(Node &node, int64_t gates, llvm::ArrayRef<int64_t> defaults) {
  llvm::StringRef name = node.stringAttr("direction", "forward");
  int64_t direction = name == "forward" ? 0 : name == "reverse" ? 1 : 2;
  if (direction == 2 && name != "bidirectional")
    return node.fail("direction is '" + name + "'; supported: forward, reverse, bidirectional");
  node.ignore("hidden_size"); // the weights have it
  node.ignore("output_sequence");
  llvm::SmallVector<double> reals{node.floatAttr("clip", 0)};
  bool isBatchFirst = node.version >= 14 && node.boolAttr("layout", false);
  llvm::SmallVector<int64_t> integers{gates, direction, isBatchFirst,
                                      gates == 3 && node.boolAttr("linear_before_reset", false),
                                      gates == 4 && node.boolAttr("input_forget", false)};
  auto names = node.stringsAttr("activations");
  auto alphas = node.floatsAttr("activation_alpha"), betas = node.floatsAttr("activation_beta");
  size_t wanted = defaults.size() * (direction == 2 ? 2 : 1);
  if (names && names->size() != wanted)
    return node.fail(Twine(names->size()) + " activations, not " + Twine(wanted));
  // Alphas and betas are listed for those functions that have them, in order.
  size_t nextAlpha = 0, nextBeta = 0;
  for (size_t i = 0; i < 6; ++i) {
    int64_t kind = defaults[i % defaults.size()];
    if (names && i < wanted) {
      auto found = llvm::find_if(
          activations, [&](const Activation &a) { return a.name.equals_insensitive((*names)[i]); });
      if (found == std::end(activations))
        return node.fail("activation '" + (*names)[i] + "' is not known");
      kind = found - std::begin(activations);
    }
    double alpha = activations[kind].alpha, beta = activations[kind].beta;
    bool hasAlpha = kind >= 3 && kind <= 8, hasBeta = kind == 3 || kind == 6 || kind == 7;
    if (hasAlpha && alphas && nextAlpha < alphas->size())
      alpha = (*alphas)[nextAlpha++];
    if (hasBeta && betas && nextBeta < betas->size())
      beta = (*betas)[nextBeta++];
    reals.push_back(alpha);
    reals.push_back(beta);
    integers.push_back(kind);
  }
  llvm::SmallVector<Value> operands;
  for (unsigned i = 0; i < 6; ++i)
    operands.push_back(node.input(i));
  operands.push_back(gates == 4 ? node.input(6) : Value());
  operands.push_back(gates == 4 ? node.input(7) : Value());
  llvm::SmallVector<Type> results(gates == 4 ? 3 : 2, node.elementType());
  auto values = node.library("recurrent", node.elementType(), results, operands, integers, reals);
  for (auto [i, value] : llvm::enumerate(values))
    node.set(static_cast<unsigned>(i), value);
  return success();
}

LogicalResult rnn(Node &node) { return recurrent(node, 1, {1}); }
LogicalResult gru(Node &node) { return recurrent(node, 3, {0, 1}); }
LogicalResult lstm(Node &node) { return recurrent(node, 4, {0, 1, 1}); }

} // namespace

void llmc::onnx::addRecurrentOps(OperatorTable &table) {
  table.add("", "RNN", {7, 3, 6, 2, rnn});
  table.add("", "GRU", {7, 3, 6, 2, gru});
  table.add("", "LSTM", {7, 3, 8, 3, lstm});
}
