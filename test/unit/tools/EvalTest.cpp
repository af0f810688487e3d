// eval: the arithmetic against hand-made rows, the token files, and whole runs on a tiny plan.
#include "tools/common/Eval.h"
#include "tools/common/EvalStatistics.h"
#include "tools/common/TokenFile.h"

#include "test/unit/engine/TinyPlan.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unistd.h>

using namespace llmc::tools;
using llmrt::test::TinyPlanFile;
using llmrt::test::TinyPlanOptions;

namespace {

TEST(EvalStatistics, LossAndDivergenceOfKnownDistributions) {
  // p = (1/2, 1/4, 1/4), q = (1/4, 1/4, 1/2), shifted, which changes no distribution.
  float l2 = std::log(2.0f);
  std::vector<float> p{l2 + 5, 5, 5}, q{-3, -3, l2 - 3};
  EvalStatistics s;
  ASSERT_TRUE(s.add(q, p, 2));
  EXPECT_NEAR(s.loss().mean, std::log(2), 1e-6);
  EXPECT_NEAR(s.perplexity().mean, 2, 1e-5);
  EXPECT_NEAR(s.referencePerplexity().mean, 4, 1e-5);
  // 1/2 log 2 + 0 + 1/4 log 1/2
  EXPECT_NEAR(s.divergence().mean, 0.25 * std::log(2), 1e-6);
  EXPECT_EQ(s.sameTop(), 0);
  ASSERT_TRUE(s.add(p, p, 0));
  EXPECT_EQ(s.divergences()[1], 0);
  EXPECT_EQ(s.sameTop(), 0.5);
}

TEST(EvalStatistics, RuledOutTokensAddNothingAndLargeLogitsDoNotOverflow) {
  float none = -std::numeric_limits<float>::infinity();
  EvalStatistics s;
  ASSERT_TRUE(s.add(std::vector<float>{3e4f, 3e4f, 0}, std::vector<float>{3e4f, 3e4f, none}, 0));
  EXPECT_NEAR(s.divergence().mean, 0, 1e-12);
  EXPECT_NEAR(s.perplexity().mean, 2, 1e-9);
}

TEST(EvalStatistics, BadLogitsAreErrors_invalid) {
  float infinite = std::numeric_limits<float>::infinity();
  for (float bad : {std::nanf(""), infinite}) {
    EvalStatistics s;
    EXPECT_FALSE(s.add(std::vector<float>{0, bad}, 0));
    auto failure = s.add(std::vector<float>{0, 1}, std::vector<float>{bad, 0}, 0);
    EXPECT_FALSE(failure);
    EXPECT_EQ(failure.message().rfind("the reference: logit 0 is", 0), 0u) << failure.message();
    EXPECT_EQ(s.tokens(), 0);
  }
  EXPECT_FALSE(EvalStatistics().add(std::vector<float>{-infinite, -infinite}, 0));
}

TEST(EvalStatistics, EstimatesAndQuantiles) {
  Estimate e = estimate(std::vector<double>{1, 2, 3, 6});
  EXPECT_DOUBLE_EQ(e.mean, 3);
  EXPECT_DOUBLE_EQ(e.error, std::sqrt(14.0 / 3 / 4));
  EXPECT_EQ(estimate(std::vector<double>{5}).error, 0);
  std::vector<double> values{4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile(values, 0.99), 3.97);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 4);
}

std::string npy(const std::string &type, const void *data, size_t size,
                const char *order = "False") {
  std::string header = "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': (3,), }";
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += char(header.size());
  bytes += '\0';
  return bytes + header + std::string(static_cast<const char *>(data), size);
}

TEST(TokenFile, ReadsListsAndArrays) {
  std::vector<int32_t> ids{7, 0, 96};
  int64_t wide[]{7, 0, 96};
  for (const std::string &bytes :
       {std::string("[7, 0, 96]"), npy("<i4", ids.data(), 12), npy("<i8", wide, 24)}) {
    auto read = parseTokens(bytes, "t");
    ASSERT_TRUE(read) << read.status().message();
    EXPECT_EQ(*read, ids);
  }
}

TEST(TokenFile, SaysWhatIsWrong_invalid) {
  int32_t negative[]{-1};
  int64_t large[]{int64_t(1) << 31};
  std::string whole = npy("<i4", negative, 0);
  const std::pair<std::string, const char *> cases[] = {
      {"", "JSON list"},
      {"{\"a\": 1}", "JSON list"},
      {"[1, 2", "JSON list"},
      {"[1, [2]]", "element 1"},
      {"[1, -2]", "element 1"},
      {"[1, 2.5]", "element 1"},
      {"[4294967296]", "element 0"},
      {std::string(100000, '['), "JSON list"},
      {npy("<i4", negative, 4), "-1 is no token id"},
      {npy("<i8", large, 8), "2147483648 is no token id"},
      {npy("<i4", large, 7), "within an id"},
      {npy("<f4", large, 8), "not '<f4'"},
      {npy("<i4", large, 8, "True"), "row by row"},
      {whole.substr(0, 20), "cut off"},
      {whole.substr(0, 8), "cut off"}};
  for (const auto &[bytes, message] : cases) {
    auto read = parseTokens(bytes, "t");
    ASSERT_FALSE(read) << bytes.substr(0, 20);
    EXPECT_NE(read.status().message().find(message), std::string::npos) << read.status().message();
    EXPECT_EQ(read.status().message().rfind("t: ", 0), 0u);
  }
  EXPECT_FALSE(readTokenFile("/nonexistent.json"));
}

class TextFile {
public:
  explicit TextFile(const std::string &text) {
    int fd = ::mkstemp(path.data());
    EXPECT_GE(fd, 0);
    ::close(fd);
    std::ofstream(path) << text;
  }
  ~TextFile() { std::remove(path.c_str()); }
  std::string path = (testing::TempDir() + "llmc-text-XXXXXX");
};

struct Outcome {
  int status;
  std::string out, err;
};

Outcome eval(const std::string &plan, EvalOptions options) {
  std::ostringstream out, err;
  options.threads = 1;
  int status = evalMain(plan, options, out, err);
  return {status, out.str(), err.str()};
}

nlohmann::json evalJson(const std::string &plan, EvalOptions options) {
  options.json = true;
  Outcome o = eval(plan, options);
  EXPECT_EQ(o.status, 0) << o.err;
  return nlohmann::json::parse(o.out);
}

/// A plan that knows the cycle abc: each letter's follower has the logit 10.
TinyPlanOptions cycle(int32_t afterC = 0) {
  TinyPlanOptions options;
  options.tokenizer = true;
  options.next = {{0, 1}, {1, 2}, {2, afterC}};
  return options;
}

/// -log softmax of \p token where \p likely has the logit 10 and v has -v / 128 elsewhere.
double tinyLoss(int likely, int token) {
  double sum = 0;
  auto logit = [&](int v) { return v == likely ? 10.0 : -v / 128.0; };
  for (int v = 0; v < 97; ++v)
    sum += std::exp(logit(v));
  return std::log(sum) - logit(token);
}

TEST(Eval, PerplexityOfAKnownText) {
  TinyPlanFile plan(cycle());
  TextFile text("abcabca");
  EvalOptions options;
  options.text = text.path;
  auto json = evalJson(plan.path(), options);
  EXPECT_EQ(json["tokens"], 7);
  EXPECT_EQ(json["scored"], 6);
  EXPECT_EQ(json["windows"], 1);
  double expected = (2 * tinyLoss(1, 1) + 2 * tinyLoss(2, 2) + 2 * tinyLoss(0, 0)) / 6;
  EXPECT_NEAR(json["loss"].get<double>(), expected, 1e-6);
  EXPECT_NEAR(json["perplexity"].get<double>(), std::exp(expected), 1e-6);
  EXPECT_FALSE(json.contains("kl"));
  options.maxTokens = 4;
  EXPECT_EQ(evalJson(plan.path(), options)["scored"], 3);
}

TEST(Eval, ChunksThreadsAndReferencesChangeNothing) {
  TinyPlanFile plan(cycle());
  std::string letters;
  for (int i = 0; i < 900; ++i)
    letters += "abcabdacb"[i % 9];
  TextFile text(letters);
  EvalOptions options;
  options.text = text.path;
  options.context = 100;
  options.json = true;
  Outcome whole = eval(plan.path(), options);
  auto json = nlohmann::json::parse(whole.out);
  EXPECT_EQ(json["windows"], 9);
  EXPECT_EQ(json["scored"], 9 * 99);
  options.chunk = 7;
  EXPECT_EQ(eval(plan.path(), options).out, whole.out);
  options.reference = plan.path();
  auto compared = evalJson(plan.path(), options);
  EXPECT_EQ(compared["loss"], json["loss"]);
  EXPECT_EQ(compared["perplexity"], compared["reference_perplexity"]);
  EXPECT_EQ(compared["kl"]["max"], 0);
  EXPECT_EQ(compared["same_top"], 1);
}

TEST(Eval, DivergenceFromAReference) {
  TinyPlanFile plan(cycle(0)), reference(cycle(3)); // they differ after c only
  TextFile text("abcabca");
  EvalOptions options;
  options.text = text.path;
  options.reference = reference.path();
  auto json = evalJson(plan.path(), options);
  double expected = 0; // after c, which is twice in six positions
  for (int v = 0; v < 97; ++v)
    expected += std::exp(-tinyLoss(3, v)) * (tinyLoss(0, v) - tinyLoss(3, v));
  EXPECT_NEAR(json["kl"]["max"].get<double>(), expected, 1e-5);
  EXPECT_NEAR(json["kl"]["mean"].get<double>(), expected / 3, 1e-5);
  EXPECT_EQ(json["kl"]["median"], 0);
  EXPECT_NEAR(json["same_top"].get<double>(), 4.0 / 6, 1e-9);
  std::string table = eval(plan.path(), options).out;
  for (const char *line : {"perplexity", "KL divergence, mean", "KL divergence, 99 %", "66.67 %"})
    EXPECT_NE(table.find(line), std::string::npos) << table;
}

TEST(Eval, TokenIdsWhereThereIsNoTokenizer) {
  TinyPlanFile plan;
  TextFile ids("[5, 6, 7]"), beyond("[5, 97]"), text("abc");
  EvalOptions options;
  options.tokensFile = ids.path;
  EXPECT_EQ(evalJson(plan.path(), options)["scored"], 2);
  options.tokensFile = beyond.path;
  Outcome refused = eval(plan.path(), options);
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("97"), std::string::npos) << refused.err;
  options.tokensFile = "";
  options.text = text.path;
  refused = eval(plan.path(), options);
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("--tokenizer"), std::string::npos) << refused.err;
}

TEST(Eval, WrongUsageIsTwoAndFailureIsOne) {
  TinyPlanFile plan(cycle());
  TextFile text("abc"), one("a"), broken("ab\xff");
  EvalOptions options;
  EXPECT_EQ(eval(plan.path(), options).status, 2);
  options.text = options.tokensFile = text.path;
  EXPECT_EQ(eval(plan.path(), options).status, 2);
  options.tokensFile = "";
  options.context = 513;
  Outcome o = eval(plan.path(), options);
  EXPECT_EQ(o.status, 1);
  EXPECT_NE(o.err.find("512"), std::string::npos);
  options.context = 0;
  options.reference = "/nonexistent.plan";
  EXPECT_EQ(eval(plan.path(), options).status, 1);
  options.reference = "";
  for (const std::string &path : {one.path, broken.path, std::string("/nonexistent.txt")}) {
    options.text = path;
    o = eval(plan.path(), options);
    EXPECT_EQ(o.status, 1);
    EXPECT_EQ(o.out, "");
  }
}

} // namespace
