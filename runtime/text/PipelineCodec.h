//===- PipelineCodec.h - the blob's Pipeline section ---------------------------===//
#ifndef LLMRT_TEXT_PIPELINECODEC_H
#define LLMRT_TEXT_PIPELINECODEC_H

#include "runtime/text/TokenizerBlob.h"

namespace llmrt {

std::string encodePipeline(const PipelineConfig &config);

/// Checks every length, enumerator and text (all are well-formed UTF-8, a step stands in a
/// list that can hold it, added tokens are sorted), but no token index.
Result<PipelineConfig> decodePipeline(std::span<const uint8_t> bytes);

} // namespace llmrt

#endif // LLMRT_TEXT_PIPELINECODEC_H
