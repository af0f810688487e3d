//===- CudaCodegen.h - plan kernels to CUDA C++ -----------------------------------===//
//
//   KernelSpec ──▶ one translation unit a kernel family: structs of constants, generated epilogues,
//   one __global__ entry a kernel and variant, over the templates of kernels/ ──NVRTC──▶ cubin, PTX
//
// The text needs nothing but the headers of cudaHeaders(); it is what a person would write, and the
// emulator (test/emulator) runs it unmodified. This library needs no CUDA toolkit.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CODEGEN_CUDA_CUDACODEGEN_H
#define LLMC_CODEGEN_CUDA_CUDACODEGEN_H

#include "codegen/KernelSpec.h"
#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/STLExtras.h"

namespace llmc {

/// A size or count in the step's T, S, R and Q.
struct CudaAffine {
  int64_t constant = 0, perToken = 0, perSequence = 0, perRow = 0, perTile = 0;
};

/// One dimension of a grid: size / divide, rounded up.
struct CudaGrid {
  CudaAffine size = {1, 0, 0, 0, 0};
  uint32_t divide = 1;
};

/// The values of CudaWhen in plan.fbs.
enum class CudaWhen : uint8_t { Always = 0, LongTiles = 1, SingleTiles = 2 };

/// One __global__ function: a kernel of the program, or a variant of it for few rows.
struct CudaEntry {
  size_t kernel = 0; ///< index of its KernelSpec
  std::string name;
  uint32_t block = 0;       ///< threads
  uint32_t sharedBytes = 0; ///< dynamic shared memory
  CudaGrid x, y, z;
  uint32_t contextSplit = 0; ///< z counts for each so many tokens of the longest context; 0: once
  uint32_t maxRows = 0;      ///< 0: any number
  CudaWhen when = CudaWhen::Always;
  CudaAffine scratch; ///< bytes
  /// The architecture on which another unit has an entry in its place; "": none.
  std::string replacedOn;

  bool isFor(llvm::StringRef arch) const { return replacedOn != arch; }
};

/// One translation unit.
struct CudaUnit {
  std::string family; ///< "gemm", ...: the file is family.cu
  std::string text;
  std::vector<CudaEntry> entries;
  bool isSampling = false;  ///< of emitCudaSampling(): its entries are of no kernel of the program
  std::string architecture; ///< the only one that it is for; "": every one

  /// Whether a plan for that architecture has an entry of it.
  bool isFor(llvm::StringRef arch) const {
    return (architecture.empty() || architecture == arch) &&
           llvm::any_of(entries, [&](const CudaEntry &e) { return e.isFor(arch); });
  }
};

/// What the text says and depends on besides the kernels.
struct CudaModel {
  std::string name;     ///< of the model, for the comments
  std::string compiler; ///< "llmc 0.1.0"
  int64_t maxTokens = 0, queryTile = 0, maxContext = 0;
  std::vector<std::vector<std::string>> uses; ///< names of the commands, for each KernelSpec
};

/// Writes the units of \p specs, which verifyKernelSpec accepted. What no kernel text implements is
/// an error at \p loc that names the kernel.
llvm::FailureOr<std::vector<CudaUnit>>
emitCudaUnits(mlir::Location loc, llvm::ArrayRef<KernelSpec> specs, const CudaModel &model);

/// The unit that draws tokens from rows of \p vocabulary logits; its entries, of no kernel of the
/// program, are launched in this order after it.
CudaUnit emitCudaSampling(const CudaModel &model, int64_t vocabulary);

/// A header that the units include, by the name they include it with.
struct CudaHeader {
  llvm::StringRef name, text;
};
llvm::ArrayRef<CudaHeader> cudaHeaders();

} // namespace llmc

#endif // LLMC_CODEGEN_CUDA_CUDACODEGEN_H
