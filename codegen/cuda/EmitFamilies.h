//===- EmitFamilies.h - the writers of the kernel families --------------------------===//
#ifndef LLMC_CODEGEN_CUDA_EMITFAMILIES_H
#define LLMC_CODEGEN_CUDA_EMITFAMILIES_H

#include "codegen/cpu/KernelConstants.h"
#include "codegen/cuda/CudaCodegen.h"

namespace llmc::cuda {

/// One kernel on its way into a unit.
class KernelWriter {
public:
  KernelWriter(mlir::Location loc, const KernelSpec &spec, size_t index, const CudaModel &model,
               CudaUnit &unit)
      : constants(spec), loc(loc), spec(spec), index(index), model(model), unit(unit) {}

  const KernelConstants constants;
  int64_t get(llvm::StringRef name) const { return constants.integer(name); }

  const CudaModel &modelInfo() const { return model; }
  bool onLogitRows() const { return get("rows") == 1; }
  /// A grid dimension that counts the kernel's rows, times \p each.
  CudaGrid rowGrid(int64_t each = 1, uint32_t divide = 1) const;

  /// "gemm_0" as the name of a struct: "Gemm0".
  std::string structName() const;

  /// Appends a line, indented as given.
  void line(const llvm::Twine &text = "") { unit.text += text.str() + "\n"; }
  /// The comment above a struct: which layers use the kernel, then \p what.
  void describe(const llvm::Twine &what);
  void beginStruct() { line("struct " + structName() + " {"); }
  void endStruct() { line("};"); }
  void constant(llvm::StringRef type, llvm::StringRef name, const llvm::Twine &value) {
    line("  static constexpr " + type + " " + name + " = " + value + ";");
  }
  /// `static constexpr int A = 1, B = 2;`
  void integers(std::initializer_list<std::pair<llvm::StringRef, int64_t>> values);
  void flags(std::initializer_list<std::pair<llvm::StringRef, bool>> values);
  void real(llvm::StringRef name, double value) { constant("float", name, floatLiteral(value)); }
  void rows();
  /// `using Weight = WeightFormat<...>` from w_element and its like.
  void weightFormat();

  /// An entry that calls `CALLEE(step, b)`; \p shared is the type of its shared memory, or "". With
  /// \p tensorMaps it is given those of the cache and hands them on.
  CudaEntry &entry(const llvm::Twine &suffix, uint32_t threads, const llvm::Twine &callee,
                   const llvm::Twine &sharedType = "", uint32_t sharedBytes = 0,
                   bool tensorMaps = false);

  /// An error: there is no such kernel on CUDA.
  llvm::LogicalResult unsupported(const llvm::Twine &why) const;

  static std::string floatLiteral(double value);
  /// "kF16" and its like.
  static llvm::StringRef elementConstant(int64_t element);
  /// "f16" and its like.
  static llvm::StringRef elementName(int64_t element);
  static llvm::StringRef activationConstant(int64_t activation);

private:
  mlir::Location loc;
  const KernelSpec &spec;
  size_t index;
  const CudaModel &model;
  CudaUnit &unit;
};

llvm::LogicalResult emitGemm(KernelWriter &w);
llvm::LogicalResult emitAttention(KernelWriter &w);
/// Hopper's attention (attention_sm90.cuh), of the kernels that it serves: 16-bit keys and values
/// of one size, 64 or 128.
bool servesHopperAttention(const KernelWriter &w);
llvm::LogicalResult emitHopperAttention(KernelWriter &w);

/// How attention is cut up. The key tile and the split decide the bits: they depend on the head's
/// sizes, its type and the model's context alone.
struct AttentionTiling {
  int64_t keyTile, rowWarps, valueParts, stages, splitKeys, maxSplits;
};
/// Keys of a split: 32 of the longest context keep a whole GPU busy with one sequence.
int64_t attentionSplit(int64_t context, int64_t keyTile);
/// The struct of attention's constants. \p counters: bytes.
void writeAttention(KernelWriter &w, const AttentionTiling &t, int64_t counters);

/// A kernel of attention: its entry's suffix, its type, and of a block the threads, the shared
/// memory and the rows (heads that share a KV head, of each token).
struct AttentionLaunch {
  std::string suffix, type;
  int64_t threads, sharedBytes, rows;
};
/// The entries for query tiles of two tokens or more, and for those of one, whose context is cut
/// into splits.
void launchAttention(KernelWriter &w, const AttentionTiling &t, int64_t counters,
                     const AttentionLaunch &prefill, const AttentionLaunch &decode,
                     bool tensorMaps = false);
/// Bytes of a counter for each query tile, KV head and block of \p rows; a step has no more tiles
/// than tokens.
int64_t attentionCounters(const KernelWriter &w, int64_t rows);

llvm::LogicalResult emitEmbed(KernelWriter &w);
llvm::LogicalResult emitGatherRows(KernelWriter &w);
llvm::LogicalResult emitNorm(KernelWriter &w);
llvm::LogicalResult emitQuantize(KernelWriter &w);
llvm::LogicalResult emitRopeAngles(KernelWriter &w);
llvm::LogicalResult emitRopeGather(KernelWriter &w);
llvm::LogicalResult emitRopeSelect(KernelWriter &w);
llvm::LogicalResult emitRopeAppend(KernelWriter &w);
llvm::LogicalResult emitLatentAppend(KernelWriter &w);
llvm::LogicalResult emitElementwise(KernelWriter &w);
llvm::LogicalResult emitRoute(KernelWriter &w);
llvm::LogicalResult emitGroupedGemm(KernelWriter &w);
llvm::LogicalResult emitCombine(KernelWriter &w);

/// How SlicedGemm cuts a product up; the slices decide the bits and depend on the shape of w alone.
struct ProductTiling {
  int64_t tiles; ///< of 16 rows
  int64_t slices, rowTiles, stepsAStage, stages;
  int64_t stepBytes; ///< of one tile in shared memory
  int64_t sharedBytes(int64_t tokenTiles) const;
};
/// Of a product with the constants of `gemm`; an error where it does not fit.
llvm::LogicalResult tileProduct(const KernelWriter &w, ProductTiling &tiling);

/// Shared memory that every supported GPU gives a block: 99 KiB (compute
/// capability 8.6, 8.9, 12.0).
inline constexpr uint32_t kMaxSharedBytes = 99 * 1024;
/// The same of sm_90a.
inline constexpr uint32_t kMaxHopperSharedBytes = 227 * 1024;

} // namespace llmc::cuda

#endif // LLMC_CODEGEN_CUDA_EMITFAMILIES_H
