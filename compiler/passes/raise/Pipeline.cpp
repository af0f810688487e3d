#include "compiler/passes/raise/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace llmc::raise;

void llmc::raise::buildRaisePipeline(OpPassManager &manager) {
  OpPassManager &function = manager.nest<func::FuncOp>();
  function.addPass(createRaiseConstantsPass());
  function.addPass(createRaiseNormPass());
  function.addPass(createRaiseActivationPass());
  function.addPass(createRaiseRopePass());
  function.addPass(createRaiseAttentionPass());
  manager.addPass(createRaiseStepPass());
}
