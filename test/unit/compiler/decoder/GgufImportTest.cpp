#include "compiler/import/gguf/GgufImport.h"

#include "compiler/import/gguf/GgufText.h"
#include "test/unit/compiler/decoder/ImportFixture.h"
#include "test/unit/compiler/gguf/GgufBuilder.h"

#include <functional>

using namespace llmc;
using namespace llmc::test;
using namespace mlir;

namespace {

class GgufImport : public ImportFixture {
protected:
  /// A model of 2 layers, hidden 16, 4 heads of 4, 2 KV heads, 24 tokens; \p change may add to it.
  GgufBuilder model(const std::string &arch = "llama") {
    GgufBuilder b;
    b.string("general.architecture", arch)
        .string("general.name", "Tiny")
        .u32(arch + ".block_count", 2)
        .u32(arch + ".embedding_length", 16)
        .u32(arch + ".feed_forward_length", 32)
        .u32(arch + ".context_length", 64)
        .u32(arch + ".attention.head_count", 4)
        .u32(arch + ".attention.head_count_kv", 2)
        .f32(arch + ".attention.layer_norm_rms_epsilon", 1e-5f)
        .f32(arch + ".rope.freq_base", 10000.0f);
    return b;
  }
  static void addTensor(GgufBuilder &b, const std::string &name,
                        const std::vector<uint64_t> &shape) {
    uint64_t count = 1;
    for (uint64_t size : shape)
      count *= size;
    b.floats(name, {shape.rbegin(), shape.rend()}, std::vector<float>(count, 0.5f));
  }
  static GgufBuilder &addTensors(GgufBuilder &b, const std::string &without = "") {
    const auto add = [&](const std::string &name, const std::vector<uint64_t> &shape) {
      if (name != without)
        addTensor(b, name, shape);
    };
    add("token_embd.weight", {24, 16});
    add("output_norm.weight", {16});
    for (int layer : {0, 1}) {
      const std::string block = "blk." + std::to_string(layer) + ".";
      add(block + "attn_norm.weight", {16});
      add(block + "ffn_norm.weight", {16});
      add(block + "attn_q.weight", {16, 16});
      add(block + "attn_k.weight", {8, 16});
      add(block + "attn_v.weight", {8, 16});
      add(block + "attn_output.weight", {16, 16});
      add(block + "ffn_gate.weight", {32, 16});
      add(block + "ffn_up.weight", {32, 16});
      add(block + "ffn_down.weight", {16, 32});
    }
    return b;
  }
  OwningOpRef<ModuleOp> import(const GgufBuilder &b) {
    errors.clear();
    remarks.clear();
    return importGguf(folder.write("tiny.gguf", b.build()), &context);
  }
  void expectError(const GgufBuilder &b, const std::string &part) {
    EXPECT_FALSE(import(b));
    expectHas(errors, part);
  }
};

TEST_F(GgufImport, buildsTheStepAndUndoesTheRowOrder) { // case Q14: K has its own heads
  GgufBuilder b = model();
  OwningOpRef<ModuleOp> module = import(addTensors(b));
  ASSERT_TRUE(module) << errors;
  EXPECT_EQ(count<llm::LinearOp>(*module), 15u);
  std::multiset<std::pair<std::string, uint64_t>> permuted;
  module->walk([&](llm::WeightUnpermuteOp op) {
    permuted.emplace(op.getWeight().getDefiningOp<llm::WeightOp>().getName(), op.getHeads());
  });
  EXPECT_EQ(permuted,
            (std::multiset<std::pair<std::string, uint64_t>>{{"blk.0.attn_q.weight", 4},
                                                             {"blk.0.attn_k.weight", 2},
                                                             {"blk.1.attn_q.weight", 4},
                                                             {"blk.1.attn_k.weight", 2}}));
  const std::string text = printed(*module);
  expectHas(text, "llm.files = [\"tiny.gguf\"]");
  expectHas(text, "name = \"Tiny\"");
  EXPECT_EQ(text.find("\"output.weight\""), std::string::npos); // tied
}

TEST_F(GgufImport, onlyLlamaHasPermutedRows) {
  GgufBuilder b = model("qwen2");
  addTensors(b);
  for (int layer : {0, 1})
    for (auto [name, size] :
         {std::pair("attn_q", 16), std::pair("attn_k", 8), std::pair("attn_v", 8)})
      addTensor(b, "blk." + std::to_string(layer) + "." + name + ".bias", {uint64_t(size)});
  OwningOpRef<ModuleOp> module = import(b);
  ASSERT_TRUE(module) << errors;
  EXPECT_EQ(count<llm::WeightUnpermuteOp>(*module), 0u);
}

TEST_F(GgufImport, takesAHeadOfItsOwn) {
  GgufBuilder b = model();
  addTensors(b);
  addTensor(b, "output.weight", {24, 16});
  OwningOpRef<ModuleOp> module = import(b);
  ASSERT_TRUE(module) << errors;
  expectHas(printed(*module), "llm.weight \"output.weight\"");
}

TEST_F(GgufImport, dividesTheFrequencies) { // Llama 3.1's rope_freqs.weight
  GgufBuilder b = model();
  addTensors(b).floats("rope_freqs.weight", {2}, {4.0f, 8.0f});
  OwningOpRef<ModuleOp> module = import(b);
  ASSERT_TRUE(module) << errors;
  expectHas(printed(*module), "dense<[2.500000e-01, 1.250000e-03]>");
  GgufBuilder wrong = model();
  addTensors(wrong).floats("rope_freqs.weight", {3}, {1, 1, 1});
  expectError(wrong, "'rope_freqs.weight' has 3 values; 2 are needed");
}

TEST_F(GgufImport, namesWhatIsWrong) {
  GgufBuilder missing = model();
  expectError(addTensors(missing, "blk.1.ffn_up.weight"),
              "'blk.1.ffn_up.weight' of shape [32, 16] is missing");
  GgufBuilder extra = model();
  addTensors(extra);
  addTensor(extra, "blk.0.attn_sinks.weight", {4});
  expectError(extra, "'blk.0.attn_sinks.weight'");
  GgufBuilder misshapen = model();
  addTensors(misshapen, "blk.0.attn_v.weight");
  addTensor(misshapen, "blk.0.attn_v.weight", {16, 16});
  expectError(misshapen, "'blk.0.attn_v.weight' has the shape [16, 16]");
  GgufBuilder unread = model();
  addTensors(unread, "output_norm.weight");
  unread.data.resize((unread.data.size() + 31) / 32 * 32);
  unread.tensor("output_norm.weight", {16}, 26, unread.data.size()).data += std::string(64, '\0');
  expectError(unread, "'output_norm.weight' is of type I32");
  GgufBuilder unknown = model("mamba");
  expectError(addTensors(unknown), "architecture 'mamba' is not supported");
  GgufBuilder experts = model();
  experts.u32("llama.expert_count", 8);
  expectError(addTensors(experts), "no metadata key 'llama.expert_used_count'");
  GgufBuilder rope = model();
  rope.string("llama.rope.scaling.type", "ntk");
  expectError(addTensors(rope), "'ntk' is not supported");
  GgufBuilder none;
  expectError(addTensors(none), "general.architecture");
  GgufBuilder layers;
  layers.string("general.architecture", "llama").u32("llama.block_count", 4000000000u);
  expectError(addTensors(layers), "4000000000 layers");
}

TEST_F(GgufImport, takesHeadCountsByLayerWhenTheyAgree) { // case M07
  const auto with = [&](const std::vector<int32_t> &heads) {
    GgufBuilder b;
    b.string("general.architecture", "llama")
        .u32("llama.block_count", 2)
        .u32("llama.embedding_length", 16)
        .u32("llama.feed_forward_length", 32)
        .u32("llama.context_length", 64)
        .entry("llama.attention.head_count", GgufType::Array,
               GgufBuilder::list<int32_t>(GgufType::Int32, heads))
        .u32("llama.attention.head_count_kv", 2)
        .f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    addTensors(b);
    return b;
  };
  EXPECT_TRUE(import(with({4, 4}))) << errors;
  expectHas(remarks, "10000 is taken");
  expectError(with({4}), "array of 2 integers");
  expectError(with({4, 2}), "differs by layer");
  expectError(with({4, -4}), "aren't negative");
}

TEST_F(GgufImport, checksTheTokenizersArrays) { // case M07
  const auto read = [&](const std::function<void(GgufBuilder &)> &fill) {
    GgufBuilder b;
    b.string("tokenizer.ggml.model", "llama");
    fill(b);
    auto file = GgufFile::open(folder.write("t.gguf", b.build()));
    EXPECT_TRUE(file.isOk());
    auto data = readGgufTokenizer(*file);
    return data.isOk() ? std::string("fine") : data.status().message();
  };
  const std::string tokens = GgufBuilder::strings({"a", "b", "c"});
  EXPECT_EQ(
      read([&](GgufBuilder &b) { b.entry("tokenizer.ggml.tokens", GgufType::Array, tokens); }),
      "fine");
  expectHas(read([](GgufBuilder &) {}), "no 'tokenizer.ggml.tokens'");
  expectHas(read([&](GgufBuilder &b) {
              b.entry("tokenizer.ggml.tokens", GgufType::Array, tokens)
                  .entry("tokenizer.ggml.token_type", GgufType::Array,
                         GgufBuilder::list<int32_t>(GgufType::Int32, {1, 1}));
            }),
            "'tokenizer.ggml.token_type' has 2 elements; one for each of the 3 tokens");
  expectHas(read([&](GgufBuilder &b) {
              b.entry("tokenizer.ggml.tokens", GgufType::Array, tokens)
                  .entry("tokenizer.ggml.scores", GgufType::Array,
                         GgufBuilder::list<uint8_t>(GgufType::Uint8, {1, 2, 3}));
            }),
            "array of 3 uint8");
  expectHas(read([&](GgufBuilder &b) {
              b.entry("tokenizer.ggml.tokens", GgufType::Array, tokens)
                  .u32("tokenizer.ggml.eos_token_id", 3);
            }),
            "is 3; the vocabulary has 3 tokens");
}

} // namespace
