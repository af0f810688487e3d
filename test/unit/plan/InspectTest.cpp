#include "tools/common/Inspect.h"

#include "runtime/plan/Plan.h"
#include "test/unit/plan/TestPlan.h"
#include "tools/common/JsonWriter.h"
#include "tools/common/MeasureLimits.h"
#include "tools/common/Table.h"
#include "tools/common/Verify.h"

#include <gtest/gtest.h>

#include <sstream>

using namespace llmrt;
using namespace llmrt::test;
using namespace llmc::tools;

namespace {

struct Printed {
  int status;
  std::string out, err;
};

Printed inspect(const std::string &path, InspectOptions options = {}) {
  std::ostringstream out, err;
  options.threads = 2;
  int status = inspectMain(path, options, out, err);
  return {status, out.str(), err.str()};
}

Printed verify(const std::string &path) {
  std::ostringstream out, err;
  int status = verifyMain(path, out, err);
  return {status, out.str(), err.str()};
}

void expectContains(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in:\n" << text;
}

size_t lines(const std::string &text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

struct PlanFile {
  TemporaryFolder folder;
  std::string path = folder / "m.plan";
  PlanFile() { writeFile(path, testPlanImage()); }
};

} // namespace

TEST(Inspect, TextSaysWhatThePlanHolds) {
  PlanFile file;
  Printed r = inspect(file.path);
  ASSERT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.err, "");
  for (const char *part :
       {"tiny (llama)", "model.safetensors", "-O3 --int4", "i4.g32.f16.min", "f32.n16", "all",
        "embed_f32_d8", "run by 9 commands", "x86-64-v3 (kernel ABI 1)", "= 96 T in 2 slots",
        "T 64 tokens, S 8 sequences, R 16 rows", "decode, context 255", "prefill of 256"})
    expectContains(r.out, part);
  // used twice (once a layer); 4096 bytes of scratch
  expectContains(r.out, "gemm_i4g32_k8_n16   gemm            2     4096");
}

TEST(Inspect, JsonHasTheKeysThatScriptsRead) {
  PlanFile file;
  InspectOptions options;
  options.json = true;
  options.bandwidth = 1e9;
  options.intOperations = 1e12;
  options.floatOperations = 1e12;
  options.context = 10;
  Printed r = inspect(file.path, options);
  ASSERT_EQ(r.status, 0) << r.err;
  for (const char *part :
       {"\"model\": {", "\"weights\": {", "\"kv_bytes_per_token\": 64", "\"arena\": {",
        "\"kernels\": [", "\"name\": \"gemm_i4g32_k8_n16\"", "\"target\": \"cpu\"",
        "\"registers\": 0", "\"spill_bytes\": 0", "\"shared_bytes\": 0", "\"scratch_bytes\": 4096",
        "\"scale\": 1e-05", "\"predicted\": {",
        "\"decode_tokens_per_s\": ", "\"formula\": \"96 T\"", "\"bytes_at_limits\": 6144"})
    expectContains(r.out, part);
  // 2 * 320 + 1024 + 2 * 32 * 11 = 2368 bytes at 1 GB/s.
  expectContains(r.out, "\"seconds\": 2.368e-06");
}

TEST(Inspect, JsonParses) {
  if (std::system("python3 -c pass >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "no python3";
  PlanFile file;
  InspectOptions options;
  options.json = true;
  Printed r = inspect(file.path, options);
  writeFile(file.folder / "i.json", {r.out.begin(), r.out.end()});
  std::string check = "python3 -c \"import json,sys; j = json.load(open(sys.argv[1])); "
                      "assert j['weights']['tensors'] == 3 and len(j['kernels']) == 6 and "
                      "j['model']['vocab_size'] == 20\" " +
                      (file.folder / "i.json");
  EXPECT_EQ(std::system(check.c_str()), 0) << r.out;
}

TEST(Inspect, ACudaKernelHasARowForEachArchitecture) {
  TestPlan p = makeCudaTestPlan({"sm_80", "sm_90a", "compute_80"});
  TemporaryFolder folder;
  writeFile(folder / "m.plan", buildPlanImage(p.head, p.segments));
  InspectOptions options;
  options.json = true;
  Printed r = inspect(folder / "m.plan", options);
  ASSERT_EQ(r.status, 0) << r.err;
  expectContains(r.out, "\"target\": \"cpu\"");
  expectContains(r.out, "\"target\": \"sm_80\"");
  expectContains(r.out, "\"target\": \"sm_90a\"");
  expectContains(r.out, "\"registers\": 40");
  // Nobody knows the registers of PTX.
  EXPECT_EQ(r.out.find("\"target\": \"compute_80\""), std::string::npos);
  expectContains(inspect(folder / "m.plan").out, "spilled");
}

TEST(Inspect, ABadPlanIsOneLineAndStatusOne) {
  PlanFile file;
  std::vector<uint8_t> image = readFile(file.path);
  image[100] ^= 1;
  writeFile(file.path, image);
  for (const Printed &r : {inspect(file.path), inspect(file.path + ".none"), verify(file.path),
                           verify(file.path + ".none")}) {
    EXPECT_EQ(r.status, 1);
    EXPECT_EQ(r.out, "");
    EXPECT_EQ(lines(r.err), 1u) << r.err;
    expectContains(r.err, "error: " + file.path);
  }
}

TEST(Inspect, LongPromptsGoInChunks) {
  TestPlan p = makeTestPlan();
  auto plan = Plan::fromMemory(buildPlanImage(p.head, p.segments));
  ASSERT_TRUE(plan.isOk());
  MachineLimits limits = defaultLimits("x86-64-v3", 1);
  // 256 tokens in steps of 64: weights are read four times.
  Prediction whole = predictPrefill((*plan)->head(), limits, 256);
  double parts = 0;
  for (int64_t done : {0, 64, 128, 192})
    parts += predictStep((*plan)->head(), limits, {64, done == 192, done}).bytes;
  EXPECT_DOUBLE_EQ(whole.bytes, parts);
}

TEST(Verify, PrintsALineForEachSegment) {
  PlanFile file;
  Printed r = verify(file.path);
  ASSERT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(lines(r.out), 5u) << r.out;
  for (const char *part : {"head ", "weights ", "code.x86-64-v3 ", "tokenizer ",
                           "3 weights, 6 kernels, 9 commands: ok"})
    expectContains(r.out, part);
}

TEST(Verify, ReadsTheWeights) {
  PlanFile file;
  std::vector<uint8_t> image = readFile(file.path);
  auto plan = Plan::fromMemory(image);
  ASSERT_TRUE(plan.isOk());
  image[(*plan)->head().segments()->Get(0)->offset() + 10] ^= 1;
  writeFile(file.path, image);
  EXPECT_EQ(inspect(file.path).status, 0);
  Printed r = verify(file.path);
  EXPECT_EQ(r.status, 1);
  EXPECT_EQ(lines(r.err), 1u) << r.err;
  expectContains(r.err, "segment 'weights' is damaged");
}

TEST(MeasureLimits, GivesPlausibleNumbers) {
  MachineLimits m = measureLimits(1);
  EXPECT_GT(m.bytesPerSecond, 1e8);
  EXPECT_LT(m.bytesPerSecond, 1e13);
  EXPECT_GT(m.floatOperationsPerSecond, 1e8);
  EXPECT_LT(m.floatOperationsPerSecond, 1e13);
  EXPECT_GT(m.intOperationsPerSecond, 1e8);
  EXPECT_LT(m.intOperationsPerSecond, 1e14);
}

TEST(JsonWriter, EscapesAndNests) {
  std::ostringstream out;
  JsonWriter j(out);
  j.object([&] {
    j.key("a\"\\\n").value("\x01é");
    j.key("list").array([&] {
      j.value(1);
      j.value(true);
      j.value(HUGE_VAL);
    });
    j.key("empty").object([] {});
  });
  EXPECT_EQ(out.str(), "{\n  \"a\\\"\\\\\\u000a\": \"\\u0001é\",\n  \"list\": [\n    1,\n    "
                       "true,\n    null\n  ],\n  "
                       "\"empty\": {}\n}\n");
}

TEST(Table, AlignsNumbersToTheRight) {
  std::ostringstream out;
  Table t({"name", "n"});
  t.add({"a", "1"});
  t.add({"bcdefg", "200"});
  t.print(out);
  EXPECT_EQ(out.str(), "  name      n\n  a         1\n  bcdefg  200\n");
}

TEST(Table, FormatsBytes) {
  EXPECT_EQ(formatBytes(0), "0 B");
  EXPECT_EQ(formatBytes(999), "999 B");
  EXPECT_EQ(formatBytes(74100000), "74.1 MB");
  EXPECT_EQ(formatBytes(999960), "1.0 MB");
}
