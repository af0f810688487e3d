#include "runtime/server/CompletionRequest.h"

#include "runtime/server/GrammarFields.h"

#include <random>

namespace llmrt::server {
namespace {

constexpr size_t mostPrompts = 256;

/// An array of token ids; one that is none of the model's is an error.
std::vector<int32_t> tokens(Fields &fields, JsonValue list, int32_t vocabulary) {
  std::vector<int32_t> ids;
  for (JsonValue element : list.elements()) {
    std::optional<int64_t> id = asWhole(element);
    if (!id || *id < 0 || *id >= vocabulary) {
      std::string shown = element.type() == JsonType::Number
                              ? std::string(element.asString().substr(0, 40))
                              : element.typeName();
      fields.fail("prompt", "holds " + shown + " among token ids, which go from 0 to " +
                                std::to_string(vocabulary - 1));
      return {};
    }
    ids.push_back(static_cast<int32_t>(*id));
  }
  if (ids.empty())
    fields.fail("prompt", "is an empty array of token ids; give at least one");
  return ids;
}

class PromptReader {
public:
  PromptReader(Fields &fields, const Served &served, bool addSpecial, bool echo,
               GenerationRequest &request, std::vector<std::string> &texts)
      : fields_(fields), served_(served), addSpecial_(addSpecial), echo_(echo), request_(request),
        texts_(texts) {}

  void read() {
    JsonValue prompt = fields_.value("prompt");
    if (!prompt)
      return fields_.fail("prompt", "is missing: a string, an array of strings, of token ids, or "
                                    "of arrays of token ids");
    if (prompt.isString())
      return addText(prompt);
    if (!prompt.isArray())
      return fields_.fail("prompt",
                          std::string("must be a string or an array, not ") + prompt.typeName());
    JsonValue first;
    for (JsonValue element : prompt.elements()) {
      first = element;
      break;
    }
    if (!first)
      return fields_.fail("prompt", "is an empty array; give at least one prompt");
    if (first.type() == JsonType::Number)
      return addIds(prompt);
    if (prompt.size() > mostPrompts)
      return fields_.fail("prompt", "has " + std::to_string(prompt.size()) + " prompts; at most " +
                                        std::to_string(mostPrompts) + " are allowed");
    for (JsonValue element : prompt.elements()) {
      if (element.type() != first.type() || !(element.isString() || element.isArray()))
        return fields_.fail("prompt", std::string("mixes ") + first.typeName() + " and " +
                                          element.typeName() +
                                          "; its elements must be strings, or token ids, or "
                                          "arrays of token ids");
      if (element.isString())
        addText(element);
      else
        addIds(element);
      if (!fields_.ok())
        return;
    }
  }

private:
  void addText(JsonValue value) {
    std::string_view text = value.asString();
    Result<std::vector<int32_t>> ids =
        served_.tokenizer->encode(text, {.parseSpecial = true, .addSpecial = addSpecial_});
    if (!ids)
      return fields_.fail(fromStatus(ids.status(), "prompt"));
    if (ids->empty())
      return fields_.fail("prompt", "is empty, and this model has no token to begin a text with");
    request_.prompts.push_back(std::move(*ids));
    if (echo_)
      texts_.emplace_back(text);
  }
  void addIds(JsonValue list) {
    request_.prompts.push_back(tokens(fields_, list, served_.vocabulary));
    if (echo_ && fields_.ok())
      if (Result<std::string> text = served_.tokenizer->decode(request_.prompts.back()))
        texts_.push_back(std::move(*text));
  }

  Fields &fields_;
  const Served &served_;
  const bool addSpecial_, echo_;
  GenerationRequest &request_;
  std::vector<std::string> &texts_;
};

} // namespace

std::string newAnswerId(const char *prefix) {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  char text[48];
  std::snprintf(text, sizeof text, "%s-%016llx%08llx", prefix,
                static_cast<unsigned long long>(generator()),
                static_cast<unsigned long long>(generator() >> 32));
  return text;
}

std::variant<PreparedRequest, ApiError> prepareCompletion(JsonValue body, const Served &served) {
  Fields fields(body);
  PreparedRequest prepared;
  GenerationRequest &request = prepared.generation;
  AnswerHead head;
  readModel(fields, served);
  readSampling(fields, served, request);
  readStream(fields, request, head);
  request.maxNewTokens = fields.integer("max_tokens", 0, INT64_MAX).value_or(16);
  // Cheap here, and endless where only the context limits an answer.
  request.maxNewTokens = std::min(request.maxNewTokens, served.maxContext);
  bool echo = fields.boolean("echo").value_or(false);
  if (auto logprobs = fields.integer("logprobs", 0, maxLogprobs)) {
    request.sampling.logprobs = head.logprobs = static_cast<int32_t>(*logprobs);
    if (echo)
      request.promptLogprobs = head.logprobs;
  }
  readGrammar(fields, served, request);
  bool addSpecial = fields.boolean("add_special_tokens").value_or(true);
  std::vector<std::string> texts;
  if (fields.ok())
    PromptReader(fields, served, addSpecial, echo, request, texts).read();
  else
    fields.value("prompt");
  prepared.unknown = checkUnread(fields);
  if (fields.error())
    return *fields.error();
  // What the choices are ranked by.
  if (request.choices > request.answers)
    request.sampling.logprobs = std::max(request.sampling.logprobs, 0);
  head.id = newAnswerId("cmpl");
  head.model = served.name();
  head.created = static_cast<int64_t>(std::time(nullptr));
  CompletionLayout layout{
      request.prompts.size(), request.choices, request.answers, std::move(texts), {}};
  if (echo)
    for (const std::vector<int32_t> &prompt : request.prompts)
      layout.firstIds.push_back(prompt.front());
  prepared.answer =
      std::make_unique<CompletionAnswer>(std::move(head), served.tokenizer, std::move(layout));
  return prepared;
}

} // namespace llmrt::server
