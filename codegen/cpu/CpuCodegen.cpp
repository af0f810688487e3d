#include "codegen/cpu/CpuCodegen.h"

#include "codegen/cpu/CpuTarget.h"
#include "codegen/cpu/Elementwise.h"
#include "codegen/cpu/KernelConstants.h"
#include "codegen/cpu/LinkSharedObject.h"
#include "codegen/cpu/MicrokernelBitcode.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/bit.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/Format.h"
#include "llvm/Transforms/IPO/Internalize.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llmc;
using namespace mlir;

namespace {

/// What LLVM may call on its own; Memory.cpp defines them.
constexpr StringLiteral kMemoryFunctions[] = {"memcpy", "memmove", "memset"};

/// A product of at most this many weights takes less time than what its kernel waits for: constants
/// gain nothing that could be measured.
constexpr int64_t kSmallProduct = 1 << 16;

bool isSmallProduct(const KernelConstants &product) {
  return product.integer("n") <= kSmallProduct / std::max<int64_t>(1, product.integer("k"));
}

/// The constants of \p spec that may as well be known at run time: none is in an inner loop.
/// Kernels that differ in these alone share one text.
SmallVector<StringRef> looseConstants(const KernelSpec &spec) {
  if (spec.kind == "norm")
    return {"d", "rows"};
  if (spec.kind == "quantize")
    return {"k", "rows", "slots"};
  if (spec.kind == "attention") // a model's layers may differ in it
    return {"window"};
  if (spec.kind != "gemm" && spec.kind != "grouped_gemm")
    return {"rows"};
  SmallVector<StringRef> loose = {"n", "rows", "task_tiles"};
  if (spec.kind == "grouped_gemm")
    loose.append({"groups", "slots"});
  if (!isSmallProduct(KernelConstants(spec)))
    return loose;
  if (spec.kind == "gemm")
    loose.append({"k", "bias", "residual"});
  else
    loose.append({"k", "x_stride"});
  return loose;
}

/// Equal for kernels that can share one text.
std::string textKey(const KernelSpec &spec) {
  std::string key = spec.kind;
  llvm::raw_string_ostream os(key);
  KernelConstants constants(spec);
  SmallVector<StringRef> loose = looseConstants(spec);
  for (const KernelParameter &p : kernelParameters(spec.kind)) {
    os << ' ';
    if (llvm::is_contained(loose, p.name))
      os << '*';
    else if (p.isReal)
      os << llvm::format_hex(llvm::bit_cast<uint64_t>(constants.real(p.name)), 18);
    else
      os << constants.integer(p.name);
  }
  return key;
}

/// Builds the module: a function a kernel, which calls its microkernel with the constants. Kernels
/// with one textKey (a decoder has most of its kernels twice, for all tokens and for those whose
/// logits are wanted) share one text, a function of its own that takes the loose constants.
class KernelModuleBuilder {
public:
  explicit KernelModuleBuilder(Location loc)
      : loc(loc), b(loc.getContext()), module(ModuleOp::create(loc)) {}

  OwningOpRef<ModuleOp> build(ArrayRef<KernelSpec> specs) {
    for (const KernelSpec &spec : specs)
      if (spec.kind != "elementwise")
        ++uses[textKey(spec)];
    for (const KernelSpec &spec : specs)
      addKernel(spec);
    return std::move(module);
  }

private:
  /// LlmrtKernel's parameters.
  SmallVector<Type> abiTypes() {
    Type pointer = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
    return {pointer, pointer, pointer, i64, i64, pointer};
  }
  LLVM::LLVMFuncOp addFunction(StringRef name, ArrayRef<Type> parameters) {
    b.setInsertionPointToEnd(module->getBody());
    return LLVM::LLVMFuncOp::create(
        b, loc, name,
        LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), parameters));
  }
  void addKernel(const KernelSpec &spec) {
    LLVM::LLVMFuncOp function = addFunction(spec.symbol, abiTypes());
    if (spec.kind == "elementwise")
      return buildElementwiseBody(*module, function, spec);

    std::string key = textKey(spec);
    bool isShared = uses[key] > 1;
    SmallVector<StringRef> loose = looseConstants(spec);
    std::string callee = microkernelName(spec.kind);
    if (isShared) {
      auto [text, isNew] = texts.try_emplace(key, spec.symbol + ".text");
      callee = text->second;
      if (isNew) {
        SmallVector<Type> types = abiTypes();
        types.append(loose.size(), b.getI64Type());
        LLVM::LLVMFuncOp shared = addFunction(callee, types);
        shared.setNoInline(true);
        ValueRange arguments = shared.addEntryBlock(b)->getArguments();
        callMicrokernel(spec, arguments.drop_back(loose.size()), loose,
                        arguments.take_back(loose.size()));
      }
    }
    Block *entry = function.addEntryBlock(b);
    if (!isShared)
      return callMicrokernel(spec, entry->getArguments(), {}, {});
    b.setInsertionPointToStart(entry);
    SmallVector<Value> operands(entry->getArguments());
    KernelConstants constants(spec);
    for (StringRef name : loose)
      operands.push_back(integer(name, constants.integer(name)));
    LLVM::CallOp::create(b, loc, TypeRange{}, callee, operands);
    LLVM::ReturnOp::create(b, loc, ValueRange{});
  }

  Value integer(StringRef name, int64_t value) {
    return LLVM::ConstantOp::create(b, NameLoc::get(b.getStringAttr(name), loc), b.getI64Type(),
                                    b.getI64IntegerAttr(value));
  }

  /// The body of the function that \p arguments are of: the microkernel with \p spec's constants,
  /// of which those that \p loose names are \p values.
  void callMicrokernel(const KernelSpec &spec, ValueRange arguments, ArrayRef<StringRef> loose,
                       ValueRange values) {
    std::string callee = microkernelName(spec.kind);
    ArrayRef<KernelParameter> parameters = kernelParameters(spec.kind);
    Block *entry = arguments.front().getParentBlock();
    if (!module->lookupSymbol(callee)) {
      SmallVector<Type> types = abiTypes();
      for (const KernelParameter &p : parameters)
        types.push_back(p.isReal ? Type(b.getF32Type()) : Type(b.getI64Type()));
      addFunction(callee, types);
    }
    b.setInsertionPointToStart(entry);
    SmallVector<Value> operands(arguments);
    KernelConstants constants(spec);
    for (const KernelParameter &p : parameters) {
      if (p.isReal)
        operands.push_back(LLVM::ConstantOp::create(
            b, NameLoc::get(b.getStringAttr(p.name), loc), b.getF32Type(),
            b.getF32FloatAttr(static_cast<float>(constants.real(p.name)))));
      else if (const auto *name = llvm::find(loose, p.name); name != loose.end())
        operands.push_back(values[name - loose.begin()]);
      else
        operands.push_back(integer(p.name, constants.integer(p.name)));
    }
    LLVM::CallOp::create(b, loc, TypeRange{}, callee, operands);
    LLVM::ReturnOp::create(b, loc, ValueRange{});
  }

  Location loc;
  OpBuilder b;
  OwningOpRef<ModuleOp> module;
  llvm::StringMap<int> uses;          ///< of a text
  llvm::StringMap<std::string> texts; ///< functions of shared ones, by key
};

void dumpTo(const CpuDump &dump, StringRef phase, llvm::function_ref<void(raw_ostream &)> print) {
  if (!dump)
    return;
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  dump(phase, text);
}

LogicalResult lowerToLlvmDialect(ModuleOp module) {
  PassManager pm(module.getContext());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createArithToLLVMConversionPass());
  return pm.run(module);
}

/// Links the microkernels that \p module calls and hides all but \p specs.
llvm::Error linkMicrokernels(llvm::Module &module, ArrayRef<KernelSpec> specs, CpuLevel level) {
  auto microkernels = loadMicrokernels(level, module.getContext());
  if (!microkernels)
    return microkernels.takeError();
  module.setDataLayout((*microkernels)->getDataLayout());
  module.setTargetTriple((*microkernels)->getTargetTriple());

  // A function that isn't for the level's instructions, or may call a library, could not take in a
  // microkernel.
  llvm::AttrBuilder attributes(module.getContext());
  for (const llvm::Function &f : **microkernels)
    if (f.getName().starts_with("llmc_kernel_")) {
      for (StringRef name :
           {"target-cpu", "target-features", "tune-cpu", "prefer-vector-width", "no-builtins"})
        if (f.hasFnAttribute(name))
          attributes.addAttribute(name, f.getFnAttribute(name).getValueAsString());
      break;
    }
  attributes.addAttribute("min-legal-vector-width", "512");
  attributes.addAttribute(llvm::Attribute::NoUnwind);
  for (llvm::Function &f : module)
    if (!f.isDeclaration())
      f.addFnAttrs(attributes);

  llvm::Type *pointer = llvm::PointerType::get(module.getContext(), 0);
  llvm::Type *i64 = llvm::Type::getInt64Ty(module.getContext());
  for (StringRef name : kMemoryFunctions) {
    llvm::Type *second = name == "memset" ? llvm::Type::getInt32Ty(module.getContext()) : pointer;
    module.getOrInsertFunction(name, pointer, pointer, second, i64);
  }
  if (llvm::Linker::linkModules(module, std::move(*microkernels), llvm::Linker::LinkOnlyNeeded))
    return llvm::createStringError("linking the microkernels' bitcode failed");

  llvm::StringSet<> exported;
  for (const KernelSpec &spec : specs)
    exported.insert(spec.symbol);
  for (StringRef name : kMemoryFunctions) {
    exported.insert(name);
    llvm::Function *function = module.getFunction(name);
    function->setVisibility(llvm::GlobalValue::HiddenVisibility);
    function->setLinkage(llvm::GlobalValue::WeakODRLinkage); // every part has them
  }
  llvm::internalizeModule(
      module, [&](const llvm::GlobalValue &v) { return exported.contains(v.getName()); });
  return llvm::Error::success();
}

} // namespace

/// Whether \p spec is of those that levels with instructions for matrices have a text of their own
/// for (GemmTiles.h). Where all are small, these gain nothing that could be measured.
static bool hasTextForTiles(const KernelSpec &spec) {
  KernelConstants c(spec);
  return spec.kind == "gemm" && c.integer("x_int8") && c.integer("group") % 32 == 0;
}
static bool hasUseForTiles(const KernelSpec &spec) {
  return hasTextForTiles(spec) && !isSmallProduct(KernelConstants(spec));
}

/// The level with whose code a level with instructions for matrices shares all other kernels;
/// itself for the others.
static CpuLevel withoutTiles(CpuLevel level) {
  switch (level) {
  case CpuLevel::X86V4Amx:
    return CpuLevel::X86V4;
  case CpuLevel::ArmI8mm:
    return CpuLevel::ArmDot;
  default:
    return level;
  }
}

bool llmc::hasUseFor(CpuLevel level, ArrayRef<KernelSpec> specs) {
  return withoutTiles(level) == level || llvm::any_of(specs, hasUseForTiles);
}

/// About how long \p specs take to compile, in instructions of optimised texts: what a text of its
/// kind has in plans of the usual models.
static int64_t compileCost(ArrayRef<KernelSpec> specs) {
  llvm::StringSet<> texts;
  int64_t cost = 0;
  for (const KernelSpec &spec : specs)
    if (spec.kind == "elementwise" || texts.insert(textKey(spec)).second)
      cost += spec.kind == "attention"                             ? 2400
              : spec.kind == "gemm" || spec.kind == "grouped_gemm" ? 1200
                                                                   : 100;
  return cost;
}

std::vector<CpuPart> llmc::cpuParts(ArrayRef<KernelSpec> specs, ArrayRef<CpuLevel> levels) {
  CpuPart withTiles, attention, others;
  withTiles.name = ".int8_gemm", attention.name = ".attention";
  for (const KernelSpec &spec : specs)
    (hasTextForTiles(spec)      ? withTiles
     : spec.kind == "attention" ? attention
                                : others)
        .specs.push_back(spec);
  std::vector<CpuPart> parts;
  for (CpuPart *kernels : {&withTiles, &attention, &others}) {
    if (kernels->specs.empty())
      continue;
    for (CpuLevel level : levels) {
      const CpuLevel code = kernels == &withTiles ? level : withoutTiles(level);
      auto same = llvm::find_if(parts, [&](const CpuPart &part) {
        return part.level == code && part.name == cpuLevelName(code).str() + kernels->name;
      });
      if (same == parts.end())
        same = parts.insert(parts.end(),
                            {code, cpuLevelName(code).str() + kernels->name, {}, kernels->specs});
      same->objects.push_back(level);
    }
  }
  SmallVector<std::pair<int64_t, size_t>> order; // by falling cost, equals as they are
  for (auto [i, part] : llvm::enumerate(parts))
    order.push_back({-compileCost(part.specs), i});
  llvm::sort(order);
  std::vector<CpuPart> sorted;
  for (auto [cost, i] : order)
    sorted.push_back(std::move(parts[i]));
  return sorted;
}

static InFlightDiagnostic cpuCodeError(Location loc, CpuLevel level) {
  return emitError(loc) << "CPU code for " << cpuLevelName(level) << ": ";
}

FailureOr<std::string> llmc::emitCpuPart(Location loc, const CpuPart &part, int optLevel,
                                         const CpuDump &dump) {
  const std::vector<KernelSpec> &specs = part.specs;
  const CpuLevel level = part.level;
  auto fail = [&](const Twine &what) -> LogicalResult { return cpuCodeError(loc, level) << what; };
  if (optLevel < 0 || optLevel > 3)
    return fail("the optimisation level must be from 0 to 3");
  llvm::StringSet<> symbols;
  for (const KernelSpec &spec : specs) {
    if (failed(verifyKernelSpec(loc, spec)))
      return failure();
    if (!symbols.insert(spec.symbol).second)
      return fail("two kernels are named '" + spec.symbol + "'");
  }

  DialectRegistry registry;
  registry
      .insert<LLVM::LLVMDialect, arith::ArithDialect, scf::SCFDialect, cf::ControlFlowDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  // A context of its own: levels are compiled on several threads, and loading a dialect into a
  // context that others use is a race.
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  std::string reported;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && reported.empty())
      reported = ": " + diagnostic.str();
    return success();
  });
  context.loadDialect<LLVM::LLVMDialect, arith::ArithDialect, scf::SCFDialect,
                      cf::ControlFlowDialect>();

  OwningOpRef<ModuleOp> module = KernelModuleBuilder(UnknownLoc::get(&context)).build(specs);
  dumpTo(dump, "mlir", [&](raw_ostream &os) { module->print(os); });
  if (failed(verify(*module)) || failed(lowerToLlvmDialect(*module)))
    return fail("lowering to the llvm dialect failed" + reported);

  llvm::LLVMContext llvmContext;
  llvmContext.setDiscardValueNames(!dump); // only a reader needs them
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(*module, llvmContext, "plan");
  if (!code)
    return fail("translating to LLVM IR failed" + reported);
  if (llvm::Error error = linkMicrokernels(*code, specs, level))
    return fail(llvm::toString(std::move(error)));
  dumpTo(dump, "llvm", [&](raw_ostream &os) { code->print(os, nullptr); });

  std::unique_ptr<llvm::TargetMachine> machine = makeTargetMachine(level, optLevel);
  if (!machine)
    return fail("this LLVM was built without the target for " +
                architectureName(architectureOf(level)));
  optimise(*code, *machine, optLevel, Loops::Vectors);
  std::string broken;
  llvm::raw_string_ostream brokenStream(broken);
  if (llvm::verifyModule(*code, &brokenStream))
    return fail("the optimised LLVM IR is broken: " + broken);
  dumpTo(dump, "llvm-opt", [&](raw_ostream &os) { code->print(os, nullptr); });
  if (dump) // emitting changes the module: the text is made from a copy
    dump("asm", emitFile(*llvm::CloneModule(*code), *machine, llvm::CodeGenFileType::AssemblyFile));

  std::string object = emitFile(*code, *machine, llvm::CodeGenFileType::ObjectFile);
  if (object.empty())
    return fail("the target can't emit objects");
  return object;
}

FailureOr<CpuObject> llmc::linkCpuObject(Location loc, ArrayRef<KernelSpec> specs, CpuLevel level,
                                         ArrayRef<StringRef> relocatables) {
  llvm::Expected<std::string> shared = linkSharedObject(relocatables);
  if (!shared)
    return cpuCodeError(loc, level) << llvm::toString(shared.takeError());
  CpuObject result{std::move(*shared), {}};
  for (const KernelSpec &spec : specs)
    result.scratchBytes.push_back(kernelScratchBytes(spec));
  return result;
}

FailureOr<CpuObject> llmc::emitCpuObject(Location loc, ArrayRef<KernelSpec> specs, CpuLevel level,
                                         int optLevel, const CpuDump &dump) {
  FailureOr<std::string> object =
      emitCpuPart(loc, {level, cpuLevelName(level).str(), {level}, specs.vec()}, optLevel, dump);
  if (failed(object))
    return failure();
  return linkCpuObject(loc, specs, level, StringRef(*object));
}
