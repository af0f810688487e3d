//===- TemplateMutationTest.cpp - damaged templates never crash
//----------------------------------===//
#include "test/unit/text/TemplateFiles.h"

#include <random>

namespace llmrt::test {

using Json = nlohmann::ordered_json;

namespace {

/// Changes \p text in one to four places: bytes, cuts, and pieces of other templates.
std::string mutate(std::string text, const std::vector<std::string> &all, std::mt19937 &random) {
  auto below = [&](size_t n) { return n == 0 ? 0 : random() % n; };
  static constexpr const char *pieces[] = {"{{",
                                           "}}",
                                           "{%",
                                           "%}",
                                           "-",
                                           "loop",
                                           "(",
                                           ")",
                                           "[",
                                           "]",
                                           "|",
                                           "'",
                                           "\"",
                                           ".",
                                           "not ",
                                           " in ",
                                           " is ",
                                           "~",
                                           "none",
                                           "{#",
                                           "0",
                                           "-1",
                                           "\\",
                                           "namespace(",
                                           "*",
                                           "[::-1]",
                                           "%",
                                           " if ",
                                           " else ",
                                           "|list",
                                           "9999999999999999999",
                                           "|tojson",
                                           "|map('upper')",
                                           ".items()"};
  for (size_t edits = 1 + below(4); edits > 0; --edits) {
    const size_t at = below(text.size() + 1),
                 size = below(std::min<size_t>(text.size() - at + 1, 60));
    switch (below(6)) {
    case 0:
      text.erase(at, size);
      break;
    case 1:
      text.insert(at, text.substr(below(text.size()), size));
      break;
    case 2: {
      const std::string &other = all[below(all.size())];
      text.insert(at, other.substr(below(other.size()), below(60)));
      break;
    }
    case 3:
      text.insert(at, pieces[below(std::size(pieces))]);
      break;
    case 4:
      if (at < text.size())
        text[at] = static_cast<char>(random());
      break;
    default:
      if (at < text.size())
        text.replace(at, 1, pieces[below(std::size(pieces))]);
    }
  }
  return text;
}

TEST(TemplateMutation, NeverCrashes) {
  const Json files = readTemplateJson("cases.json");
  std::vector<std::string> all;
  for (const auto &[name, model] : files["templates"].items())
    all.push_back(readTemplateFile(name + ".jinja"));
  const Json expressions = readTemplateJson("expressions.json");
  for (const Json &entry : expressions["entries"])
    if (all.size() < 400)
      all.push_back(entry["template"]);
  std::vector<Json> conversations;
  for (const auto &[key, conversation] : files["cases"].items())
    conversations.push_back(conversation);

  std::mt19937 random(20250102);
  ApplyOptions options;
  options.bosToken = "<s>";
  options.render.limits.steps = 200'000;
  int parsedCount = 0, rendered = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string source = mutate(all[random() % all.size()], all, random);
    Result<ChatTemplate> parsed = ChatTemplate::parse(source);
    if (!parsed) {
      EXPECT_FALSE(parsed.status().message().empty());
      continue;
    }
    ++parsedCount;
    const Json &conversation = conversations[random() % conversations.size()];
    options.tools = conversation.value("tools", Json());
    options.extra = {{"s", "text"}, {"xs", {3, 1, 2}}, {"m", {{"a", 1}}}};
    rendered += applyChatTemplate(*parsed, conversation["messages"], options).isOk();
  }
  // The mutations are mild enough to get through the parser, and often to an end.
  EXPECT_GT(parsedCount, 500);
  EXPECT_GT(rendered, 100);
}

} // namespace
} // namespace llmrt::test
