#include "codegen/cpu/Elementwise.h"

#include "codegen/cpu/KernelConstants.h"
#include "codegen/cpu/kernels/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"

using namespace llmc;
using namespace mlir;

namespace {

/// An operator: activation(a), then times or plus b where there is one. With the constant `scale`,
/// isScale is a * scale and isSoftcap scale * tanh(a / scale).
struct ElementwiseOp {
  StringRef name;
  int64_t activation;
  enum { None, Add, Mul } second;
  bool isScale = false, isSoftcap = false;
};
using kernel::kActivationSigmoid, kernel::kGelu, kernel::kGeluTanh, kernel::kNone, kernel::kRelu,
    kernel::kSilu;
constexpr ElementwiseOp kOps[] = {
    {"add", kNone, ElementwiseOp::Add},
    {"mul", kNone, ElementwiseOp::Mul},
    {"scale", kNone, ElementwiseOp::None, true},
    {"softcap", kNone, ElementwiseOp::None, false, true},
    {"relu", kRelu, ElementwiseOp::None},
    {"silu", kSilu, ElementwiseOp::None},
    {"gelu", kGelu, ElementwiseOp::None},
    {"gelu_tanh", kGeluTanh, ElementwiseOp::None},
    {"sigmoid", kActivationSigmoid, ElementwiseOp::None},
    {"relu_mul", kRelu, ElementwiseOp::Mul},
    {"silu_mul", kSilu, ElementwiseOp::Mul},
    {"gelu_mul", kGelu, ElementwiseOp::Mul},
    {"gelu_tanh_mul", kGeluTanh, ElementwiseOp::Mul},
    {"sigmoid_mul", kActivationSigmoid, ElementwiseOp::Mul},
};

const ElementwiseOp *findOp(StringRef name) {
  const auto *found = llvm::find_if(kOps, [&](const ElementwiseOp &op) { return op.name == name; });
  return found == std::end(kOps) ? nullptr : found;
}

constexpr int64_t kLanes = 16;
constexpr StringLiteral kActivate = "llmc_activate", kTanh = "llmc_tanh";

/// Builds the body of one kernel; every value of sixteen lanes is a vector<16xf32>.
class BodyBuilder {
public:
  BodyBuilder(LLVM::LLVMFuncOp function, const ElementwiseOp &op, double factor)
      : b(function.getContext()), loc(function.getLoc()), function(function), op(op),
        factor(factor), pointer(LLVM::LLVMPointerType::get(b.getContext())),
        lanes(VectorType::get(kLanes, b.getF32Type())) {}

  void build(int64_t d) {
    Block *entry = function.addEntryBlock(b);
    b.setInsertionPointToStart(entry);
    lanesInMemory = LLVM::AllocaOp::create(b, loc, pointer, b.getF32Type(), integer(kLanes), 64);
    a = bound(0);
    if (op.second != ElementwiseOp::None)
      second = bound(1);
    y = bound(op.second != ElementwiseOp::None ? 2 : 1);
    Value rowLength = integer(d);
    Value begin = arith::MulIOp::create(b, loc, entry->getArgument(3), rowLength);
    Value end = arith::MulIOp::create(b, loc, entry->getArgument(4), rowLength);
    Value count = arith::SubIOp::create(b, loc, end, begin);
    Value rest = arith::RemSIOp::create(b, loc, count, integer(kLanes));
    Value whole = arith::SubIOp::create(b, loc, end, rest);
    scf::ForOp::create(b, loc, begin, whole, integer(kLanes), ValueRange{},
                       [&](OpBuilder &, Location, Value i, ValueRange) {
                         Value x = LLVM::LoadOp::create(b, loc, lanes, at(a, i), 4);
                         Value z;
                         if (second)
                           z = LLVM::LoadOp::create(b, loc, lanes, at(second, i), 4);
                         LLVM::StoreOp::create(b, loc, apply(x, z), at(y, i), 4);
                         scf::YieldOp::create(b, loc);
                       });
    // The lanes of the rest that exist.
    SmallVector<int64_t> indices = llvm::to_vector(llvm::seq<int64_t>(kLanes));
    auto indexType = VectorType::get(kLanes, b.getI64Type());
    Value index =
        arith::ConstantOp::create(b, loc, DenseElementsAttr::get(indexType, ArrayRef(indices)));
    Value limit = LLVM::UndefOp::create(b, loc, indexType);
    for (int64_t lane = 0; lane < kLanes; ++lane)
      limit = LLVM::InsertElementOp::create(b, loc, limit, rest, integer(lane));
    Value mask = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, index, limit);
    Value zeros = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(lanes, 0.0f));
    Value x = maskedLoad(at(a, whole), mask, zeros);
    Value z = second ? maskedLoad(at(second, whole), mask, zeros) : Value();
    LLVM::MaskedStoreOp::create(b, loc, apply(x, z), at(y, whole), mask, b.getI32IntegerAttr(4));
    LLVM::ReturnOp::create(b, loc, ValueRange{});
  }

private:
  Value integer(int64_t v) { return arith::ConstantIntOp::create(b, loc, b.getI64Type(), v); }
  /// bindings[index]
  Value bound(int64_t index) {
    Value slot = LLVM::GEPOp::create(b, loc, pointer, pointer, function.getArgument(1),
                                     ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
    return LLVM::LoadOp::create(b, loc, pointer, slot);
  }
  Value at(Value base, Value i) {
    return LLVM::GEPOp::create(b, loc, pointer, b.getF32Type(), base, ArrayRef<LLVM::GEPArg>{i});
  }
  Value maskedLoad(Value from, Value mask, Value zeros) {
    return LLVM::MaskedLoadOp::create(b, loc, lanes, from, mask, zeros, b.getI32IntegerAttr(4));
  }
  /// The constant `scale` in every lane.
  Value splat() {
    return arith::ConstantOp::create(b, loc,
                                     DenseElementsAttr::get(lanes, static_cast<float>(factor)));
  }
  Value apply(Value x, Value z) {
    if (op.activation != kNone) {
      LLVM::StoreOp::create(b, loc, x, lanesInMemory, 64);
      LLVM::CallOp::create(b, loc, TypeRange{}, kActivate,
                           ValueRange{lanesInMemory, integer(op.activation)});
      x = LLVM::LoadOp::create(b, loc, lanes, lanesInMemory, 64);
    }
    if (op.isSoftcap) {
      x = arith::DivFOp::create(b, loc, x, splat());
      LLVM::StoreOp::create(b, loc, x, lanesInMemory, 64);
      LLVM::CallOp::create(b, loc, TypeRange{}, kTanh, ValueRange{lanesInMemory});
      x = LLVM::LoadOp::create(b, loc, lanes, lanesInMemory, 64);
    }
    if (op.isScale || op.isSoftcap)
      x = arith::MulFOp::create(b, loc, x, splat());
    if (op.second == ElementwiseOp::Add)
      return arith::AddFOp::create(b, loc, x, z);
    if (op.second == ElementwiseOp::Mul)
      return arith::MulFOp::create(b, loc, x, z);
    return x;
  }

  OpBuilder b;
  Location loc;
  LLVM::LLVMFuncOp function;
  const ElementwiseOp &op;
  double factor;
  LLVM::LLVMPointerType pointer;
  VectorType lanes;
  Value lanesInMemory, a, second, y;
};

} // namespace

ArrayRef<KernelParameter> llmc::elementwiseParameters() {
  static const KernelParameter parameters[] = {{"d", false}, {"rows", false}, {"scale", true}};
  return parameters;
}

bool llmc::isElementwiseOp(StringRef op) { return findOp(op); }

std::string llmc::elementwiseOpNames() {
  SmallVector<StringRef> names;
  for (const ElementwiseOp &op : kOps)
    names.push_back(op.name);
  return llvm::join(names, ", ");
}

void llmc::buildElementwiseBody(ModuleOp module, LLVM::LLVMFuncOp function,
                                const KernelSpec &spec) {
  KernelConstants constants(spec);
  const ElementwiseOp &op = *findOp(constants.text("op"));
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  auto declare = [&](StringRef name, ArrayRef<Type> parameters) {
    if (!module.lookupSymbol(name))
      LLVM::LLVMFuncOp::create(
          b, module.getLoc(), name,
          LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), parameters));
  };
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  if (op.activation != kNone)
    declare(kActivate, {pointer, b.getI64Type()});
  if (op.isSoftcap)
    declare(kTanh, {pointer});
  BodyBuilder(function, op, constants.real("scale")).build(constants.integer("d"));
}
