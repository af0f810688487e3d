//===- NpyTensor.h - tensors of any element type as .npy files ---------------===//
#ifndef LLMC_TOOLS_COMMON_NPYTENSOR_H
#define LLMC_TOOLS_COMMON_NPYTENSOR_H

#include "runtime/device/cpu/GraphExecutor.h"

namespace llmc::tools {

/// Reads \p path. \p wanted is the element type (ONNX number) that the tensor is for: types that
/// NumPy does not have are stored as raw bytes ('|V1', '<V2', as ml_dtypes writes them) or as
/// integers of 8 bits (4-bit and 2-bit integers), and are read as that type.
llmrt::Result<llmrt::GraphValue> readNpy(const std::string &path, int32_t wanted);

/// Writes \p value in the same way; the file has its name only when all of it was written.
llmrt::Status writeNpy(const std::string &path, const llmrt::GraphValue &value);

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_NPYTENSOR_H
