//===- QuantizedCheckpoint.h - checkpoints that are quantized already -------------===//
//
// What `quantization_config` of config.json says, and the tensors of each quantized matrix joined
// to one entry: "X.qweight", "X.qzeros", "X.scales" and "X.g_idx" become "X.weight". Which matrices
// are quantized follows from the tensors; how, from the configuration.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_IMPORT_HUGGINGFACE_QUANTIZEDCHECKPOINT_H
#define LLMC_IMPORT_HUGGINGFACE_QUANTIZEDCHECKPOINT_H

#include "compiler/import/decoder/TensorTable.h"
#include "compiler/import/huggingface/Checkpoint.h"
#include "compiler/import/huggingface/JsonFile.h"

#include <set>

namespace llmc {

struct QuantizationConfig {
  std::string method; ///< `quant_method`; empty: the checkpoint is not quantized
  uint64_t bits = 4;
  uint64_t group = 0;   ///< columns of a group; 0: a row is one group
  bool v2 = false;      ///< gptq: zero points as they are
  uint64_t block = 128; ///< fp8: rows and columns of a block
};

/// Reads `quantization_config`. Unsupported for a method, width or variant that isn't read, naming
/// it and what is.
llmrt::Result<QuantizationConfig> readQuantizationConfig(const JsonFile &config);

/// Adds an entry for each quantized matrix to \p table, puts the names of the tensors that it is
/// made of into \p taken, and says in \p notes what is kept as integers and what becomes f32.
llmrt::Status addQuantizedTensors(const Checkpoint &checkpoint, const QuantizationConfig &config,
                                  TensorTable &table, std::set<std::string> &taken,
                                  std::vector<std::string> &notes);

} // namespace llmc

#endif // LLMC_IMPORT_HUGGINGFACE_QUANTIZEDCHECKPOINT_H
