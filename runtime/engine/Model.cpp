#include "runtime/engine/Model.h"

#include "runtime/text/chat/ApplyChatTemplate.h"

#include <algorithm>

namespace llmrt {

Result<std::shared_ptr<const Model>> Model::open(const std::string &path,
                                                 const PlanOptions &options) {
  LLMRT_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, Plan::open(path, options));
  return fromPlan(std::move(plan));
}

Result<std::shared_ptr<const Model>> Model::fromPlan(std::shared_ptr<const Plan> plan) {
  if (plan->head().main())
    return invalidArgument(plan->name() + ": the plan is of a graph that is no decoder: it takes "
                                          "tensors (llmc run --input NAME=FILE.npy), not text");
  return std::shared_ptr<const Model>(new Model(std::move(plan)));
}

Result<std::shared_ptr<const Tokenizer>> Model::tokenizer() const {
  std::lock_guard lock(mutex_);
  if (tokenizer_)
    return *tokenizer_;
  auto make = [&]() -> Result<std::shared_ptr<const Tokenizer>> {
    int32_t segment = plan_->head().text()->tokenizer_segment();
    if (segment < 0)
      return invalidArgument(plan_->name() + ": the plan has no tokenizer; compile it with "
                                             "--tokenizer DIR, or give token ids");
    Result<std::shared_ptr<Tokenizer>> made =
        Tokenizer::fromBlob(plan_->segment(static_cast<size_t>(segment)));
    if (!made)
      return made.status().withContext(plan_->name() + ": tokenizer");
    if (Status fits = (*made)->checkVocabulary(plan_->head().model()->vocab_size()); !fits)
      return fits.withContext(plan_->name() + ": tokenizer");
    return std::shared_ptr<const Tokenizer>(std::move(*made));
  };
  tokenizer_.emplace(make());
  return *tokenizer_;
}

Result<int32_t> Model::sampledVocabulary() const {
  int32_t rows = static_cast<int32_t>(plan_->head().model()->vocab_size());
  if (!hasTokenizer())
    return rows;
  LLMRT_ASSIGN_OR_RETURN(auto tokenizer, this->tokenizer());
  return std::min(rows, tokenizer->vocabSize());
}

Result<std::vector<int32_t>> Model::encodePrompt(std::string_view text) const {
  LLMRT_ASSIGN_OR_RETURN(auto tokenizer, this->tokenizer());
  LLMRT_ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer->encode(text));
  if (ids.empty())
    return invalidArgument("the prompt is empty, and this model has no token to begin a text with");
  return ids;
}

namespace {

Conversation conversationOf(const std::vector<ChatMessage> &messages, bool addGenerationPrompt) {
  Conversation conversation;
  conversation.messages = nlohmann::ordered_json::array();
  for (const ChatMessage &message : messages)
    conversation.messages.push_back({{"role", message.role}, {"content", message.content}});
  conversation.addGenerationPrompt = addGenerationPrompt;
  return conversation;
}

} // namespace

Result<ChatTemplate> Model::chatTemplate() const {
  std::lock_guard lock(mutex_);
  if (!hasChatTemplate())
    return invalidArgument(plan_->name() + ": the model has no chat template; use a plain prompt");
  if (!template_)
    template_.emplace(ChatTemplate::parse(plan_->head().text()->chat_template()->str()));
  if (!*template_)
    return template_->status().withContext(plan_->name() + ": chat template");
  return *template_;
}

Result<std::string> Model::applyChatTemplate(const Conversation &conversation) const {
  LLMRT_ASSIGN_OR_RETURN(ChatTemplate made, chatTemplate());
  const fbs::Text &text = *plan_->head().text();
  ApplyOptions options;
  options.addGenerationPrompt = conversation.addGenerationPrompt;
  options.tools = conversation.tools;
  options.documents = conversation.documents;
  options.extra = conversation.extra;
  options.bosToken = text.bos_token()->str();
  options.eosToken = text.eos_token()->str();
  Result<std::string> rendered = llmrt::applyChatTemplate(made, conversation.messages, options);
  if (!rendered)
    return rendered.status().withContext("chat template");
  return rendered;
}

Result<std::string> Model::applyChatTemplate(const std::vector<ChatMessage> &messages,
                                             bool addGenerationPrompt) const {
  return applyChatTemplate(conversationOf(messages, addGenerationPrompt));
}

Result<std::vector<int32_t>> Model::encodeChat(Conversation conversation) const {
  LLMRT_ASSIGN_OR_RETURN(auto tokenizer, this->tokenizer());
  const ChatEncoder *encoder = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (!chatEncoder_)
      chatEncoder_.emplace(tokenizer);
    encoder = &*chatEncoder_;
  }
  return encoder->encode(std::move(conversation),
                         [&](const Conversation &c) { return applyChatTemplate(c); });
}

Result<std::vector<int32_t>> Model::encodeChat(const std::vector<ChatMessage> &messages,
                                               bool addGenerationPrompt) const {
  return encodeChat(conversationOf(messages, addGenerationPrompt));
}

Result<std::vector<int32_t>> Model::endIds() const {
  const auto *listed = plan_->head().text()->generation()->stop_ids();
  std::vector<int32_t> ids(listed->begin(), listed->end());
  if (ids.empty() && hasTokenizer()) {
    LLMRT_ASSIGN_OR_RETURN(auto tokenizer, this->tokenizer());
    if (std::optional<int32_t> end = tokenizer->eosId())
      ids.push_back(*end);
  }
  return ids;
}

Result<std::shared_ptr<const VocabularyTrie>> Model::vocabularyTrie() const {
  LLMRT_ASSIGN_OR_RETURN(auto tokenizer, this->tokenizer());
  LLMRT_ASSIGN_OR_RETURN(int32_t count, sampledVocabulary());
  std::lock_guard lock(mutex_);
  if (!trie_) {
    Status failure;
    trie_ = VocabularyTrie::build(count, [&](int32_t id) -> std::string {
      if (!tokenizer->isToken(id) || tokenizer->isSpecial(id))
        return {};
      Result<std::string> bytes = tokenizer->tokenBytes(id);
      if (!bytes)
        failure = bytes.status();
      return bytes ? *bytes : std::string();
    });
    if (!failure) {
      trie_.reset();
      return failure;
    }
  }
  return trie_;
}

Status Model::checkDraft(const Model &draft) const {
  const std::string &name = draft.plan()->name();
  if (hasTokenizer() != draft.hasTokenizer())
    return invalidArgument(name + ": the draft model has " + (hasTokenizer() ? "no" : "a") +
                           " tokenizer, unlike the model; compile both with the same --tokenizer");
  LLMRT_ASSIGN_OR_RETURN(int32_t count, sampledVocabulary());
  LLMRT_ASSIGN_OR_RETURN(int32_t draftCount, draft.sampledVocabulary());
  if (count != draftCount)
    return invalidArgument(name + ": the draft model has " + std::to_string(draftCount) +
                           " tokens, the model " + std::to_string(count) +
                           "; a draft model needs the same tokenizer");
  if (!hasTokenizer())
    return Status::ok();
  LLMRT_ASSIGN_OR_RETURN(auto own, tokenizer());
  LLMRT_ASSIGN_OR_RETURN(auto other, draft.tokenizer());
  for (int32_t id = 0; id < count; ++id)
    if (own->tokenText(id) != other->tokenText(id))
      return invalidArgument(name + ": token " + std::to_string(id) + " is '" +
                             std::string(other->tokenText(id).value_or("")) +
                             "' in the draft model and '" +
                             std::string(own->tokenText(id).value_or("")) +
                             "' in the model; a draft model needs the same tokenizer");
  return Status::ok();
}

SamplingParams Model::samplingDefaults() const {
  const fbs::GenerationDefaults &defaults = *plan_->head().text()->generation();
  SamplingParams params;
  params.repetitionPenalty = defaults.repetition_penalty();
  if (!defaults.do_sample())
    return params;
  params.temperature = defaults.temperature();
  params.topK = defaults.top_k();
  params.topP = defaults.top_p();
  params.minP = defaults.min_p();
  return params;
}

} // namespace llmrt
