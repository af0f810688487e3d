#include "codegen/cuda/EmitFamilies.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cstdio>

using namespace llmc;
using namespace llmc::cuda;

CudaGrid KernelWriter::rowGrid(int64_t each, uint32_t divide) const {
  CudaGrid grid;
  grid.size = {};
  (onLogitRows() ? grid.size.perRow : grid.size.perToken) = each;
  grid.divide = divide;
  return grid;
}

std::string KernelWriter::structName() const {
  std::string name;
  bool upper = true;
  for (char c : spec.symbol) {
    if (c == '_') {
      upper = true;
      continue;
    }
    name += upper ? llvm::toUpper(c) : c;
    upper = false;
  }
  return name;
}

void KernelWriter::describe(const llvm::Twine &what) {
  std::vector<std::string> uses; // a layer may use a kernel twice
  for (const std::string &use : model.uses[index])
    if (!llvm::is_contained(uses, use))
      uses.push_back(use);
  std::string who;
  for (size_t i = 0; i < uses.size() && i < 2; ++i)
    who += (i ? ", " : "") + uses[i];
  if (uses.size() > 2)
    who += " and " + std::to_string(uses.size() - 2) + " more";
  line();
  line("/// " + who + ".");
  line("/// " + what + ".");
}

static std::string list(llvm::StringRef type, llvm::ArrayRef<std::string> items) {
  return ("  static constexpr " + type + " " + llvm::join(items, ", ") + ";").str();
}

void KernelWriter::integers(std::initializer_list<std::pair<llvm::StringRef, int64_t>> values) {
  std::vector<std::string> items;
  for (auto [name, value] : values)
    items.push_back((name + " = " + llvm::Twine(value)).str());
  line(list("int", items));
}

void KernelWriter::flags(std::initializer_list<std::pair<llvm::StringRef, bool>> values) {
  std::vector<std::string> items;
  for (auto [name, value] : values)
    items.push_back((name + " = " + (value ? "true" : "false")).str());
  line(list("bool", items));
}

void KernelWriter::rows() {
  constant("RowsOf", "kRows", onLogitRows() ? "RowsOf::Logits" : "RowsOf::Tokens");
}

void KernelWriter::weightFormat() {
  static constexpr llvm::StringLiteral packings[] = {"::kRows", "kN16", "kN16K4"};
  const bool integer = get("w_packing") == 2;
  line("  using Weight = WeightFormat<" + elementConstant(get("w_element")) + ", " +
       packings[get("w_packing")] + ", " + llvm::Twine(integer ? get("w_group") : 0) + ", " +
       elementConstant(integer ? get("w_scale") : 0) + ", " +
       (integer && get("w_has_min") ? "true" : "false") + ", " +
       elementConstant(integer && get("w_has_min") ? get("w_min") : 0) + ">;");
}

CudaEntry &KernelWriter::entry(const llvm::Twine &suffix, uint32_t threads,
                               const llvm::Twine &callee, const llvm::Twine &sharedType,
                               uint32_t sharedBytes, bool tensorMaps) {
  CudaEntry entry;
  entry.kernel = index;
  entry.name = (spec.symbol + suffix).str();
  entry.block = threads;
  entry.sharedBytes = sharedBytes;
  line();
  if (!sharedType.isTriviallyEmpty())
    line("static_assert(sizeof(" + sharedType + ") == " + llvm::Twine(sharedBytes) +
         ", \"the launch gives this much\");");
  line("extern \"C\" __global__ void __launch_bounds__(" + llvm::Twine(threads) + ", 1)");
  line("    " + entry.name + "(const LlmrtCudaStep *step, LlmrtCudaBindings b" +
       (tensorMaps ? ",\n        const __grid_constant__ LlmrtKvMaps maps) {" : ") {"));
  line("  " + callee + (tensorMaps ? "(step, b, maps);" : "(step, b);"));
  line("}");
  unit.entries.push_back(std::move(entry));
  return unit.entries.back();
}

llvm::LogicalResult KernelWriter::unsupported(const llvm::Twine &why) const {
  std::string use = model.uses[index].empty() ? "" : ", of '" + model.uses[index].front() + "'";
  return mlir::emitError(loc) << "kernel '" << spec.symbol << "' (" << spec.kind << use
                              << ") does not exist for CUDA: " << why;
}

std::string KernelWriter::floatLiteral(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  std::string s = text;
  if (s.find_first_of(".en") == std::string::npos)
    s += ".0";
  return s + "f";
}

llvm::StringRef KernelWriter::elementConstant(int64_t element) {
  static constexpr llvm::StringLiteral names[] = {"kF32", "kF16", "kBF16", "kI8", "kI4"};
  return names[element];
}

llvm::StringRef KernelWriter::elementName(int64_t element) {
  static constexpr llvm::StringLiteral names[] = {"f32", "f16", "bf16", "i8", "i4"};
  return names[element];
}

llvm::StringRef KernelWriter::activationConstant(int64_t activation) {
  static constexpr llvm::StringLiteral names[] = {"kNone",     "kSilu", "kGelu",
                                                  "kGeluTanh", "kRelu", "kSigmoid"};
  return names[activation];
}
