//===- ModelConfig.cpp - what the JSON files beside an ONNX model say ---------===//
#include "compiler/import/onnx/ModelConfig.h"

#include "compiler/import/huggingface/JsonFile.h"
#include "mlir/IR/Builders.h"

using namespace llmc;
using namespace mlir;
using llmrt::JsonValue;
using llmrt::Result;
using llmrt::Status;

namespace {

struct Config {
  std::optional<uint64_t> maxContext;
  llvm::SmallVector<int64_t> ends;
};

/// Takes the context length from \p key of \p in unless an earlier file gave one.
Status takeContext(const JsonFile &file, JsonValue in, std::string_view key, Config &config) {
  LLMRT_ASSIGN_OR_RETURN(std::optional<uint64_t> length, file.unsignedInteger(in, key));
  if (config.maxContext || !length)
    return Status::ok();
  if (*length == 0 || *length >= (uint64_t(1) << 31))
    return file.fail(std::string(key) + " is " + std::to_string(*length) +
                     ", which is no number of tokens");
  config.maxContext = length;
  return Status::ok();
}

/// Takes the end tokens (an id or a list of ids) of \p in unless an earlier file gave some.
Status takeEnds(const JsonFile &file, JsonValue in, Config &config) {
  JsonValue value = in["eos_token_id"];
  if (!config.ends.empty() || value.isNull())
    return Status::ok();
  llvm::SmallVector<JsonValue> ids;
  if (value.isArray())
    for (JsonValue id : value.elements())
      ids.push_back(id);
  else
    ids.push_back(value);
  for (JsonValue id : ids) {
    std::optional<int64_t> number =
        id.type() == llmrt::JsonType::Number ? id.asInteger() : std::nullopt;
    if (!number || *number < 0)
      return file.wrongType("eos_token_id", id, "a token id or a list of them");
    config.ends.push_back(*number);
  }
  return Status::ok();
}

Result<Config> readConfig(const std::string &folder) {
  Config config;
  LLMRT_ASSIGN_OR_RETURN(auto genai, JsonFile::open(folder, "genai_config.json"));
  LLMRT_ASSIGN_OR_RETURN(auto generation, JsonFile::open(folder, "generation_config.json"));
  LLMRT_ASSIGN_OR_RETURN(auto whole, JsonFile::open(folder, "config.json"));
  if (genai && genai->root()["model"].isObject()) {
    JsonValue model = genai->root()["model"];
    LLMRT_RETURN_IF_ERROR(takeContext(*genai, model, "context_length", config));
    LLMRT_RETURN_IF_ERROR(takeEnds(*genai, model, config));
  }
  if (generation)
    LLMRT_RETURN_IF_ERROR(takeEnds(*generation, generation->root(), config));
  if (whole) {
    LLMRT_RETURN_IF_ERROR(takeEnds(*whole, whole->root(), config));
    LLMRT_RETURN_IF_ERROR(takeContext(*whole, whole->root(), "max_position_embeddings", config));
    LLMRT_RETURN_IF_ERROR(takeContext(*whole, whole->root(), "n_positions", config)); // gpt2
  }
  return config;
}

} // namespace

LogicalResult llmc::onnx::attachModelConfig(ModuleOp module, llvm::StringRef folder) {
  Result<Config> config = readConfig(folder.empty() ? "." : folder.str());
  if (!config) {
    emitError(UnknownLoc::get(module.getContext())) << config.status().message();
    return failure();
  }
  Builder builder(module.getContext());
  NamedAttrList entries(module->getAttrOfType<DictionaryAttr>("graph.model"));
  if (config->maxContext)
    entries.set("max_context",
                builder.getI64IntegerAttr(static_cast<int64_t>(*config->maxContext)));
  if (!config->ends.empty())
    entries.set("eos_ids", builder.getI64ArrayAttr(config->ends));
  module->setAttr("graph.model", entries.getDictionary(module.getContext()));
  return success();
}
