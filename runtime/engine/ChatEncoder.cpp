#include "runtime/engine/ChatEncoder.h"

#include <algorithm>
#include <charconv>

namespace llmrt {
namespace {

/// A noncharacter (U+FDD0 .. U+FDEF: never text, kept by every string operation) that no message
/// holds; empty if they hold all of them.
std::string freeMark(const std::vector<ChatMessage> &messages) {
  for (unsigned char low = 0x90; low <= 0xaf; ++low) {
    std::string mark = {'\xef', '\xb7', static_cast<char>(low)};
    if (std::none_of(messages.begin(), messages.end(), [&](const ChatMessage &m) {
          return m.content.find(mark) != std::string::npos;
        }))
      return mark;
  }
  return "";
}

} // namespace

ChatEncoder::ChatEncoder(std::shared_ptr<const Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)) {
  for (int32_t id = 0; id < tokenizer_->vocabSize(); ++id)
    if (tokenizer_->isSpecial(id))
      if (auto text = tokenizer_->tokenText(id); text && !text->empty()) {
        controlTokens_.emplace_back(*text);
        begins_[static_cast<unsigned char>(text->front())] = true;
      }
  std::sort(controlTokens_.begin(), controlTokens_.end(),
            [](const std::string &a, const std::string &b) { return a.size() > b.size(); });
}

size_t ChatEncoder::controlTokenAt(std::string_view text, size_t at) const {
  if (!begins_[static_cast<unsigned char>(text[at])])
    return 0;
  for (const std::string &token : controlTokens_)
    if (text.compare(at, token.size(), token) == 0)
      return token.size();
  return 0;
}

Result<std::vector<int32_t>> ChatEncoder::encode(std::vector<ChatMessage> messages,
                                                 const Render &render) const {
  const std::string mark = freeMark(messages);
  std::vector<std::string> hidden;
  for (ChatMessage &message : messages) {
    std::string shown;
    for (size_t at = 0; at < message.content.size();) {
      size_t length = controlTokenAt(message.content, at);
      if (length == 0) {
        shown += message.content[at++];
        continue;
      }
      if (mark.empty())
        return invalidArgument("a message holds the control token '" +
                               message.content.substr(at, length) +
                               "' and every noncharacter of Unicode");
      shown += mark + std::to_string(hidden.size()) + mark;
      hidden.push_back(message.content.substr(at, length));
      at += length;
    }
    message.content = std::move(shown);
  }
  LLMRT_ASSIGN_OR_RETURN(std::string text, render(messages));

  std::vector<int32_t> ids;
  auto append = [&](std::string_view piece, bool parseSpecial) -> Status {
    LLMRT_ASSIGN_OR_RETURN(
        std::vector<int32_t> more,
        tokenizer_->encode(piece, {.parseSpecial = parseSpecial, .addSpecial = false}));
    ids.insert(ids.end(), more.begin(), more.end());
    return Status::ok();
  };
  size_t begin = 0;
  for (size_t from = 0; !hidden.empty();) {
    size_t open = text.find(mark, from);
    size_t close = open == std::string::npos ? open : text.find(mark, open + mark.size());
    if (close == std::string::npos)
      break;
    const char *digits = text.data() + open + mark.size();
    size_t number = hidden.size();
    auto [end, error] = std::from_chars(digits, text.data() + close, number);
    if (error != std::errc() || end != text.data() + close || number >= hidden.size()) {
      from = open + mark.size(); // the template took the pair apart: the rest of it is plain text
      continue;
    }
    if (open > begin)
      LLMRT_RETURN_IF_ERROR(append(std::string_view(text).substr(begin, open - begin), true));
    LLMRT_RETURN_IF_ERROR(append(hidden[number], false));
    begin = from = close + mark.size();
  }
  if (begin < text.size())
    LLMRT_RETURN_IF_ERROR(append(std::string_view(text).substr(begin), true));
  if (ids.empty())
    return invalidArgument("the chat template made an empty text of these messages");
  return ids;
}

} // namespace llmrt
