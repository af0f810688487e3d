//===- Model.h - a plan with its tokenizer and chat template ----------------===//
//
// What the C API and the tools open. The tokenizer and the template are made when first asked
// for, so a caller that works with token ids doesn't wait for them.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_ENGINE_MODEL_H
#define LLMRT_ENGINE_MODEL_H

#include "runtime/decode/SamplingParams.h"
#include "runtime/decode/grammar/VocabularyTrie.h"
#include "runtime/engine/ChatEncoder.h"
#include "runtime/plan/Plan.h"
#include "runtime/text/Tokenizer.h"
#include "runtime/text/chat/ChatTemplate.h"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace llmrt {

/// All members are const and may be called from any number of threads.
class Model {
public:
  static Result<std::shared_ptr<const Model>> open(const std::string &path,
                                                   const PlanOptions &options = {});
  static Result<std::shared_ptr<const Model>> fromPlan(std::shared_ptr<const Plan> plan);

  const std::shared_ptr<const Plan> &plan() const { return plan_; }
  bool hasTokenizer() const { return plan_->head().text()->tokenizer_segment() >= 0; }
  bool hasChatTemplate() const { return plan_->head().text()->chat_template()->size() > 0; }

  /// An error where the plan has none, saying how to make one that has.
  Result<std::shared_ptr<const Tokenizer>> tokenizer() const;
  /// Ids that may be drawn: those that the tokenizer has, or every row of the logits.
  Result<int32_t> sampledVocabulary() const;
  /// Text of a prompt to ids; an empty text gives the beginning token where the tokenizer puts
  /// one, and an error otherwise.
  Result<std::vector<int32_t>> encodePrompt(std::string_view text) const;
  /// The conversation as the model's own template writes it: for people to read, or for callers
  /// that encode it themselves. \p addGenerationPrompt begins the assistant's answer.
  Result<std::string> applyChatTemplate(const Conversation &conversation) const;
  Result<std::string> applyChatTemplate(const std::vector<ChatMessage> &messages,
                                        bool addGenerationPrompt) const;
  /// The conversation as token ids: the template's control tokens become tokens, those spelled in
  /// messages stay text.
  Result<std::vector<int32_t>> encodeChat(Conversation conversation) const;
  Result<std::vector<int32_t>> encodeChat(const std::vector<ChatMessage> &messages,
                                          bool addGenerationPrompt) const;
  /// The template itself: what it takes (tools, content parts).
  Result<ChatTemplate> chatTemplate() const;

  /// Tokens that end an answer: the plan's, and the tokenizer's end token.
  Result<std::vector<int32_t>> endIds() const;
  /// What the model's files recommend for sampling; greedy where they say so.
  SamplingParams samplingDefaults() const;

  /// The tokens by their bytes, for RequestOptions::grammar; made when first asked for.
  Result<std::shared_ptr<const VocabularyTrie>> vocabularyTrie() const;
  /// That \p draft can guess for this model: a token id means the same text in both.
  Status checkDraft(const Model &draft) const;

private:
  explicit Model(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}
  std::shared_ptr<const Plan> plan_;
  mutable std::mutex mutex_;
  mutable std::optional<Result<std::shared_ptr<const Tokenizer>>> tokenizer_;
  mutable std::optional<Result<ChatTemplate>> template_;
  mutable std::optional<ChatEncoder> chatEncoder_;
  mutable std::shared_ptr<const VocabularyTrie> trie_;
};

} // namespace llmrt

#endif // LLMRT_ENGINE_MODEL_H
