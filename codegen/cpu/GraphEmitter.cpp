#include "codegen/cpu/GraphEmitter.h"

#include "runtime/device/cpu/GraphAbi.h"

using namespace llmc;
using namespace llmc::graph;
using llvm::StringRef;
using llvm::Twine;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::success;

llvm::Constant *GraphEmitter::attributeArray(llvm::ArrayRef<int64_t> attributes) {
  llvm::Constant *&known = attributeArrays[attributes.vec()];
  if (known)
    return known;
  std::vector<uint64_t> words(attributes.begin(), attributes.end());
  if (words.empty())
    words.push_back(0);
  llvm::Constant *array = llvm::ConstantDataArray::get(module.getContext(), words);
  auto *global = new llvm::GlobalVariable(module, array->getType(), /*isConstant=*/true,
                                          llvm::GlobalValue::PrivateLinkage, array, "attributes");
  global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  return known = global;
}

llvm::Function *GraphEmitter::kernelWrapper(const GraphKernelCall &call) {
  llvm::Function *&wrapper = wrappers[call.name + "." + std::to_string(call.type)];
  if (wrapper)
    return wrapper;
  llvm::SmallVector<llvm::Type *> types(4, pointer);
  wrapper = llvm::Function::Create(llvm::FunctionType::get(b.getInt32Ty(), types, false),
                                   llvm::GlobalValue::InternalLinkage,
                                   "kernel." + call.name + "." + Twine(call.type), module);
  wrapper->addFnAttr(llvm::Attribute::NoInline);
  wrapper->addFnAttr(llvm::Attribute::NoUnwind);
  types.push_back(b.getInt64Ty());
  llvm::FunctionCallee kernel = module.getOrInsertFunction(
      "llmc_graph_" + call.name, llvm::FunctionType::get(b.getInt32Ty(), types, false));
  llvm::IRBuilder<> body(llvm::BasicBlock::Create(module.getContext(), "", wrapper));
  llvm::SmallVector<llvm::Value *> arguments;
  for (llvm::Argument &argument : wrapper->args())
    arguments.push_back(&argument);
  arguments.push_back(body.getInt64(static_cast<uint64_t>(call.type)));
  body.CreateRet(body.CreateCall(kernel, arguments));
  return wrapper;
}

void GraphEmitter::check(llvm::Value *status, Operation *op) {
  llvm::BasicBlock *next = newBlock("");
  unsigned node = tables.nodeIndex.lookup(op);
  errorStatus->addIncoming(status, b.GetInsertBlock());
  errorNode->addIncoming(b.getInt32(node), b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpEQ(status, llvm::ConstantInt::get(status->getType(), 0)), next,
                 errorBlock);
  b.SetInsertPoint(next);
}

llvm::Value *GraphEmitter::make(StringRef name, llvm::Value *argument, Operation *op) {
  llvm::FunctionCallee callee =
      helper(name, b.getInt32Ty(), {pointer, argument->getType(), pointer});
  check(b.CreateCall(callee, {graph, argument, one}), op);
  return b.CreateLoad(pointer, one);
}

LogicalResult GraphEmitter::call(const GraphKernelCall &kernel, Operation *op,
                                 llvm::SmallVectorImpl<llvm::Value *> &results) {
  unsigned numOperands = static_cast<unsigned>(kernel.operands.size());
  unsigned numResults = op->getNumResults();
  numOperandSlots = std::max(numOperandSlots, numOperands);
  numResultSlots = std::max(numResultSlots, numResults);
  for (auto [i, operand] : llvm::enumerate(kernel.operands))
    b.CreateStore(orNull(valueOf(operand)), slot(operandSlots, static_cast<unsigned>(i)));
  llvm::Value *status = b.CreateCall(
      kernelWrapper(kernel), {graph, operandSlots, resultSlots, attributeArray(kernel.attributes)});
  check(status, op);
  for (unsigned i = 0; i < numResults; ++i)
    results.push_back(b.CreateLoad(pointer, slot(resultSlots, i)));
  return success();
}

LogicalResult GraphEmitter::emitIf(IfOp op) {
  llvm::Value *truth =
      b.CreateCall(helper("llmc_graph_condition", b.getInt32Ty(), {pointer, pointer}),
                   {graph, valueOf(op.getCondition())});
  check(b.CreateAnd(truth, b.getInt32(0x80000000u)), op);
  llvm::BasicBlock *branches[] = {newBlock("then"), newBlock("else")};
  llvm::BasicBlock *join = newBlock("join");
  b.CreateCondBr(b.CreateICmpNE(truth, b.getInt32(0)), branches[0], branches[1]);
  llvm::SmallVector<llvm::Value *> results[2];
  llvm::BasicBlock *ends[2];
  for (unsigned i = 0; i < 2; ++i) {
    b.SetInsertPoint(branches[i]);
    mlir::Region &region = i == 0 ? op.getThenBranch() : op.getElseBranch();
    if (mlir::failed(emitBlock(region.front(), results[i])))
      return failure();
    ends[i] = b.GetInsertBlock();
    b.CreateBr(join);
  }
  b.SetInsertPoint(join);
  for (unsigned i = 0; i < op->getNumResults(); ++i) {
    llvm::PHINode *phi = b.CreatePHI(pointer, 2);
    phi->addIncoming(results[0][i], ends[0]);
    phi->addIncoming(results[1][i], ends[1]);
    values[op->getResult(i)] = phi;
  }
  return success();
}

LogicalResult GraphEmitter::emitLoop(LoopOp op) {
  llvm::Type *i64 = b.getInt64Ty();
  // Counts of the operands: the loop owns the carried values.
  llvm::FunctionCallee trips =
      helper("llmc_graph_trips", b.getInt32Ty(), {pointer, pointer, pointer});
  check(b.CreateCall(trips, {graph, orNull(valueOf(op.getTrips())), one}), op);
  llvm::Value *limit = b.CreateLoad(i64, one);
  llvm::Value *first = b.getInt32(1);
  if (op.getCondition()) {
    first = b.CreateCall(helper("llmc_graph_condition", b.getInt32Ty(), {pointer, pointer}),
                         {graph, valueOf(op.getCondition())});
    check(b.CreateAnd(first, b.getInt32(0x80000000u)), op);
  }
  unsigned numCarried = static_cast<unsigned>(op.getCarried().size());
  unsigned numScans = op->getNumResults() - numCarried;
  llvm::SmallVector<llvm::Value *> initial, scans;
  for (mlir::Value value : op.getCarried()) {
    retain(valueOf(value));
    initial.push_back(valueOf(value));
  }
  for (unsigned i = 0; i < numScans; ++i)
    scans.push_back(make("llmc_graph_collection", b.getInt64(0), op));

  llvm::BasicBlock *before = b.GetInsertBlock();
  llvm::BasicBlock *header = newBlock("loop"), *body = newBlock("body"), *done = newBlock("done");
  b.CreateBr(header);
  b.SetInsertPoint(header);
  llvm::PHINode *turn = b.CreatePHI(i64, 2);
  llvm::PHINode *goesOn = b.CreatePHI(b.getInt32Ty(), 2);
  turn->addIncoming(b.getInt64(0), before);
  goesOn->addIncoming(first, before);
  llvm::SmallVector<llvm::PHINode *> carried;
  for (llvm::Value *value : initial) {
    carried.push_back(b.CreatePHI(pointer, 2));
    carried.back()->addIncoming(value, before);
  }
  b.CreateCondBr(b.CreateAnd(b.CreateICmpSLT(turn, limit), b.CreateICmpNE(goesOn, b.getInt32(0))),
                 body, done);

  b.SetInsertPoint(body);
  mlir::Block &block = op.getBody().front();
  values[block.getArgument(0)] = make("llmc_graph_turn", turn, op);
  values[block.getArgument(1)] = make("llmc_graph_boolean", b.getInt64(1), op);
  for (unsigned i = 0; i < numCarried; ++i)
    values[block.getArgument(2 + i)] = carried[i];
  llvm::SmallVector<llvm::Value *> results;
  if (mlir::failed(emitBlock(block, results)))
    return failure();
  llvm::Value *next = b.CreateCall(
      helper("llmc_graph_condition", b.getInt32Ty(), {pointer, pointer}), {graph, results[0]});
  check(b.CreateAnd(next, b.getInt32(0x80000000u)), op);
  release(results[0]);
  llvm::FunctionCallee collect =
      helper("llmc_graph_collect", b.getInt32Ty(), {pointer, pointer, pointer});
  for (unsigned i = 0; i < numScans; ++i)
    check(b.CreateCall(collect, {graph, scans[i], results[1 + numCarried + i]}), op);
  llvm::BasicBlock *latch = b.GetInsertBlock();
  turn->addIncoming(b.CreateAdd(turn, b.getInt64(1)), latch);
  goesOn->addIncoming(next, latch);
  for (unsigned i = 0; i < numCarried; ++i)
    carried[i]->addIncoming(results[1 + i], latch);
  b.CreateBr(header);

  b.SetInsertPoint(done);
  for (unsigned i = 0; i < numCarried; ++i)
    values[op->getResult(i)] = carried[i];
  for (unsigned i = 0; i < numScans; ++i) {
    mlir::Value result = op->getResult(numCarried + i);
    auto tensor = mlir::cast<mlir::TensorType>(result.getType());
    int64_t type = graphElementType(tensor.getElementType());
    int64_t rank = tensor.hasRank() ? tensor.getRank() : 1;
    llvm::SmallVector<int64_t> dims(static_cast<size_t>(rank), 0);
    if (std::optional<mlir::ArrayAttr> known = op.getScanShapes(); known && i < known->size())
      if (auto shape = mlir::dyn_cast<mlir::DenseI64ArrayAttr>((*known)[i]);
          shape && shape.size() == rank - 1)
        for (auto [dim, size] : llvm::zip(dims, shape.asArrayRef()))
          dim = size > 0 && size <= INT32_MAX ? size : 0;
    values[result] = make("llmc_graph_stack", scans[i], op);
    // What no turn gave has the type and rank that are known of it.
    b.CreateCall(helper("llmc_graph_stack_type", b.getVoidTy(), {pointer, i64, i64, pointer}),
                 {values[result], b.getInt64(static_cast<uint64_t>(type)),
                  b.getInt64(static_cast<uint64_t>(rank)), attributeArray(dims)});
    release(scans[i]);
  }
  return success();
}

LogicalResult GraphEmitter::emitOperation(Operation *op) {
  if (auto branch = mlir::dyn_cast<IfOp>(op))
    return emitIf(branch);
  if (auto loop = mlir::dyn_cast<LoopOp>(op))
    return emitLoop(loop);
  GraphKernelCall kernel;
  if (auto index = tables.weightIndex.find(op); index != tables.weightIndex.end()) {
    auto type = mlir::cast<mlir::RankedTensorType>(op->getResult(0).getType());
    kernel.name = "weight";
    kernel.attributes = {index->second, graphElementType(type.getElementType()), type.getRank()};
    llvm::append_range(kernel.attributes, type.getShape());
  } else {
    FailureOr<GraphKernelCall> known = graphKernelCall(op);
    if (mlir::failed(known))
      return failure();
    kernel = std::move(*known);
  }
  llvm::SmallVector<llvm::Value *> results;
  if (mlir::failed(call(kernel, op, results)))
    return failure();
  for (auto [result, value] : llvm::zip_equal(op->getResults(), results))
    values[result] = value;
  return success();
}

LogicalResult GraphEmitter::emitBlock(mlir::Block &block,
                                      llvm::SmallVectorImpl<llvm::Value *> &results) {
  // The last operation of the block that uses each of its values, in a branch inside or itself.
  llvm::DenseMap<Operation *, llvm::SmallVector<mlir::Value>> dying;
  llvm::SmallVector<mlir::Value> unused;
  auto place = [&](mlir::Value value, Operation *birth) {
    Operation *last = birth;
    for (Operation *user : value.getUsers()) {
      Operation *here = block.findAncestorOpInBlock(*user);
      if (!last || (last != here && last->isBeforeInBlock(here)))
        last = here;
    }
    if (last)
      dying[last].push_back(value);
    else
      unused.push_back(value);
  };
  bool isFunction = mlir::isa<mlir::func::FuncOp>(block.getParentOp());
  if (!isFunction) // the function's arguments belong to its caller
    for (mlir::BlockArgument argument : block.getArguments())
      place(argument, nullptr);
  for (Operation &op : block)
    for (mlir::Value result : op.getResults())
      place(result, &op);
  for (mlir::Value value : unused)
    release(valueOf(value));
  for (Operation &op : block.without_terminator()) {
    if (mlir::failed(emitOperation(&op)))
      return failure();
    if (auto found = dying.find(&op); found != dying.end())
      for (mlir::Value value : found->second)
        release(valueOf(value));
  }
  Operation *terminator = block.getTerminator();
  for (mlir::Value value : terminator->getOperands()) {
    results.push_back(valueOf(value));
    retain(results.back());
  }
  if (auto found = dying.find(terminator); found != dying.end())
    for (mlir::Value value : found->second)
      release(valueOf(value));
  return success();
}

LogicalResult GraphEmitter::emit(mlir::func::FuncOp main) {
  function = llvm::Function::Create(
      llvm::FunctionType::get(b.getInt32Ty(), {pointer, pointer, pointer}, false),
      llvm::GlobalValue::ExternalLinkage, kGraphMain, module);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  graph = function->getArg(0);
  entry = newBlock("entry");
  errorBlock = newBlock("error");
  b.SetInsertPoint(errorBlock);
  errorStatus = b.CreatePHI(b.getInt32Ty(), 4);
  errorNode = b.CreatePHI(b.getInt32Ty(), 4);
  b.CreateStore(errorNode,
                b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), graph, offsetof(LlmrtGraph, node)));
  b.CreateRet(errorStatus);

  // How many slots there are is known at the end.
  b.SetInsertPoint(entry);
  operandSlots = b.CreateAlloca(pointer, b.getInt64(1), "operands");
  resultSlots = b.CreateAlloca(pointer, b.getInt64(1), "results");
  one = b.CreateAlloca(pointer, nullptr, "one");
  mlir::Block &block = main.getBody().front();
  for (mlir::BlockArgument argument : block.getArguments())
    values[argument] = b.CreateLoad(pointer, slot(function->getArg(1), argument.getArgNumber()));
  llvm::SmallVector<llvm::Value *> results;
  if (mlir::failed(emitBlock(block, results)))
    return failure();
  for (auto [i, value] : llvm::enumerate(results))
    b.CreateStore(value, slot(function->getArg(2), static_cast<unsigned>(i)));
  b.CreateRet(b.getInt32(0));
  operandSlots->setOperand(0, b.getInt64(numOperandSlots));
  resultSlots->setOperand(0, b.getInt64(numResultSlots));
  if (pred_empty(errorBlock))
    errorBlock->eraseFromParent();
  return success();
}
