//===- GraphEmitter.h - the entry of a graph's machine code -----------------------===//
//
// One call of a wrapper a kernel; branches and loops become those of the function. Values are
// reference counted: an operation counts its results once, the last use of a value releases it.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CODEGEN_CPU_GRAPHEMITTER_H
#define LLMC_CODEGEN_CPU_GRAPHEMITTER_H

#include "codegen/cpu/GraphCodegen.h"
#include "codegen/cpu/GraphKernels.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace llmc {

/// Writes the entry `kGraphMain` and the wrappers that it calls into a module; the kernels stay
/// declarations, to be linked.
class GraphEmitter {
public:
  GraphEmitter(llvm::Module &module, const GraphTables &tables)
      : module(module), tables(tables), b(module.getContext()) {
    pointer = b.getPtrTy();
  }

  /// Fails with an error at the operation that has no kernel.
  llvm::LogicalResult emit(mlir::func::FuncOp main);

private:
  llvm::Value *valueOf(mlir::Value value) { return value ? values.lookup(value) : nullptr; }
  llvm::Value *orNull(llvm::Value *value) {
    return value ? value : llvm::ConstantPointerNull::get(pointer);
  }
  llvm::FunctionCallee helper(llvm::StringRef name, llvm::Type *result,
                              llvm::ArrayRef<llvm::Type *> types) {
    return module.getOrInsertFunction(name, llvm::FunctionType::get(result, types, false));
  }
  llvm::Function *kernelWrapper(const GraphKernelCall &call);
  llvm::Constant *attributeArray(llvm::ArrayRef<int64_t> attributes);
  llvm::Value *slot(llvm::Value *base, unsigned i) {
    return b.CreateConstInBoundsGEP1_64(pointer, base, i);
  }
  llvm::BasicBlock *newBlock(const llvm::Twine &name) {
    return llvm::BasicBlock::Create(module.getContext(), name, function);
  }
  /// Leaves with \p status unless it is 0.
  void check(llvm::Value *status, mlir::Operation *op);
  void retain(llvm::Value *value) {
    b.CreateCall(helper("llmc_graph_retain", b.getVoidTy(), {pointer}), {value});
  }
  void release(llvm::Value *value) {
    b.CreateCall(helper("llmc_graph_release", b.getVoidTy(), {pointer, pointer}), {graph, value});
  }
  /// A call of a helper that returns a status and sets one value.
  llvm::Value *make(llvm::StringRef name, llvm::Value *argument, mlir::Operation *op);
  llvm::LogicalResult call(const GraphKernelCall &kernel, mlir::Operation *op,
                           llvm::SmallVectorImpl<llvm::Value *> &results);

  /// Emits the operations of \p block; its terminator's operands, each counted once for the
  /// caller, become \p results. What dies in the block is released there.
  llvm::LogicalResult emitBlock(mlir::Block &block, llvm::SmallVectorImpl<llvm::Value *> &results);
  llvm::LogicalResult emitOperation(mlir::Operation *op);
  llvm::LogicalResult emitIf(graph::IfOp op);
  llvm::LogicalResult emitLoop(graph::LoopOp op);

  llvm::Module &module;
  const GraphTables &tables;
  llvm::IRBuilder<> b;
  llvm::PointerType *pointer;
  llvm::Function *function = nullptr;
  llvm::Value *graph = nullptr;
  llvm::BasicBlock *entry = nullptr, *errorBlock = nullptr;
  llvm::PHINode *errorStatus = nullptr, *errorNode = nullptr;
  llvm::DenseMap<mlir::Value, llvm::Value *> values;
  llvm::StringMap<llvm::Function *> wrappers;
  std::map<std::vector<int64_t>, llvm::Constant *> attributeArrays;
  llvm::AllocaInst *operandSlots = nullptr, *resultSlots = nullptr;
  llvm::AllocaInst *one = nullptr;
  unsigned numOperandSlots = 1, numResultSlots = 1;
};

} // namespace llmc

#endif // LLMC_CODEGEN_CPU_GRAPHEMITTER_H
