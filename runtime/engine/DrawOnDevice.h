//===- DrawOnDevice.h - which requests' tokens a device may draw ------------===//
#ifndef LLMRT_ENGINE_DRAWONDEVICE_H
#define LLMRT_ENGINE_DRAWONDEVICE_H

#include "runtime/device/RowDraws.h"
#include "runtime/engine/Request.h"

namespace llmrt {

/// Whether RowDraw can say what \p options ask for. Not: penalties, DRY, bad words, typical p, XTC,
/// mirostat, grammars, log-probabilities, beams, a token that is biased twice, thousands of biases.
bool canDrawOnDevice(const RequestOptions &options);

/// Makes \p row of \p draws draw as Sampler::sample() would for token \p position of the sequence,
/// with \p banned and \p alsoBanned; false, and the row stays the host's, where there is no room
/// for its changes. \p params passed canDrawOnDevice().
bool drawOnDevice(RowDraws &draws, int64_t row, const SamplingParams &params, uint64_t position,
                  std::span<const int32_t> banned, std::span<const int32_t> alsoBanned);

} // namespace llmrt

#endif // LLMRT_ENGINE_DRAWONDEVICE_H
