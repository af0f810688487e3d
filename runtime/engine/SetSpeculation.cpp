#include "runtime/engine/SetSpeculation.h"

namespace llmrt {

Status setSpeculation(const Model &model, std::string_view json, CpuEngineOptions &options) {
  LLMRT_ASSIGN_OR_RETURN(options.speculation, SpeculativeConfig::parse(json));
  if (options.speculation.method != SpeculativeConfig::Method::DraftModel)
    return Status::ok();
  Result<std::shared_ptr<const Model>> draft = Model::open(options.speculation.model);
  if (!draft)
    return draft.status().withContext("speculative-config");
  LLMRT_RETURN_IF_ERROR(model.checkDraft(**draft));
  options.draftPlan = (*draft)->plan();
  return Status::ok();
}

} // namespace llmrt
