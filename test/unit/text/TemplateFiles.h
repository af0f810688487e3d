//===- TemplateFiles.h - reads the templates that tests use -------------------===//
#ifndef LLMC_TEST_UNIT_TEXT_TEMPLATEFILES_H
#define LLMC_TEST_UNIT_TEXT_TEMPLATEFILES_H

#include "runtime/text/chat/ApplyChatTemplate.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace llmrt::test {

/// The text of a file under the unpacked templates; a missing one fails the test.
inline std::string readTemplateFile(const std::string &name) {
  std::ifstream in(std::string(LLMRT_TEMPLATES) + "/" + name, std::ios::binary);
  EXPECT_TRUE(in.good()) << name;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline nlohmann::ordered_json readTemplateJson(const std::string &name) {
  return nlohmann::ordered_json::parse(readTemplateFile(name));
}

/// The text, or "error: " and the message.
inline std::string textOf(const Result<std::string> &result) {
  return result ? *result : "error: " + result.status().message();
}

/// Parses and renders; a failure of either gives "error: ...".
inline std::string
renderText(const std::string &source,
           const nlohmann::ordered_json &context = nlohmann::ordered_json::object(),
           const RenderOptions &options = {}) {
  Result<ChatTemplate> parsed = ChatTemplate::parse(source);
  if (!parsed)
    return "error: " + parsed.status().message();
  return textOf(parsed->render(context, options));
}

} // namespace llmrt::test

#endif // LLMC_TEST_UNIT_TEXT_TEMPLATEFILES_H
