#include "compiler/import/huggingface/HuggingFaceImport.h"

#include "test/unit/compiler/decoder/ImportFixture.h"
#include "test/unit/compiler/huggingface/SafetensorsBuilder.h"

#include <map>

using namespace llmc;
using namespace llmc::test;
using namespace mlir;

namespace {

/// Name -> shape of a model with 2 layers, hidden 16, 4 heads of 4, 2 KV heads, 24 tokens.
std::map<std::string, std::vector<uint64_t>> llamaTensors() {
  std::map<std::string, std::vector<uint64_t>> tensors = {{"model.embed_tokens.weight", {24, 16}},
                                                          {"model.norm.weight", {16}}};
  for (int layer : {0, 1}) {
    const std::string block = "model.layers." + std::to_string(layer) + ".";
    tensors[block + "input_layernorm.weight"] = {16};
    tensors[block + "post_attention_layernorm.weight"] = {16};
    tensors[block + "self_attn.q_proj.weight"] = {16, 16};
    tensors[block + "self_attn.k_proj.weight"] = {8, 16};
    tensors[block + "self_attn.v_proj.weight"] = {8, 16};
    tensors[block + "self_attn.o_proj.weight"] = {16, 16};
    tensors[block + "mlp.gate_proj.weight"] = {32, 16};
    tensors[block + "mlp.up_proj.weight"] = {32, 16};
    tensors[block + "mlp.down_proj.weight"] = {16, 32};
  }
  return tensors;
}

class HuggingFaceImport : public ImportFixture {
protected:
  OwningOpRef<ModuleOp> import(const std::map<std::string, std::vector<uint64_t>> &tensors,
                               const std::string &more = "\"tie_word_embeddings\":true",
                               const std::string &type = "llama") {
    SafetensorsBuilder builder;
    for (const auto &[name, shape] : tensors) {
      uint64_t count = 1;
      std::string text;
      for (uint64_t size : shape) {
        count *= size;
        text += (text.empty() ? "" : ",") + std::to_string(size);
      }
      builder.f32(name, text, std::vector<float>(count, 0.5f));
    }
    folder.write("model.safetensors", builder.build());
    folder.write("config.json",
                 R"({"model_type":")" + type +
                     R"(","num_hidden_layers":2,"hidden_size":16,"intermediate_size":32,)"
                     R"("num_attention_heads":4,"num_key_value_heads":2,"vocab_size":24,)"
                     R"("max_position_embeddings":64,"rms_norm_eps":1e-05,"rope_theta":10000,)" +
                     more + "}");
    errors.clear();
    remarks.clear();
    return importHuggingFace(folder.path(), &context);
  }
};

TEST_F(HuggingFaceImport, buildsTheStep) {
  OwningOpRef<ModuleOp> module = import(llamaTensors());
  ASSERT_TRUE(module) << errors;
  EXPECT_EQ(count<llm::LinearOp>(*module), 15u); // 7 a layer and the head
  EXPECT_EQ(count<llm::RmsNormOp>(*module), 5u);
  EXPECT_EQ(count<llm::RopeOp>(*module), 4u);
  EXPECT_EQ(count<llm::AttentionOp>(*module), 2u);
  EXPECT_EQ(count<llm::WeightUnpermuteOp>(*module), 0u);
  const std::string text = printed(*module);
  expectHas(text, "llm.files = [\"model.safetensors\"]");
  expectHas(text, "kv_heads = 2 : i64");
  expectHas(text, "max_context = 64 : i64");
  expectHas(text, "scale = 5.000000e-01 : f64"); // 1 / sqrt(4)
  expectHas(text, "<2 x 4 x 4 x f32>");
  EXPECT_EQ(remarks, "");
}

TEST_F(HuggingFaceImport, resolvesTheHead) { // case Q13
  auto untied = llamaTensors();
  untied["lm_head.weight"] = {24, 16};
  ASSERT_TRUE(import(llamaTensors())) << errors; // tied, no head
  OwningOpRef<ModuleOp> ignored = import(untied);
  ASSERT_TRUE(ignored) << errors; // tied, with a head
  expectHas(remarks, "'lm_head.weight' is ignored");
  EXPECT_EQ(printed(*ignored).find("lm_head"), std::string::npos);
  OwningOpRef<ModuleOp> own = import(untied, "\"tie_word_embeddings\":false");
  ASSERT_TRUE(own) << errors;
  expectHas(printed(*own), "llm.weight \"lm_head.weight\"");
  EXPECT_FALSE(import(llamaTensors(), "\"tie_word_embeddings\":false"));
  expectHas(errors, "'lm_head.weight' of shape [24, 16] is missing");
}

TEST_F(HuggingFaceImport, namesMissingExtraAndMisshapenTensors) { // case M14
  auto tensors = llamaTensors();
  tensors.erase("model.layers.1.mlp.up_proj.weight");
  EXPECT_FALSE(import(tensors));
  expectHas(errors, "'model.layers.1.mlp.up_proj.weight' of shape [32, 16] is missing");

  tensors = llamaTensors();
  tensors["model.layers.1.self_attn.k_proj.weight"] = {16, 16};
  EXPECT_FALSE(import(tensors));
  expectHas(errors, "'model.layers.1.self_attn.k_proj.weight' has the shape [16, 16]; the "
                    "configuration needs [8, 16]");

  tensors = llamaTensors();
  tensors["model.layers.0.self_attn.q_proj.bias"] = {16}; // not in the configuration
  tensors["model.layers.2.input_layernorm.weight"] = {16};
  EXPECT_FALSE(import(tensors));
  expectHas(errors, "2 tensors are not part of a model of architecture 'llama'");
  expectHas(errors, "'model.layers.0.self_attn.q_proj.bias'");

  tensors = llamaTensors();
  tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = {2}; // an old buffer
  EXPECT_TRUE(import(tensors)) << errors;
}

TEST_F(HuggingFaceImport, buildsBiasesAndHeadNorms) {
  auto tensors = llamaTensors();
  for (int layer : {0, 1})
    for (auto [name, size] : {std::pair("q", 16), std::pair("k", 8), std::pair("v", 8)})
      tensors["model.layers." + std::to_string(layer) + ".self_attn." + name + "_proj.bias"] = {
          uint64_t(size)};
  OwningOpRef<ModuleOp> qwen2 = import(tensors, "\"tie_word_embeddings\":true", "qwen2");
  ASSERT_TRUE(qwen2) << errors;
  size_t biased = 0;
  qwen2->walk([&](llm::LinearOp op) { biased += op.getBias() != nullptr; });
  EXPECT_EQ(biased, 6u);

  tensors = llamaTensors();
  for (int layer : {0, 1})
    for (const char *name : {"q_norm", "k_norm"})
      tensors["model.layers." + std::to_string(layer) + ".self_attn." + name + ".weight"] = {4};
  OwningOpRef<ModuleOp> qwen3 = import(tensors, "\"tie_word_embeddings\":true", "qwen3");
  ASSERT_TRUE(qwen3) << errors;
  size_t byHead = 0;
  qwen3->walk([&](llm::RmsNormOp op) { byHead += op.getGroupSize() == 4; });
  EXPECT_EQ(byHead, 4u);
}

TEST_F(HuggingFaceImport, keepsWindows) {
  OwningOpRef<ModuleOp> module =
      import(llamaTensors(), "\"tie_word_embeddings\":true,\"sliding_window\":8", "mistral");
  ASSERT_TRUE(module) << errors;
  module->walk([&](llm::AttentionOp op) { EXPECT_EQ(op.getWindow(), 8u); });
}

TEST_F(HuggingFaceImport, failsWithOneMessage) {
  EXPECT_FALSE(importHuggingFace(folder.path(), &context));
  expectHas(errors, "has no config.json");
  EXPECT_FALSE(import(llamaTensors(), "\"x\":1", "gemma3"));
  expectHas(errors, "'gemma3' is not supported");
  EXPECT_FALSE(import(llamaTensors(), "\"rope_scaling\":{\"type\":\"ntk\",\"factor\":2}"));
  expectHas(errors, "'ntk' is not supported");
}

} // namespace
