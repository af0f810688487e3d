//===- ResponsesAnswer.h - what /v1/responses answers -----------------------===//
#ifndef LLMRT_SERVER_RESPONSESANSWER_H
#define LLMRT_SERVER_RESPONSESANSWER_H

#include "runtime/server/BlockAnswer.h"

namespace llmrt::server {

class ResponsesAnswer final : public BlockAnswer {
public:
  /// \p echoed are members of the request that an answer repeats (instructions, tools, ...).
  ResponsesAnswer(AnswerHead head, const MessageForm &form, Json echoed)
      : BlockAnswer(std::move(head), form), echoed_(std::move(echoed)) {}

  void begin(std::string &events) override;
  void end(const Usage &usage, std::string &events) override;
  std::string whole(const Usage &usage) override;
  void error(const ApiError &error, std::string &events) override;

protected:
  void open(size_t index, std::string &events) override;
  void grow(size_t index, std::string_view text, std::string &events) override;
  void close(size_t index, std::string &events) override;

private:
  Json response(const char *status, const Usage *usage) const;
  Json item(const Block &block, const char *status) const;
  std::string itemId(const Block &block) const;
  void event(const char *type, Json members, std::string &events);
  const char *status() const;

  const Json echoed_;
  int64_t sequence_ = 0; ///< numbers the events
};

} // namespace llmrt::server

#endif // LLMRT_SERVER_RESPONSESANSWER_H
