#include "codegen/cuda/CudaCodegen.h"

using namespace llmc;

static const CudaHeader kHeaders[] = {
#include "KernelTexts.inc"
};

llvm::ArrayRef<CudaHeader> llmc::cudaHeaders() { return kHeaders; }
