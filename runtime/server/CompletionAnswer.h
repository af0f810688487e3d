//===- CompletionAnswer.h - what /v1/completions answers --------------------===//
#ifndef LLMRT_SERVER_COMPLETIONANSWER_H
#define LLMRT_SERVER_COMPLETIONANSWER_H

#include "runtime/server/Answer.h"
#include "runtime/text/Tokenizer.h"

#include <memory>
#include <vector>

namespace llmrt::server {

struct AnswerHead {
  std::string id, model;
  int64_t created = 0;
  bool stream = false;
  bool includeUsage = false;    ///< a last chunk of a stream has the usage
  bool continuousUsage = false; ///< every chunk has it
  int32_t logprobs = -1;        ///< as in SamplingParams
};

/// Which choices an answer has, and of which prompts.
struct CompletionLayout {
  size_t prompts = 1;
  size_t choices = 1; ///< of each prompt that come
  size_t answers = 1; ///< of them that are given: those with the highest mean log-probability
  /// Of each prompt, to stand before its answers: its text, and its first token, which has no
  /// log-probability. Empty: none is wanted.
  std::vector<std::string> echo;
  std::vector<int32_t> firstIds;
};

/// {"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details"}
Json usageJson(const Usage &usage);

class CompletionAnswer final : public Answer {
public:
  CompletionAnswer(AnswerHead head, std::shared_ptr<const Tokenizer> tokenizer,
                   CompletionLayout layout);

  bool stream() const override { return head_.stream; }
  void begin(std::string &events) override;
  void promptToken(size_t choice, const SampledToken &token) override;
  void token(size_t choice, const SampledToken &token, std::string_view text, const Usage &usage,
             std::string &events) override;
  void finish(size_t choice, FinishReason reason, std::string_view text,
              std::string_view stopString, std::string &events) override;
  void end(const Usage &usage, std::string &events) override;
  std::string whole(const Usage &usage) override;

private:
  struct Choice {
    std::string text;
    Json logprobs;      ///< null, or the four lists
    int64_t offset = 0; ///< of the next token in the text, in characters
    double sumLogprob = 0;
    int64_t tokens = 0;
    bool echoed = false; ///< its prompt stands before it
    Json finishReason, stopReason;
  };
  Json chunk() const;
  void addLogprobs(Choice &choice, const SampledToken &token, Json &lists) const;
  void echo(size_t choice, std::string &events);
  Json promptLists(size_t prompt) const;
  std::vector<size_t> best() const;
  void appendChunk(size_t choice, std::string_view text, Json logprobs, const Usage *usage,
                   std::string &events) const;

  const AnswerHead head_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<Choice> choices_;
  const CompletionLayout layout_;
  std::vector<std::vector<SampledToken>> promptTokens_; ///< of each prompt, the second and on
};

} // namespace llmrt::server

#endif // LLMRT_SERVER_COMPLETIONANSWER_H
