// explain on a tiny plan: the rows sum up to the step, and the step is the one that was asked for.
#include "tools/common/Explain.h"

#include "test/unit/engine/TinyPlan.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace llmc::tools;
using llmrt::test::TinyPlanFile;

namespace {

TEST(Explain, RowsSumUpToTheStep) {
  TinyPlanFile plan;
  for (unsigned threads : {1u, 2u}) {
    ExplainOptions options;
    options.context = 30;
    options.tokens = 300; // three steps of the plan's limit of 128 tokens
    options.threads = threads;
    options.json = true;
    std::ostringstream out, err;
    ASSERT_EQ(explainMain(plan.path(), options, out, err), 0) << err.str();
    auto json = nlohmann::json::parse(out.str());
    EXPECT_EQ(json["threads"], threads);
    EXPECT_EQ(json["decode"]["tokens"], 1);
    EXPECT_EQ(json["decode"]["context"], 30);
    EXPECT_EQ(json["prefill"]["tokens"], 300);
    for (const char *step : {"decode", "prefill"}) {
      double sum = 0;
      ASSERT_EQ(json[step]["kernels"].size(), 4u);
      double before = 1e9;
      for (const auto &kernel : json[step]["kernels"]) {
        EXPECT_EQ(kernel["used"], 1);
        double seconds = kernel["measured_s"];
        EXPECT_GE(seconds, 0);
        EXPECT_LE(seconds, before); // the slowest first
        before = seconds;
        sum += seconds;
      }
      EXPECT_NEAR(json[step]["total"]["measured_s"].get<double>(), sum, 1e-9);
      EXPECT_GT(json[step]["total"]["measured_s"], 0);
      EXPECT_EQ(json[step]["total"]["used"], 4);
    }
    // Hashing a context is most of this model's work, and its prompt has 300 of them.
    EXPECT_EQ(json["prefill"]["kernels"][0]["kind"], "tiny_reflect");
    EXPECT_GT(json["prefill"]["total"]["measured_s"], json["decode"]["total"]["measured_s"]);
  }
}

TEST(Explain, Table) {
  TinyPlanFile plan;
  ExplainOptions options;
  options.threads = 1;
  std::ostringstream out, err;
  ASSERT_EQ(explainMain(plan.path(), options, out, err), 0) << err.str();
  // The default leaves room for the tokens that are decoded.
  EXPECT_NE(out.str().find("decode of 1 token at context 496"), std::string::npos) << out.str();
  EXPECT_EQ(out.str().find("prefill"), std::string::npos);
  EXPECT_NE(out.str().find("\n  all "), std::string::npos);
  EXPECT_NE(out.str().find("100.0 %\n"), std::string::npos);
}

TEST(Explain, BeyondTheContext_invalid) {
  TinyPlanFile plan;
  ExplainOptions options;
  options.threads = 1;
  options.context = 500;
  std::ostringstream out, err;
  EXPECT_EQ(explainMain(plan.path(), options, out, err), 1);
  EXPECT_NE(err.str().find("512"), std::string::npos);
  options.context = 0;
  options.tokens = 600;
  EXPECT_EQ(explainMain(plan.path(), options, out, err), 1);
  EXPECT_EQ(out.str(), "");
}

} // namespace
