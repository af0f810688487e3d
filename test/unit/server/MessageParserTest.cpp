#include "runtime/server/MessageParser.h"

#include <gtest/gtest.h>

using namespace llmrt::server;

namespace {

/// Everything joined: "content|reasoning|name(arguments)...".
struct Parsed {
  std::string content, reasoning;
  std::vector<std::pair<std::string, std::string>> calls;
  size_t complete = 0;
  bool operator==(const Parsed &) const = default;
};

Parsed parse(const MessageForm &form, const std::string &text, size_t step) {
  MessageParser parser(form);
  Parsed result;
  std::vector<MessagePiece> pieces;
  auto take = [&] {
    for (const MessagePiece &piece : pieces)
      switch (piece.kind) {
      case MessagePiece::Kind::Content:
        result.content += piece.text;
        break;
      case MessagePiece::Kind::Reasoning:
        result.reasoning += piece.text;
        break;
      case MessagePiece::Kind::ToolName:
        result.calls.emplace_back(piece.text, "");
        break;
      case MessagePiece::Kind::ToolArguments:
        ASSERT_FALSE(result.calls.empty());
        result.calls.back().second += piece.text;
        break;
      }
    pieces.clear();
  };
  for (size_t at = 0; at < text.size(); at += step) {
    parser.push(std::string_view(text).substr(at, step), pieces);
    take();
  }
  parser.finish(pieces);
  take();
  result.complete = parser.completeCalls();
  return result;
}

/// The result must not depend on how the text is cut.
Parsed parsed(const MessageForm &form, const std::string &text) {
  Parsed whole = parse(form, text, text.size() + 1);
  for (size_t step : {1, 2, 3, 5, 7, 11})
    EXPECT_EQ(parse(form, text, step), whole) << step << " bytes at a time: " << text;
  return whole;
}

constexpr MessageForm hermes{.tools = ToolForm::Hermes};
constexpr MessageForm llama{.tools = ToolForm::Llama};
constexpr MessageForm mistral{.tools = ToolForm::Mistral};
constexpr MessageForm thinks{.reasoning = true};

using Calls = std::vector<std::pair<std::string, std::string>>;

TEST(MessageParser, PlainTextIsContent) {
  EXPECT_EQ(parsed({}, "a <tool_call> b\n").content, "a <tool_call> b\n");
  EXPECT_EQ(parsed(hermes, "just text, {\"name\": 1}\n\n").content, "just text, {\"name\": 1}\n\n");
  EXPECT_EQ(parsed(hermes, "a <tool_cal").content, "a <tool_cal");
}

TEST(MessageParser, HermesCalls) {
  Parsed p = parsed(hermes, "Let me see.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": "
                            "[1, {\"b\": \"}\\\"\"}]}}\n</tool_call>\n<tool_call>\n{\"arguments\": "
                            "{}, \"name\": \"g\"}\n</tool_call>");
  EXPECT_EQ(p.content, "Let me see.");
  EXPECT_EQ(p.calls, (Calls{{"f", "{\"a\": [1, {\"b\": \"}\\\"\"}]}"}, {"g", "{}"}}));
  EXPECT_EQ(p.complete, 2u);
}

TEST(MessageParser, TextAfterCallsIsContent) {
  Parsed p = parsed(hermes, "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call> done");
  EXPECT_EQ(p.content, "done");
  EXPECT_EQ(p.complete, 1u);
}

TEST(MessageParser, ArgumentsAsText) {
  Parsed p =
      parsed(hermes, "<tool_call>{\"name\":\"f\",\"arguments\":\"{\\\"a\\\": 1}\"}</tool_call>");
  EXPECT_EQ(p.calls, (Calls{{"f", "{\"a\": 1}"}}));
}

TEST(MessageParser, NoArguments) {
  EXPECT_EQ(parsed(hermes, "<tool_call>{\"name\":\"f\"}</tool_call>").calls, (Calls{{"f", "{}"}}));
}

TEST(MessageParser, BrokenCallIsContent) {
  for (const char *text : {"<tool_call>nothing</tool_call>", "<tool_call>{\"a\": 1}</tool_call>",
                           "<tool_call>{\"name\": 5}", "<tool_call>{]", "<tool_call>"}) {
    Parsed p = parsed(hermes, text);
    EXPECT_EQ(p.content, text);
    EXPECT_TRUE(p.calls.empty());
  }
}

TEST(MessageParser, CallThatIsCutIsNotComplete) {
  Parsed p = parsed(hermes, "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":");
  EXPECT_EQ(p.calls, (Calls{{"f", "{\"a\":"}}));
  EXPECT_EQ(p.complete, 0u);
}

TEST(MessageParser, LlamaCalls) {
  EXPECT_EQ(parsed(llama, "{\"name\": \"f\", \"parameters\": {\"a\": 1}}").calls,
            (Calls{{"f", "{\"a\": 1}"}}));
  EXPECT_EQ(parsed(llama, "<|python_tag|>{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\", "
                          "\"parameters\": {\"b\": 2}}")
                .calls,
            (Calls{{"f", "{}"}, {"g", "{\"b\": 2}"}}));
  Parsed p = parsed(llama, "{\"answer\": 42} is JSON");
  EXPECT_EQ(p.content, "{\"answer\": 42} is JSON");
  EXPECT_EQ(parsed(llama, "text {\"name\": \"f\"}").content, "text {\"name\": \"f\"}");
}

TEST(MessageParser, MistralCalls) {
  EXPECT_EQ(parsed(mistral,
                   "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"a\": 1}}, {\"name\": "
                   "\"g\", \"arguments\": {}}]")
                .calls,
            (Calls{{"f", "{\"a\": 1}"}, {"g", "{}"}}));
  EXPECT_EQ(parsed(mistral, "[TOOL_CALLS]f[ARGS]{\"a\": 1}[TOOL_CALLS]g{\"b\": {}}").calls,
            (Calls{{"f", "{\"a\": 1}"}, {"g", "{\"b\": {}}"}}));
}

TEST(MessageParser, SingleCall) {
  MessageForm form = hermes;
  form.singleCall = true;
  Parsed p = parsed(form, "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call><tool_call>"
                          "{\"name\":\"g\",\"arguments\":{}}</tool_call>");
  EXPECT_EQ(p.calls, (Calls{{"f", "{}"}}));
}

TEST(MessageParser, Reasoning) {
  Parsed p = parsed(thinks, "<think>\nfirst\nthen\n</think>\n\nThe answer.\n");
  EXPECT_EQ(p.reasoning, "first\nthen");
  EXPECT_EQ(p.content, "The answer.\n");
  p = parsed({.reasoning = true, .startsReasoning = true}, "hm </thin</think>yes");
  EXPECT_EQ(p.reasoning, "hm </thin");
  EXPECT_EQ(p.content, "yes");
  EXPECT_EQ(parsed(thinks, "no <think>x</think>").content, "no <think>x</think>");
  EXPECT_EQ(parsed(thinks, "<think>cut off").reasoning, "cut off");
  EXPECT_EQ(parsed(thinks, "<thi").content, "<thi");
}

TEST(MessageParser, ReasoningThenCall) {
  MessageForm form = hermes;
  form.reasoning = true;
  Parsed p =
      parsed(form, "<think>a</think>\n<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>");
  EXPECT_EQ(p.reasoning, "a");
  EXPECT_EQ(p.content, "");
  EXPECT_EQ(p.calls, (Calls{{"f", "{}"}}));
}

TEST(MessageParser, DeepArguments) {
  std::string deep(100000, '[');
  Parsed p = parse(hermes, "<tool_call>{\"name\":\"f\",\"arguments\":" + deep, 4096);
  EXPECT_EQ(p.calls.size(), 1u);
  EXPECT_EQ(p.calls[0].second.size(), deep.size());
}

} // namespace
