//===- SetSpeculation.h - a speculative config becomes engine options -------===//
#ifndef LLMRT_ENGINE_SETSPECULATION_H
#define LLMRT_ENGINE_SETSPECULATION_H

#include "runtime/engine/CpuEngine.h"
#include "runtime/engine/Model.h"

#include <string_view>

namespace llmrt {

/// Reads \p json (SpeculativeConfig.h), opens a draft model's plan if it names one and checks that
/// its tokens are \p model's; sets options.speculation and options.draftPlan.
Status setSpeculation(const Model &model, std::string_view json, CpuEngineOptions &options);

} // namespace llmrt

#endif // LLMRT_ENGINE_SETSPECULATION_H
