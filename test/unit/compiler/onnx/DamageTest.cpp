// Damaged files end in one message, never in a crash.
#include "ImportRun.h"
#include "TinyModels.h"
#include "gtest/gtest.h"
#include <random>

using namespace onnxtest;

namespace {

/// Imports \p file from \p folder; either it works or there is exactly one error, with text.
void expectCleanEnd(const TempFolder &folder, const std::string &file, const std::string &what) {
  ImportRun run;
  run.importFile(folder.write("model.onnx", file));
  if (!run.module)
    ASSERT_EQ(run.errors.size(), 1u) << what;
  else
    ASSERT_TRUE(run.errors.empty()) << what;
  for (const std::string &error : run.errors)
    ASSERT_NE(error.find("model.onnx: "), std::string::npos) << what << ": " << error;
}

/// A model with something of everything that the reader knows.
std::string sampleModel() {
  Model model;
  model.opset = 21;
  model.inputs = {value("x", Float, {"batch", "sequence", "64"}), value("c", Bool, {})};
  model.initializers = {i64s("heads", {0, 0, 4, -1}),
                        tensor("w", Float, {64, 64}, std::string(64 * 64 * 4, '\x3c')),
                        tensorHead("half", Half, {64}).packed(5, std::vector<int64_t>(64, 0x3c00)),
                        tensor("q", UInt8, {16 * 2 * 16}, std::string(512, '\x88')),
                        f32s("s", std::vector<float>(32, 1))};
  Message branch;
  branch.message(1, node("Neg", {"m"}, {"r"})).message(12, anyShape("r", Float));
  model.nodes = {node("MatMul", {"x", "w"}, {"m"}),
                 node("Reshape", {"m", "heads"}, {"h"}),
                 node("Transpose", {"h"}, {"t"}, {intsAttr("perm", {0, 2, 1, 3})}),
                 node("If", {"c"}, {"i"},
                      {graphAttr("then_branch", branch), graphAttr("else_branch", branch)}),
                 node("Cast", {"half"}, {"hf"}, {intAttr("to", 1)}),
                 node("Half", {"i", "hf"}, {"f"}, {floatAttr("by", 0.5f)}, "my"),
                 node("MatMulNBits", {"f", "q", "s"}, {"y"},
                      {intAttr("K", 64), intAttr("N", 16), intAttr("block_size", 32)},
                      "com.microsoft")};
  model.functions = {function("my", "Half", {"a", "b"}, {"c"},
                              {node("Constant", {}, {"k"}, {refAttr("value_float", 1, "by")}),
                               node("Mul", {"a", "k"}, {"ak"}), node("Mul", {"ak", "b"}, {"c"})},
                              {"by"})};
  model.domains.push_back({"my", 1});
  model.outputs = {anyShape("t", Float), anyShape("y", Float)};
  return model.file();
}

TEST(OnnxDamage, theSampleIsWhole) {
  ImportRun run;
  run.importFile(run.folder.write("model.onnx", sampleModel()));
  EXPECT_TRUE(run.module) << run.error();
}

TEST(OnnxDamage, truncatedAnywhere_invalid) {
  TempFolder folder;
  std::string whole = sampleModel();
  // Every length of the head, then steps: most of the rest is weights.
  for (size_t size = 0; size < whole.size(); size += size < 2000 ? 1 : 97)
    expectCleanEnd(folder, whole.substr(0, size), "cut to " + std::to_string(size));
}

TEST(OnnxDamage, everyBitOfTheHeadFlipped_invalid) {
  TempFolder folder;
  std::string whole = sampleModel();
  size_t changed = 0;
  for (size_t i = 0; i < whole.size(); i += i < 1400 ? 1 : 53)
    for (int bit = 0; bit < 8; bit += i < 700 ? 1 : 3) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      expectCleanEnd(folder, damaged,
                     "bit " + std::to_string(bit) + " of byte " + std::to_string(i));
      ++changed;
    }
  EXPECT_GT(changed, 5000u);
}

TEST(OnnxDamage, randomBytes_invalid) {
  TempFolder folder;
  std::mt19937 random(7);
  std::string whole = sampleModel();
  for (int round = 0; round < 1500; ++round) {
    std::string damaged = whole;
    for (unsigned i = 0, n = 1 + random() % 8; i < n; ++i)
      damaged[random() % (round % 2 ? 1500 : damaged.size())] = static_cast<char>(random());
    expectCleanEnd(folder, damaged, "round " + std::to_string(round));
  }
}

TEST(OnnxDamage, realModelTruncatedAndFlipped_invalid) {
  std::string whole = readTiny("llama/genai-int4.onnx");
  if (whole.empty())
    FAIL() << "no tiny models here";
  TempFolder folder;
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    std::string damaged = whole;
    size_t at = random() % (round % 2 ? 9000 : damaged.size());
    if (round % 3 == 0)
      damaged.resize(at);
    else
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << (random() % 8)));
    expectCleanEnd(folder, damaged, "round " + std::to_string(round) + " at " + std::to_string(at));
  }
}

} // namespace
