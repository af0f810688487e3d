#include "runtime/server/TextEndpoints.h"

#include "runtime/server/ChatRequest.h"

namespace llmrt::server {
namespace {

/// messages and tools of a request, as chats have them.
std::optional<ApiError> readConversation(Fields &fields, const Served &served, ChatInput &input) {
  readMessages(fields, input.conversation);
  readTools(fields, served, input);
  input.conversation.addGenerationPrompt = fields.boolean("add_generation_prompt").value_or(true);
  if (JsonValue extra = fields.value("chat_template_kwargs")) {
    Result<Json> json = toJson(extra);
    if (json && json->is_object())
      input.conversation.extra = std::move(*json);
    else
      fields.fail("chat_template_kwargs", "must be an object");
  }
  return fields.error();
}

} // namespace

Computed tokenize(JsonValue body, const Served &served) {
  Fields fields(body);
  readModel(fields, served);
  bool addSpecial = fields.boolean("add_special_tokens").value_or(true);
  bool spelled = fields.boolean("return_token_strs").value_or(false);
  std::optional<std::string> text = fields.string("prompt");
  if (!text)
    text = fields.string("content");
  Result<std::vector<int32_t>> ids = std::vector<int32_t>();
  if (text && fields.value("messages")) {
    fields.fail("messages", "is given beside 'prompt'; give one of them");
  } else if (!text && fields.value("messages")) {
    ChatInput input;
    if (auto error = readConversation(fields, served, input))
      return *error;
    ids = served.model->encodeChat(std::move(input.conversation));
  } else if (!text && fields.ok()) {
    fields.fail("prompt", "is missing: a string; or give 'messages'");
  } else if (text) {
    ids = served.tokenizer->encode(*text, {.parseSpecial = true, .addSpecial = addSpecial});
  }
  if (fields.error())
    return *fields.error();
  if (!ids)
    return fromStatus(ids.status(), text ? "prompt" : "messages");
  Json json = {{"count", ids->size()}, {"max_model_len", served.maxContext}, {"tokens", *ids}};
  if (spelled) {
    json["token_strs"] = Json::array();
    for (int32_t id : *ids)
      json["token_strs"].push_back(tokenText(*served.tokenizer, id).text);
  }
  return json;
}

Computed detokenize(JsonValue body, const Served &served) {
  Fields fields(body);
  readModel(fields, served);
  std::optional<std::vector<int32_t>> ids = fields.ids("tokens", served.vocabulary);
  if (!ids)
    fields.fail("tokens", "is missing: an array of token ids");
  if (fields.error())
    return *fields.error();
  Result<std::string> text = served.tokenizer->decode(*ids, {.skipSpecial = false});
  if (!text)
    return fromStatus(text.status(), "tokens");
  return Json{{"prompt", *text}, {"content", *text}};
}

Computed applyTemplate(JsonValue body, const Served &served) {
  Fields fields(body);
  readModel(fields, served);
  ChatInput input;
  if (auto error = readConversation(fields, served, input))
    return *error;
  Result<std::string> text = served.model->applyChatTemplate(input.conversation);
  if (!text)
    return fromStatus(text.status(), "messages");
  return Json{{"prompt", *text}};
}

Computed embeddings(JsonValue body, const Served &served) {
  Fields fields(body);
  readModel(fields, served);
  if (fields.error())
    return *fields.error();
  return badRequest("the model '" + served.name() +
                        "' has no embeddings: it writes text; see /v1/completions",
                    "model", "model_not_supported");
}

Json planJson(const Served &served) {
  const fbs::Plan &head = served.model->plan()->head();
  const fbs::Model &model = *head.model();
  const EngineLimits &limits = served.engine->limits();
  Json segments = Json::array();
  for (const fbs::Segment *segment : *head.segments())
    segments.push_back({{"name", segment->name()->str()}, {"bytes", segment->size()}});
  return {{"model",
           {{"name", model.name()->str()},
            {"architecture", model.architecture()->str()},
            {"layers", model.layers()},
            {"hidden_size", model.hidden_size()},
            {"heads", model.heads()},
            {"kv_heads", model.kv_heads()},
            {"vocab_size", model.vocab_size()},
            {"max_context", model.max_context()},
            {"parameters", model.parameters()}}},
          {"compiler", head.provenance()->compiler()->str()},
          {"segments", std::move(segments)},
          {"kv_bytes_per_token", served.engine->shape().kvBytesPerToken},
          {"engine",
           {{"max_num_seqs", limits.maxSequences},
            {"max_num_batched_tokens", limits.maxBatchedTokens},
            {"block_size", limits.blockTokens},
            {"kv_blocks", limits.kvBlocks}}}};
}

} // namespace llmrt::server
