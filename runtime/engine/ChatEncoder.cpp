#include "runtime/engine/ChatEncoder.h"

#include "runtime/text/Json.h"

#include <algorithm>
#include <charconv>

namespace llmrt {
namespace {

using Json = nlohmann::ordered_json;

bool holds(const Json &value, const std::string &text) {
  if (value.is_string())
    return value.get_ref<const std::string &>().find(text) != std::string::npos;
  if (value.is_array())
    return std::any_of(value.begin(), value.end(),
                       [&](const Json &element) { return holds(element, text); });
  if (value.is_object())
    for (const auto &[name, member] : value.items())
      if (name.find(text) != std::string::npos || holds(member, text))
        return true;
  return false;
}

/// A noncharacter (U+FDD0 .. U+FDEF: never text, kept by every string operation) that the
/// conversation does not hold; empty if it holds all of them.
std::string freeMark(const Conversation &conversation) {
  for (unsigned char low = 0x90; low <= 0xaf; ++low) {
    std::string mark = {'\xef', '\xb7', static_cast<char>(low)};
    if (!holds(conversation.messages, mark) && !holds(conversation.tools, mark) &&
        !holds(conversation.documents, mark) && !holds(conversation.extra, mark))
      return mark;
  }
  return "";
}

/// Arguments of a tool call are JSON text that the template may read: an escape in them must not
/// turn into a control token then.
void unescape(Json &arguments) {
  if (!arguments.is_string())
    return;
  auto &text = arguments.get_ref<std::string &>();
  if (text.find('\\') == std::string::npos)
    return;
  Result<JsonDocument> checked = JsonDocument::parse(text); // bounds the nesting
  if (!checked || !checked->root().isObject())
    return;
  Json parsed = Json::parse(text, nullptr, false);
  if (!parsed.is_discarded())
    text = parsed.dump();
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

/// Texts that were taken out, and what stands around their numbers.
struct ChatEncoder::Hidden {
  std::string mark;
  std::vector<std::string> texts;
  std::string unmarkable; ///< a control token for which there is no mark
};

void ChatEncoder::hide(std::string &text, Hidden &hidden) const {
  std::string shown;
  for (size_t at = 0; at < text.size();) {
    size_t length = controlTokenAt(text, at);
    if (length == 0) {
      shown += text[at++];
      continue;
    }
    if (hidden.mark.empty())
      hidden.unmarkable = text.substr(at, length);
    shown += hidden.mark + std::to_string(hidden.texts.size()) + hidden.mark;
    hidden.texts.push_back(text.substr(at, length));
    at += length;
  }
  text = std::move(shown);
}

void ChatEncoder::hide(Json &value, Hidden &hidden) const {
  if (value.is_string())
    return hide(value.get_ref<std::string &>(), hidden);
  if (value.is_array())
    for (Json &element : value)
      hide(element, hidden);
  if (!value.is_object())
    return;
  Json object = Json::object();
  for (auto &[name, member] : value.get_ref<Json::object_t &>()) {
    std::string shown = name;
    hide(shown, hidden);
    if (name == "arguments")
      unescape(member);
    hide(member, hidden);
    // The names of an object differ, and so do their hidden forms.
    object.get_ref<Json::object_t &>().Container::emplace_back(std::move(shown), std::move(member));
  }
  value = std::move(object);
}

Result<std::vector<int32_t>> ChatEncoder::encode(Conversation conversation,
                                                 const Render &render) const {
  Hidden marked{freeMark(conversation), {}, {}};
  for (Json *part :
       {&conversation.messages, &conversation.tools, &conversation.documents, &conversation.extra})
    hide(*part, marked);
  if (!marked.unmarkable.empty())
    return invalidArgument("a message holds the control token '" + marked.unmarkable +
                           "' and every noncharacter of Unicode");
  const std::string &mark = marked.mark;
  const std::vector<std::string> &hidden = marked.texts;
  LLMRT_ASSIGN_OR_RETURN(std::string text, render(conversation));

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
