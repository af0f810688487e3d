#include "compiler/import/huggingface/FolderText.h"

#include "test/unit/compiler/common/TempFolder.h"

#include <gtest/gtest.h>

using namespace llmc;
using llmc::test::TempFolder;

namespace {

ImportedText read(const TempFolder &folder) {
  auto text = readFolderText(folder.path());
  EXPECT_TRUE(text.isOk()) << text.status().message();
  return text.isOk() ? *text : ImportedText();
}

void expectError(const TempFolder &folder, const std::string &part) {
  auto text = readFolderText(folder.path());
  ASSERT_FALSE(text.isOk());
  EXPECT_NE(text.status().message().find(part), std::string::npos) << text.status().message();
}

TEST(FolderText, takesTheTemplateFileBeforeTheConfiguration) {
  TempFolder folder;
  EXPECT_EQ(read(folder).chatTemplate, "");
  folder.write(
      "tokenizer_config.json",
      R"({"chat_template":"from config","bos_token":"<s>","eos_token":{"content":"</s>"}})");
  EXPECT_EQ(read(folder).chatTemplate, "from config");
  EXPECT_EQ(read(folder).bosToken, "<s>");
  EXPECT_EQ(read(folder).eosToken, "</s>");
  folder.write("chat_template.jinja", "from file");
  EXPECT_EQ(read(folder).chatTemplate, "from file");
  folder.write("chat_template.jinja", "\xff");
  expectError(folder, "not UTF-8");
}

TEST(FolderText, takesTheDefaultOfSeveralTemplates) {
  TempFolder folder;
  folder.write(
      "tokenizer_config.json",
      R"({"chat_template":[{"name":"rag","template":"r"},{"name":"default","template":"d"}]})");
  EXPECT_EQ(read(folder).chatTemplate, "d");
  folder.write("tokenizer_config.json", R"({"chat_template":[{"name":"rag","template":"r"}]})");
  expectError(folder, "none called 'default'");
}

TEST(FolderText, collectsStopIdsAndSampling) {
  TempFolder folder;
  folder.write("config.json", R"({"eos_token_id":7})");
  EXPECT_EQ(read(folder).stopIds, std::vector<int32_t>{7});
  folder.write(
      "generation_config.json",
      R"({"eos_token_id":[9,2,9],"do_sample":true,"temperature":0.6,"top_p":0.9,"top_k":40,)"
      R"("repetition_penalty":1.1})");
  const ImportedText text = read(folder);
  EXPECT_EQ(text.stopIds, (std::vector<int32_t>{2, 9}));
  EXPECT_TRUE(text.doSample);
  EXPECT_FLOAT_EQ(text.temperature, 0.6f);
  EXPECT_FLOAT_EQ(text.topP, 0.9f);
  EXPECT_EQ(text.topK, 40);
  EXPECT_FLOAT_EQ(text.repetitionPenalty, 1.1f);
  EXPECT_EQ(text.minP, 0);
}

// A tokenizer that a converter wrote may carry another family's tokens: transformers adds five to a
// GGUF's. Those can't be used, so they are left out; a token of the model's own can't be missing.
TEST(FolderText, leavesOutAddedTokensWithoutARow) {
  TempFolder folder;
  const auto write = [&](const char *vocabulary, const char *fields) {
    folder.write(
        "tokenizer.json",
        std::string(R"({"added_tokens":[{"id":2,"content":"<e>","special":true},)") +
            R"({"id":3,"content":"<PRE>","special":true}],"model":{"type":"BPE","vocab":)" +
            vocabulary + R"(,"merges":[]})" + fields + "}");
  };
  write(R"({"a":0,"b":1})", "");
  EXPECT_TRUE(readFolderText(folder.path(), 4)->notes.empty());
  auto text = readFolderText(folder.path(), 3);
  ASSERT_TRUE(text.isOk()) << text.status().message();
  ASSERT_EQ(text->notes.size(), 1u);
  EXPECT_NE(text->notes[0].find("'<PRE>'"), std::string::npos) << text->notes[0];
  EXPECT_EQ(text->notes[0].find("'<e>'"), std::string::npos) << text->notes[0];
  // Named by what is put around every text: needed.
  write(R"({"a":0,"b":1})",
        R"(,"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<PRE>",)"
        R"("type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[],"special_tokens":)"
        R"({"<PRE>":{"id":"<PRE>","ids":[3],"tokens":["<PRE>"]}}})");
  text = readFolderText(folder.path(), 3);
  ASSERT_FALSE(text.isOk());
  EXPECT_NE(text.status().message().find("'<PRE>' has the id 3"), std::string::npos)
      << text.status().message();
  write(R"({"a":0,"b":1,"c":4})", "");
  text = readFolderText(folder.path(), 3);
  ASSERT_FALSE(text.isOk());
  EXPECT_NE(text.status().message().find("'c' has the id 4"), std::string::npos)
      << text.status().message();
}

TEST(FolderText, refusesMalformedFiles) {
  TempFolder folder;
  folder.write("generation_config.json", R"({"eos_token_id":"2"})");
  expectError(folder, "'eos_token_id'");
  for (const char *bad : {R"({"eos_token_id":-1})", R"({"eos_token_id":[4294967296]})",
                          R"({"top_p":2})", R"({"temperature":-1})", R"({"top_k":-1})", "[", ""}) {
    folder.write("generation_config.json", bad);
    expectError(folder, "generation_config.json");
  }
  folder.write("generation_config.json", "{}");
  folder.write("tokenizer.json", "{}");
  EXPECT_FALSE(readFolderText(folder.path()).isOk());
  EXPECT_FALSE(readFolderText(folder.file("generation_config.json")).isOk());
}

} // namespace
