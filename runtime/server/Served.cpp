#include "runtime/server/Served.h"

#include "runtime/text/Utf8.h"

#include <algorithm>

namespace llmrt::server {

namespace {

/// What the template itself writes into a conversation's history is what the model answers with.
ToolForm toolFormOf(const ChatTemplate &chatTemplate) {
  const std::string &source = chatTemplate.source();
  auto has = [&](const char *text) { return source.find(text) != std::string::npos; };
  if (!chatTemplate.mentions("tools"))
    return ToolForm::None;
  if (has("[TOOL_CALLS]"))
    return ToolForm::Mistral;
  if (has("<tool_call>"))
    return ToolForm::Hermes;
  if (has("<|python_tag|>") || has("\"parameters\": "))
    return ToolForm::Llama;
  return ToolForm::None;
}

Result<ToolForm> toolFormNamed(const std::string &name, const ChatTemplate &chatTemplate) {
  if (name == "auto")
    return toolFormOf(chatTemplate);
  if (name == "none")
    return ToolForm::None;
  if (name == "hermes" || name == "qwen")
    return ToolForm::Hermes;
  if (name == "llama" || name == "llama3_json")
    return ToolForm::Llama;
  if (name == "mistral")
    return ToolForm::Mistral;
  return invalidArgument("the tool call parser '" + name +
                         "' is not known; there are auto, none, hermes, llama and mistral");
}

Result<bool> readsReasoning(const std::string &name, const ChatTemplate &chatTemplate) {
  if (name == "auto")
    return chatTemplate.source().find("</think>") != std::string::npos;
  if (name == "none" || name == "think" || name == "deepseek_r1" || name == "qwen3")
    return name != "none";
  return invalidArgument("the reasoning parser '" + name +
                         "' is not known; there are auto, none and think");
}

} // namespace

Result<std::unique_ptr<Served>> Served::create(LoadedModel loaded, const ServerOptions &options,
                                               Log &log) {
  auto served = std::make_unique<Served>();
  served->model = loaded.model;
  LLMRT_ASSIGN_OR_RETURN(served->tokenizer, loaded.model->tokenizer());
  LLMRT_ASSIGN_OR_RETURN(served->vocabulary, loaded.model->sampledVocabulary());
  LLMRT_ASSIGN_OR_RETURN(std::vector<int32_t> endIds, loaded.model->endIds());
  if (loaded.model->hasChatTemplate()) {
    LLMRT_ASSIGN_OR_RETURN(served->chatTemplate, loaded.model->chatTemplate());
    LLMRT_ASSIGN_OR_RETURN(served->toolForm,
                           toolFormNamed(options.toolCallParser, *served->chatTemplate));
    LLMRT_ASSIGN_OR_RETURN(served->reasoning,
                           readsReasoning(options.reasoningParser, *served->chatTemplate));
  }
  served->maxContext = loaded.engine->shape().maxContext;
  served->names = options.servedNames;
  served->anyName = served->names.empty();
  if (served->anyName) {
    const auto *name = loaded.model->plan()->head().model()->name();
    served->names.push_back(name && name->size() > 0 ? name->str() : loaded.model->plan()->name());
  }
  // As OpenAI's API has it: an answer is sampled at temperature 1 unless the model's files or the
  // request say otherwise.
  served->samplingDefaults = loaded.model->samplingDefaults();
  if (served->samplingDefaults.temperature == 0)
    served->samplingDefaults.temperature = 1;
  served->metrics =
      std::make_unique<Metrics>(options.vllmMetricNames ? "vllm:" : "llmc:", served->name());
  served->engine = std::make_unique<EngineLoop>(std::move(loaded.engine), options.maxQueuedRequests,
                                                std::chrono::seconds(options.stepTimeout));
  served->generations.reset(new GenerationHost{*served->engine, *served->metrics, log,
                                               served->tokenizer, std::move(endIds)});
  return served;
}

bool Served::serves(const std::string &asked) const {
  return anyName || std::find(names.begin(), names.end(), asked) != names.end();
}

TokenText tokenText(const Tokenizer &tokenizer, int32_t id) {
  TokenText token;
  if (Result<std::string> bytes = tokenizer.tokenBytes(id))
    token.bytes = std::move(*bytes);
  token.text = repairUtf8(token.bytes);
  return token;
}

} // namespace llmrt::server
