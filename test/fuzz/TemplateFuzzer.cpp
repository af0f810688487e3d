//===- TemplateFuzzer.cpp - any bytes as a chat template -------------------------===//
//
// A template comes with a model file, so it may be anything. Parsing and rendering must end in a
// text or an error, within the limits.
//
//===----------------------------------------------------------------------===//
#include "runtime/text/chat/ApplyChatTemplate.h"

#include <cstdlib>

using namespace llmrt;
using Json = nlohmann::ordered_json;

static Json conversation() {
  return Json::parse(R"([
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": [{"type": "text", "text": "hi {{ 1 }}"}]},
    {"role": "assistant", "content": null, "tool_calls": [
      {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": [1, 2.5, true]}"}}]},
    {"role": "tool", "name": "f", "tool_call_id": "c1", "content": "Za\u017c\u00f3\u0142\u0107 \ud83d\ude00"},
    {"role": "user", "content": " <x> & 'y' "}])");
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Json messages = conversation();
  Result<ChatTemplate> parsed =
      ChatTemplate::parse(std::string(reinterpret_cast<const char *>(data), size));
  if (!parsed) {
    if (parsed.status().message().empty())
      std::abort();
    return 0;
  }
  ApplyOptions options;
  options.bosToken = "<s>";
  options.eosToken = "</s>";
  options.tools =
      Json::parse(R"([{"type": "function", "function": {"name": "f", "parameters": {}}}])");
  options.render.now = CivilTime{2025, 1, 2, 3, 4, 5};
  options.render.limits.steps = 100'000;
  options.render.limits.memoryBytes = 4 << 20;
  Result<std::string> first = applyChatTemplate(*parsed, messages, options);
  Result<std::string> second = applyChatTemplate(*parsed, messages, options);
  // The same input gives the same text, and nothing is left over from an earlier rendering.
  if (first.isOk() != second.isOk() || (first && *first != *second))
    std::abort();
  return 0;
}
