#include "codegen/cpu/GraphCodegen.h"

#include "codegen/cpu/CpuTarget.h"
#include "codegen/cpu/GraphKernels.h"
#include "codegen/cpu/LinkSharedObject.h"
#include "dialects/graph/NodeLocation.h"
#include "runtime/device/cpu/GraphAbi.h"

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/IPO/Internalize.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llmc;
using namespace llmc::graph;
using llvm::StringRef;
using llvm::Twine;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::success;

extern "C" const char llmc_graph_bitcode_X86_64[], llmc_graph_bitcode_X86_64_end[];
extern "C" const char llmc_graph_bitcode_AArch64[], llmc_graph_bitcode_AArch64_end[];

GraphTables::GraphTables(mlir::func::FuncOp main) {
  main.walk([&](Operation *op) {
    if (mlir::isa<ConstantOp, WeightOp>(op)) {
      weightIndex[op] = static_cast<unsigned>(weights.size());
      weights.push_back(op);
    }
    std::string name = graph::describeNode(op);
    if (nodes.empty() || nodes.back() != name)
      nodes.push_back(std::move(name));
    nodeIndex[op] = static_cast<unsigned>(nodes.size() - 1);
  });
}

namespace {

/// Writes the entry and what it calls.
class GraphEmitter {
public:
  GraphEmitter(llvm::Module &module, const GraphTables &tables)
      : module(module), tables(tables), b(module.getContext()) {
    pointer = b.getPtrTy();
  }

  LogicalResult emit(mlir::func::FuncOp main);

private:
  llvm::Value *valueOf(mlir::Value value) { return value ? values.lookup(value) : nullptr; }
  llvm::Value *orNull(llvm::Value *value) {
    return value ? value : llvm::ConstantPointerNull::get(pointer);
  }
  llvm::FunctionCallee helper(StringRef name, llvm::Type *result,
                              llvm::ArrayRef<llvm::Type *> types) {
    return module.getOrInsertFunction(name, llvm::FunctionType::get(result, types, false));
  }
  llvm::Function *kernelWrapper(const GraphKernelCall &call);
  llvm::Constant *attributeArray(llvm::ArrayRef<int64_t> attributes);
  llvm::Value *slot(llvm::Value *base, unsigned i) {
    return b.CreateConstInBoundsGEP1_64(pointer, base, i);
  }
  llvm::BasicBlock *newBlock(const Twine &name) {
    return llvm::BasicBlock::Create(module.getContext(), name, function);
  }
  /// Leaves with \p status unless it is 0.
  void check(llvm::Value *status, Operation *op);
  void retain(llvm::Value *value) {
    b.CreateCall(helper("llmc_graph_retain", b.getVoidTy(), {pointer}), {value});
  }
  void release(llvm::Value *value) {
    b.CreateCall(helper("llmc_graph_release", b.getVoidTy(), {pointer, pointer}), {graph, value});
  }
  /// A call of a helper that returns a status and sets one value.
  llvm::Value *make(StringRef name, llvm::Value *argument, Operation *op);
  LogicalResult call(const GraphKernelCall &kernel, Operation *op,
                     llvm::SmallVectorImpl<llvm::Value *> &results);

  /// Emits the operations of \p block; its terminator's operands, each counted once for the
  /// caller, become \p results. What dies in the block is released there.
  LogicalResult emitBlock(mlir::Block &block, llvm::SmallVectorImpl<llvm::Value *> &results);
  LogicalResult emitOperation(Operation *op);
  LogicalResult emitIf(IfOp op);
  LogicalResult emitLoop(LoopOp op);

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
    values[result] = make("llmc_graph_stack", scans[i], op);
    // What no turn gave has the type and rank that are known of it.
    b.CreateCall(helper("llmc_graph_stack_type", b.getVoidTy(), {pointer, i64, i64}),
                 {values[result], b.getInt64(static_cast<uint64_t>(type)),
                  b.getInt64(static_cast<uint64_t>(rank))});
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

/// Links what \p module calls of the kernels' library and specialises it.
llvm::Error linkKernels(llvm::Module &module, CpuLevel level) {
  const bool isX86 = architectureOf(level) == CpuArchitecture::X86_64;
  const char *begin = isX86 ? llmc_graph_bitcode_X86_64 : llmc_graph_bitcode_AArch64;
  const char *end = isX86 ? llmc_graph_bitcode_X86_64_end : llmc_graph_bitcode_AArch64_end;
  StringRef bytes(begin, static_cast<size_t>(end - begin));
  auto library = llvm::getLazyBitcodeModule(llvm::MemoryBufferRef(bytes, "graph kernels"),
                                            module.getContext());
  if (!library)
    return library.takeError();
  module.setDataLayout((*library)->getDataLayout());
  module.setTargetTriple((*library)->getTargetTriple());
  for (const llvm::Function &f : module)
    if (f.isDeclaration() && f.getName().starts_with("llmc_graph_") &&
        !(*library)->getFunction(f.getName()))
      return llvm::createStringError("there is no kernel '" +
                                     f.getName().drop_front(strlen("llmc_graph_")) + "'");
  llvm::Type *pointer = llvm::PointerType::get(module.getContext(), 0);
  llvm::Type *i64 = llvm::Type::getInt64Ty(module.getContext());
  llvm::Type *i32 = llvm::Type::getInt32Ty(module.getContext());
  constexpr llvm::StringLiteral memory[] = {"memcpy", "memmove", "memset"};
  for (StringRef name : memory)
    module.getOrInsertFunction(name, pointer, pointer, name == "memset" ? i32 : pointer, i64);
  if (llvm::Linker::linkModules(module, std::move(*library), llvm::Linker::LinkOnlyNeeded))
    return llvm::createStringError("linking the graph kernels' bitcode failed");
  LevelTarget target = levelTarget(level);
  std::string features = target.features.str();
  for (llvm::Function &f : module) {
    if (f.isDeclaration())
      continue;
    f.removeFnAttr("tune-cpu");
    f.addFnAttr("target-cpu", target.cpu);
    // The kernels are compiled for the least level; its features are part of every other.
    f.removeFnAttr("target-features");
    if (!features.empty())
      f.addFnAttr("target-features", features);
    f.addFnAttr("no-builtins");
    for (StringRef name : memory)
      if (f.getName() == name)
        f.setVisibility(llvm::GlobalValue::HiddenVisibility);
  }
  llvm::internalizeModule(module, [&](const llvm::GlobalValue &v) {
    return v.getName() == kGraphMain || llvm::is_contained(memory, v.getName());
  });
  return llvm::Error::success();
}

/// Inlines each kernel into its wrapper, where its type is a constant, and drops what that leaves
/// without a caller before anything is optimised.
void specialise(llvm::Module &module) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  llvm::ModulePassManager passes;
  passes.addPass(llvm::AlwaysInlinerPass(/*InsertLifetime=*/false));
  passes.addPass(llvm::GlobalDCEPass());
  passes.run(module, modules);
}

} // namespace

FailureOr<std::string> llmc::emitGraphObject(mlir::func::FuncOp main, const GraphTables &tables,
                                             CpuLevel level, int optLevel, const CpuDump &dump) {
  auto fail = [&](const Twine &what) -> LogicalResult {
    return mlir::emitError(main.getLoc()) << "CPU code for " << cpuLevelName(level) << ": " << what;
  };
  auto dumpTo = [&](StringRef phase, const llvm::Module &module) {
    if (!dump)
      return;
    std::string text;
    llvm::raw_string_ostream os(text);
    module.print(os, nullptr);
    dump(phase, text);
  };
  llvm::LLVMContext context;
  llvm::Module module("graph", context);
  if (mlir::failed(GraphEmitter(module, tables).emit(main)))
    return failure();
  if (llvm::Error error = linkKernels(module, level))
    return fail(llvm::toString(std::move(error)));
  specialise(module);
  std::string broken;
  llvm::raw_string_ostream brokenStream(broken);
  if (llvm::verifyModule(module, &brokenStream))
    return fail("the LLVM IR is broken: " + broken);
  dumpTo("llvm", module);
  std::unique_ptr<llvm::TargetMachine> machine = makeTargetMachine(level, optLevel);
  if (!machine)
    return fail("this LLVM was built without the X86 target");
  // At level 0 the library's own preparation has to do: a graph is compiled in some 50 ms.
  if (optLevel > 0)
    optimise(module, *machine, optLevel, Loops::Scalar);
  dumpTo("llvm-opt", module);
  if (dump)
    dump("asm",
         emitFile(*llvm::CloneModule(module), *machine, llvm::CodeGenFileType::AssemblyFile));
  std::string object = emitFile(module, *machine, llvm::CodeGenFileType::ObjectFile);
  if (object.empty())
    return fail("the target can't emit objects");
  llvm::Expected<std::string> shared = linkSharedObject(llvm::StringRef(object));
  if (!shared)
    return fail(llvm::toString(shared.takeError()));
  return std::move(*shared);
}
