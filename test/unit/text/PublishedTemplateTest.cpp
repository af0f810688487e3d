//===- PublishedTemplateTest.cpp - templates of real models, against Hugging Face ----------===//
#include "test/unit/text/TemplateFiles.h"

#include <thread>

namespace llmrt::test {

using Json = nlohmann::ordered_json;

namespace {

/// What apply_chat_template got when the goldens were made.
ApplyOptions optionsOf(const Json &model, const Json &conversation) {
  ApplyOptions options;
  options.addGenerationPrompt = conversation["add_generation_prompt"].get<bool>();
  options.bosToken = model["bos_token"];
  options.eosToken = model["eos_token"];
  options.tools = conversation.value("tools", Json());
  options.render.now = CivilTime{2025, 1, 2, 3, 4, 5};
  options.extra = Json::object();
  for (const auto &[name, value] : conversation.items())
    if (name != "messages" && name != "tools" && name != "add_generation_prompt")
      options.extra[name] = value;
  return options;
}

TEST(PublishedTemplate, EqualsHuggingFace) {
  const Json files = readTemplateJson("cases.json"), golden = readTemplateJson("golden.json");
  int texts = 0, errors = 0;
  for (const auto &[name, model] : files["templates"].items()) {
    Result<ChatTemplate> parsed = ChatTemplate::parse(readTemplateFile(name + ".jinja"));
    ASSERT_TRUE(parsed) << name << ": " << parsed.status().message();
    for (const auto &[key, conversation] : files["cases"].items()) {
      SCOPED_TRACE(name + " / " + key);
      const Json &want = golden[name][key];
      Result<std::string> got =
          applyChatTemplate(*parsed, conversation["messages"], optionsOf(model, conversation));
      if (want.contains("text")) {
        ++texts;
        EXPECT_EQ(textOf(got), want["text"].get<std::string>());
        continue;
      }
      ++errors;
      ASSERT_FALSE(got) << *got;
      EXPECT_EQ(got.status().code(), StatusCode::InvalidArgument);
      // A message that the template itself raises is passed on word by word.
      const std::string error = want["error"], raised = "TemplateError: ";
      if (error.starts_with(raised)) {
        EXPECT_TRUE(got.status().message().ends_with(error.substr(raised.size())))
            << got.status().message() << "\nwanted: " << error;
      }
    }
  }
  EXPECT_EQ(texts, 334);
  EXPECT_EQ(errors, 69);
}

// A parsed template is shared between the requests of a server.
TEST(PublishedTemplate, RendersFromManyThreads) {
  const Json files = readTemplateJson("cases.json"), golden = readTemplateJson("golden.json");
  const std::string name = "meta-llama-Llama-3.1-8B-Instruct";
  Result<ChatTemplate> parsed = ChatTemplate::parse(readTemplateFile(name + ".jinja"));
  ASSERT_TRUE(parsed);
  const Json &conversation = files["cases"]["tool-result"];
  const ApplyOptions options = optionsOf(files["templates"][name], conversation);
  const std::string want = golden[name]["tool-result"]["text"];
  std::vector<std::thread> threads;
  std::atomic<int> equal = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i)
        equal += textOf(applyChatTemplate(*parsed, conversation["messages"], options)) == want;
    });
  for (std::thread &t : threads)
    t.join();
  EXPECT_EQ(equal, 80);
}

} // namespace
} // namespace llmrt::test
