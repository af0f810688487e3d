// run and bench on a tiny plan: what they print, what they write, how they end.
#include "tools/common/Run.h"
#include "tools/common/Bench.h"

#include "test/unit/engine/TinyPlan.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace llmc::tools;
using llmrt::test::TinyPlanFile;
using llmrt::test::TinyPlanOptions;

namespace {

TinyPlanOptions scripted() {
  TinyPlanOptions options;
  options.tokenizer = true;
  options.stopIds = {96};
  options.next = {
      {0, 27}, {27, 28}, {28, 29}, {29, 30}, {30, 96}}; // a -> " ONE TWO STOP THREE<end>"
  return options;
}

struct Outcome {
  int status;
  std::string out, err;
};

Outcome run(const TinyPlanFile &file, const RunOptions &options) {
  std::ostringstream out, err;
  int status = runMain(file.path(), options, out, err);
  return {status, out.str(), err.str()};
}

RunOptions prompt(const char *text) {
  RunOptions options;
  options.prompt = text;
  options.threads = 1;
  return options;
}

TEST(Run, StreamsTextAndPrintsSpeeds) {
  TinyPlanFile file(scripted());
  Outcome o = run(file, prompt("a"));
  EXPECT_EQ(o.status, 0);
  EXPECT_EQ(o.out, " ONE TWO STOP THREE\n");
  EXPECT_NE(o.err.find("tiny: prefill 1 tokens at "), std::string::npos);
  EXPECT_NE(o.err.find("tokens/s"), std::string::npos);
}

TEST(Run, JsonHasWhatScriptsNeed) {
  TinyPlanFile file(scripted());
  RunOptions options = prompt("a");
  options.json = true;
  options.logprobs = 2;
  options.stop = {"STOP"};
  Outcome o = run(file, options);
  ASSERT_EQ(o.status, 0) << o.err;
  auto json = nlohmann::json::parse(o.out);
  EXPECT_EQ(json["prompt_ids"], nlohmann::json::array({0}));
  EXPECT_EQ(json["ids"], nlohmann::json({27, 28, 29}));
  EXPECT_EQ(json["text"], " ONE TWO ");
  EXPECT_EQ(json["finish_reason"], "stop");
  ASSERT_EQ(json["logprobs"].size(), 3u);
  EXPECT_EQ(json["logprobs"][1]["id"], 28);
  EXPECT_EQ(json["logprobs"][1]["top"].size(), 2u);
  EXPECT_LE(json["logprobs"][1]["logprob"].get<double>(), 0);
  for (const char *key : {"load_ms", "ttft_ms", "prefill_tokens_per_s", "decode_tokens_per_s"})
    EXPECT_GT(json["timings"][key].get<double>(), 0) << key;
}

TEST(Run, AGrammarHoldsTheAnswer) {
  TinyPlanFile file(scripted());
  RunOptions options = prompt("a");
  options.regex = "[d-f]{3}x";
  EXPECT_EQ(run(file, options).out, "dddx\n");
  options.regex = "";
  options.jsonSchema = R"({"type": "string"})"; // the vocabulary has no quotes
  Outcome o = run(file, options);
  EXPECT_EQ(o.status, 1);
  EXPECT_NE(o.err.find("no token may stand"), std::string::npos) << o.err;
  options.jsonSchema = R"({"type": "text"})";
  o = run(file, options);
  EXPECT_EQ(o.status, 1);
  EXPECT_NE(o.err.find("'text' is no type"), std::string::npos) << o.err;
  options.grammar = "root ::= \"a\"";
  EXPECT_EQ(run(file, options).status, 2);
  options.jsonSchema = "";
  options.grammar = "@/nonexistent.gbnf";
  EXPECT_NE(run(file, options).err.find("/nonexistent.gbnf"), std::string::npos);
}

TEST(Run, SpeculationChangesTheSpeedOnly) {
  TinyPlanOptions looping;
  looping.tokenizer = true;
  looping.next = {{0, 1}, {1, 2}, {2, 3}, {3, 0}}; // abcdabcd...
  TinyPlanFile file(looping);
  RunOptions options = prompt("abcdab");
  options.json = true;
  options.newTokens = 60;
  options.logprobs = 1;
  auto plain = nlohmann::json::parse(run(file, options).out);
  EXPECT_FALSE(plain.contains("speculation"));
  for (std::string config : {std::string(R"({"method": "ngram", "adaptive": false})"),
                             std::string(R"({"method": "suffix", "adaptive": false})"),
                             R"({"adaptive": false, "model": ")" + file.path() + "\"}"}) {
    options.speculativeConfig = config;
    Outcome o = run(file, options);
    ASSERT_EQ(o.status, 0) << o.err;
    auto json = nlohmann::json::parse(o.out);
    EXPECT_EQ(json["ids"], plain["ids"]) << config;
    EXPECT_EQ(json["logprobs"], plain["logprobs"]) << config;
    EXPECT_GT(json["speculation"]["accepted_tokens"].get<int>(), 40) << config;
    EXPECT_LT(json["speculation"]["steps"].get<int>(), 30) << config;
  }
  TinyPlanOptions other = looping;
  other.tokenizer = false;
  TinyPlanFile mute(other);
  options.speculativeConfig = R"({"model": ")" + mute.path() + "\"}";
  Outcome o = run(file, options);
  EXPECT_EQ(o.status, 1);
  EXPECT_NE(o.err.find("tokenizer"), std::string::npos) << o.err;
  options.speculativeConfig = R"({"model": "/nonexistent.plan"})";
  EXPECT_NE(run(file, options).err.find("/nonexistent.plan"), std::string::npos);
}

TEST(Run, IdsWithoutATokenizer) {
  TinyPlanFile file;
  RunOptions options;
  options.promptIds = {5, 6};
  options.newTokens = 3;
  options.threads = 1;
  Outcome plain = run(file, options);
  EXPECT_EQ(plain.status, 0);
  options.json = true;
  auto json = nlohmann::json::parse(run(file, options).out);
  EXPECT_TRUE(json["text"].is_null());
  EXPECT_TRUE(json["logprobs"].is_null());
  std::string spaced;
  for (int id : json["ids"])
    spaced += (spaced.empty() ? "" : " ") + std::to_string(id);
  EXPECT_EQ(plain.out, spaced + "\n");
  // Text needs a tokenizer, and the message says how to get one.
  Outcome refused = run(file, prompt("a"));
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("--tokenizer"), std::string::npos);
}

TEST(Run, LogitsOfThePrompt) {
  TinyPlanFile file;
  std::string path = file.path() + ".npy";
  RunOptions options;
  options.promptIds = {5, 6, 7};
  options.newTokens = 1;
  options.threads = 1;
  options.json = true;
  options.logitsOut = path;
  Outcome o = run(file, options);
  ASSERT_EQ(o.status, 0) << o.err;
  std::ifstream in(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::filesystem::remove(path);
  ASSERT_EQ(bytes.size(), 128u + 3 * 97 * 4);
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_NE(bytes.find("'shape': (3, 97)"), std::string::npos);
  std::vector<float> last(97);
  std::memcpy(last.data(), bytes.data() + 128 + 2 * 97 * 4, 97 * 4);
  int next = nlohmann::json::parse(o.out)["ids"][0];
  EXPECT_EQ(last[size_t(next)], 10.0f);

  options.logitsOut = "/nonexistent/folder/x.npy";
  Outcome refused = run(file, options);
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("/nonexistent/folder/x.npy"), std::string::npos);
}

TEST(Run, WrongUsageIsTwoAndFailureIsOne) {
  TinyPlanFile file(scripted());
  EXPECT_EQ(run(file, RunOptions()).status, 2);
  RunOptions options = prompt("a");
  options.system = "x";
  EXPECT_EQ(run(file, options).status, 2);
  options = prompt("");
  Outcome empty = run(file, options); // V15: this model has no beginning token
  EXPECT_EQ(empty.status, 1);
  EXPECT_EQ(empty.err.rfind("error: the prompt is empty", 0), 0u) << empty.err;
  options = prompt("a");
  options.topP = 2.0f;
  EXPECT_EQ(run(file, options).status, 1);
  options = prompt("a");
  options.activations = "int8";
  Outcome other = run(file, options);
  EXPECT_EQ(other.status, 1);
  EXPECT_NE(other.err.find("--activations f32"), std::string::npos);
  std::ostringstream out, err;
  EXPECT_EQ(runMain("/nonexistent.plan", prompt("a"), out, err), 1);
  EXPECT_NE(err.str().find("/nonexistent.plan"), std::string::npos);
}

TEST(Run, V05_PromptLongerThanTheContext) {
  TinyPlanFile file;
  RunOptions options;
  options.promptIds.assign(600, 1);
  options.threads = 1;
  Outcome o = run(file, options);
  EXPECT_EQ(o.status, 1);
  EXPECT_NE(o.err.find("600 tokens"), std::string::npos);
  EXPECT_NE(o.err.find("512"), std::string::npos);
  EXPECT_EQ(o.out, "");
}

TEST(Run, ChatGoesThroughTheTemplate) {
  TinyPlanFile file(scripted());
  RunOptions options = prompt("c");
  options.chat = true;
  options.system = "b";
  options.json = true;
  options.newTokens = 1;
  auto json = nlohmann::json::parse(run(file, options).out);
  // "sbuc<end>": the template writes the first letter of each role.
  EXPECT_EQ(json["prompt_ids"], nlohmann::json({18, 1, 20, 2, 96}));
}

TEST(Bench, JsonHasAFigureForEachTest) {
  TinyPlanFile file;
  BenchOptions options;
  options.prompts = {16, 200};
  options.newTokens = 20;
  options.depth = 30;
  options.batches = {1, 2, 5};
  options.threads = 2;
  options.json = true;
  std::ostringstream out, err;
  ASSERT_EQ(benchMain(file.path(), options, out, err), 0) << err.str();
  auto json = nlohmann::json::parse(out.str());
  for (const char *key :
       {"prefill16", "prefill200", "decode", "batch1", "batch2", "batch5", "load_s"})
    EXPECT_GT(json[key].get<double>(), 0) << key;
  EXPECT_EQ(json["threads"], 2);
  options.json = false;
  std::ostringstream table;
  ASSERT_EQ(benchMain(file.path(), options, table, err), 0);
  EXPECT_NE(table.str().find("prefill 200"), std::string::npos);
  EXPECT_NE(table.str().find("5 at once"), std::string::npos);
}

TEST(Bench, TestsBeyondTheContextAreRefused) {
  TinyPlanFile file;
  BenchOptions options;
  options.threads = 1;
  options.depth = 500;
  options.newTokens = 100;
  std::ostringstream out, err;
  EXPECT_EQ(benchMain(file.path(), options, out, err), 1);
  EXPECT_NE(err.str().find("512"), std::string::npos);
}

} // namespace
