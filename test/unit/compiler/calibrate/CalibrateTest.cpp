#include "compiler/calibrate/Calibrate.h"

#include "test/unit/compiler/decoder/ImportFixture.h"

#include "mlir/Parser/Parser.h"

using namespace llmc;
using namespace llmc::test;
using namespace mlir;

namespace {

/// Weights are constants: what stands for a file's tensor is looked up by name.
class Calibrate : public ImportFixture {
protected:
  llmrt::Result<ColumnImportance> measure(const std::string &body, unsigned threads = 1) {
    module = parseSourceString<ModuleOp>("func.func @step(%tokens: tensor<?xi32>, %positions: "
                                         "tensor<?xi32>) -> tensor<?x6xf32> {" +
                                             body + "}",
                                         &context);
    if (!module)
      return llmrt::internalError(errors);
    CalibrationOptions options;
    options.tokens = 16;
    options.threads = threads;
    options.readable = [this](Value value) -> llmrt::Result<WeightView> {
      auto op = value.getDefiningOp<llm::WeightOp>();
      auto shape = cast<RankedTensorType>(value.getType()).getShape();
      const uint64_t rows = shape[0], columns = shape.size() > 1 ? shape[1] : 1;
      return WeightView::values(op.getName().str(), tensors.at(op.getName().str()), rows, columns);
    };
    return measureImportance(*module, options);
  }
  static std::string weight(const std::string &name, const std::string &value,
                            const std::string &shape, int bytes) {
    return "%" + value + " = llm.weight \"" + name + "\" from [#llm.source<0, 0, " +
           std::to_string(bytes) + ">] as f32 : tensor<" + shape + "xf32>\n";
  }
  OwningOpRef<ModuleOp> module;
  std::map<std::string, std::vector<float>> tensors;
};

TEST_F(Calibrate, measuresTheInputsOfEveryProjection) {
  tensors["embed"] = {1, -2, 1, -2, 1, -2, 1, -2, 1, -2, 1, -2}; // every token is (1, -2)
  tensors["first"] = {3, 0, 0, 5};                               // -> (3, -10)
  tensors["bias"] = {1, 1};                                      // -> (4, -9)
  tensors["second"] = {1, 1, 1, 1};                              // -> (-5, -5), + (1, -2)
  tensors["head"] = std::vector<float>(12, 1);
  const std::string body = weight("embed", "e", "6x2", 48) + weight("first", "a", "2x2", 16) +
                           weight("bias", "b", "2", 8) + weight("second", "c", "2x2", 16) +
                           weight("head", "h", "6x2", 48) + R"(
    %x = llm.embedding %tokens, %e : (tensor<?xi32>, tensor<6x2xf32>) -> tensor<?x2xf32>
    %y = llm.linear %x, %a bias(%b) : tensor<?x2xf32>, tensor<2x2xf32> bias tensor<2xf32> -> tensor<?x2xf32>
    %z = llm.linear %y, %c : tensor<?x2xf32>, tensor<2x2xf32> -> tensor<?x2xf32>
    %w = llm.add %z, %x : tensor<?x2xf32>
    %r = llm.gather_rows %w : tensor<?x2xf32>
    %l = llm.linear %r, %h : tensor<?x2xf32>, tensor<6x2xf32> -> tensor<?x6xf32>
    return %l : tensor<?x6xf32>)";
  for (unsigned threads : {1, 3}) {
    auto measured = measure(body, threads);
    ASSERT_TRUE(measured.isOk()) << measured.status().message();
    EXPECT_EQ(*measured,
              (ColumnImportance{{"first", {1, 4}}, {"second", {16, 81}}, {"head", {16, 49}}}));
  }
}

TEST_F(Calibrate, runsAttentionWithItsCache) {
  tensors["embed"] = std::vector<float>(24, 2); // every token is (2, 2, 2, 2)
  tensors["norm"] = {1, 1, 1, 3};
  tensors["w"] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
  tensors["frequencies"] = {0.5f, 0.25f};
  tensors["out"] = tensors["w"];
  tensors["head"] = std::vector<float>(24, 1);
  auto measured = measure(weight("embed", "e", "6x4", 96) + weight("norm", "n", "4", 16) +
                          weight("w", "w", "4x4", 64) + weight("frequencies", "f", "2", 8) +
                          weight("out", "o", "4x4", 64) + weight("head", "h", "6x4", 96) + R"(
    %x = llm.embedding %tokens, %e : (tensor<?xi32>, tensor<6x4xf32>) -> tensor<?x4xf32>
    %a = llm.rope_angles %positions, %f : (tensor<?xi32>, tensor<2xf32>) -> tensor<?x2x2xf32>
    %m = llm.rms_norm %x, %n {eps = 0.0 : f64} : tensor<?x4xf32>, tensor<4xf32> -> tensor<?x4xf32>
    %q = llm.linear %m, %w : tensor<?x4xf32>, tensor<4x4xf32> -> tensor<?x4xf32>
    %p = llm.rope %q, %a {heads = 1 : i64} : tensor<?x4xf32>, tensor<?x2x2xf32>
    %c = llm.kv_cache 0 : !llm.kv<1 x 4 x 4 x f32>
    %d = llm.kv_append %c, %p, %q : !llm.kv<1 x 4 x 4 x f32>, tensor<?x4xf32>, tensor<?x4xf32>
    %t = llm.attention %p, %d {heads = 1 : i64, scale = 0.5 : f64} : tensor<?x4xf32>, !llm.kv<1 x 4 x 4 x f32> -> tensor<?x4xf32>
    %y = llm.linear %t, %o : tensor<?x4xf32>, tensor<4x4xf32> -> tensor<?x4xf32>
    %l = llm.linear %y, %h : tensor<?x4xf32>, tensor<6x4xf32> -> tensor<?x6xf32>
    return %l : tensor<?x6xf32>)");
  ASSERT_TRUE(measured.isOk()) << measured.status().message();
  // All values are (1, 1, 1, 3), so every average of them is too.
  for (const char *name : {"w", "out"})
    for (int i = 0; i != 4; ++i)
      EXPECT_NEAR((*measured)[name][i], i == 3 ? 9 : 1, 1e-5) << name;
}

TEST_F(Calibrate, refusesWhatItDoesNotKnow) {
  tensors["embed"] = std::vector<float>(12, 1);
  tensors["w"] = std::vector<float>(12, 1);
  auto measured = measure(weight("embed", "e", "6x2", 48) + weight("w", "w", "6x2", 48) + R"(
    %x = llm.embedding %tokens, %e : (tensor<?xi32>, tensor<6x2xf32>) -> tensor<?x2xf32>
    %l = llm.linear %x, %w {activation = #llm<activation_kind silu>} : tensor<?x2xf32>, tensor<6x2xf32> -> tensor<?x6xf32>
    return %l : tensor<?x6xf32>)");
  ASSERT_FALSE(measured.isOk());
  EXPECT_EQ(measured.status().code(), llmrt::StatusCode::Unsupported);
}

} // namespace
