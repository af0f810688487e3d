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

/// {"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details"}
Json usageJson(const Usage &usage);

class CompletionAnswer final : public Answer {
public:
  /// \p echo has the text of each prompt, to stand before its answers; empty: none is wanted.
  CompletionAnswer(AnswerHead head, std::shared_ptr<const Tokenizer> tokenizer, size_t prompts,
                   size_t choicesPerPrompt, std::vector<std::string> echo);

  bool stream() const override { return head_.stream; }
  void begin(std::string &events) override;
  void token(size_t choice, const SampledToken &token, std::string_view text, const Usage &usage,
             std::string &events) override;
  void finish(size_t choice, FinishReason reason, std::string_view text,
              std::string_view stopString, std::string &events) override;
  void end(const Usage &usage, std::string &events) override;
  std::string whole(const Usage &usage) override;

private:
  struct Choice {
    std::string text;
    Json logprobs; ///< null, or the four lists
    int64_t offset = 0;
    Json finishReason, stopReason;
  };
  Json chunk() const;
  void addLogprobs(Choice &choice, const SampledToken &token, Json &lists) const;
  void appendChunk(size_t choice, std::string_view text, Json logprobs, const Usage *usage,
                   std::string &events) const;

  const AnswerHead head_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<Choice> choices_;
  std::vector<std::string> echo_;
};

} // namespace llmrt::server

#endif // LLMRT_SERVER_COMPLETIONANSWER_H
