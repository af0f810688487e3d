#include "compiler/import/huggingface/ModelConfig.h"

#include "test/unit/compiler/common/TempFolder.h"

#include <gtest/gtest.h>

using namespace llmc;
using llmc::test::TempFolder;

namespace {

/// A Llama configuration with \p more members, which replace those of the same name.
std::string llama(const std::string &more, const std::string &type = "llama") {
  std::string json = R"({"model_type":")" + type + R"(")";
  for (const char *member :
       {R"("num_hidden_layers":2)", R"("hidden_size":64)", R"("intermediate_size":128)",
        R"("num_attention_heads":4)", R"("num_key_value_heads":2)", R"("vocab_size":512)",
        R"("max_position_embeddings":256)", R"("rms_norm_eps":1e-05)"}) {
    const std::string text = member;
    if (more.find(text.substr(0, text.find(':') + 1)) == std::string::npos)
      json += "," + text;
  }
  return json + (more.empty() ? "" : "," + more) + "}";
}

class Config : public ::testing::Test {
protected:
  llmrt::Result<DecoderConfig> read(const std::string &json) {
    folder.write("config.json", json);
    auto file = JsonFile::open(folder.path(), "config.json");
    if (!file.isOk())
      return file.status();
    notes.clear();
    return readModelConfig(**file, notes);
  }
  DecoderConfig good(const std::string &json) {
    auto config = read(json);
    EXPECT_TRUE(config.isOk()) << config.status().message();
    return config.isOk() ? *config : DecoderConfig();
  }
  void expectError(const std::string &json, const std::string &part) {
    auto config = read(json);
    ASSERT_FALSE(config.isOk()) << json;
    EXPECT_NE(config.status().message().find(part), std::string::npos) << config.status().message();
  }
  TempFolder folder;
  std::vector<std::string> notes;
};

TEST_F(Config, readsLlama) {
  const DecoderConfig c = good(llama(R"("rope_theta":100000.0,"tie_word_embeddings":true)"));
  EXPECT_EQ(c.layers, 2u);
  EXPECT_EQ(c.headSize, 16u);
  EXPECT_EQ(c.kvHeads, 2u);
  EXPECT_EQ(c.normEps, 1e-5);
  EXPECT_EQ(c.rope.theta, 100000);
  EXPECT_EQ(c.rope.rotarySize, 16u);
  EXPECT_TRUE(c.tiedHead);
  EXPECT_FALSE(c.qkvBias || c.outputBias || c.mlpBias || c.headNorms || c.permutedHeads);
  EXPECT_EQ(c.windows, (std::vector<uint64_t>{0, 0}));
  EXPECT_TRUE(notes.empty());
}

TEST_F(Config, readsWhatFamiliesDiffer) {
  EXPECT_TRUE(good(llama("", "qwen2")).qkvBias);
  EXPECT_FALSE(good(llama("", "qwen2")).outputBias);
  EXPECT_TRUE(good(llama("", "qwen3")).headNorms);
  EXPECT_EQ(good(llama(R"("head_dim":32)", "qwen3")).headSize, 32u);
  EXPECT_TRUE(good(llama(R"("attention_bias":true,"mlp_bias":true)")).mlpBias);
  EXPECT_EQ(good(llama(R"("sliding_window":8)", "mistral")).windows, (std::vector<uint64_t>{8, 8}));
  EXPECT_EQ(good(llama(R"("sliding_window":null)", "mistral")).windows[0], 0u);
  // Qwen names a window that is switched off.
  EXPECT_EQ(good(llama(R"("sliding_window":8,"use_sliding_window":false)", "qwen2")).windows[1],
            0u);
  EXPECT_EQ(
      good(llama(R"("sliding_window":8,"use_sliding_window":true,"max_window_layers":1)", "qwen2"))
          .windows,
      (std::vector<uint64_t>{0, 8}));
  EXPECT_EQ(good(llama(R"("sliding_window":8,"layer_types":["sliding_attention","full_attention"])",
                       "qwen3"))
                .windows,
            (std::vector<uint64_t>{8, 0}));
}

TEST_F(Config, findsThetaInAllItsPlaces) { // case A22
  const double old = good(llama(R"("rope_theta":1e6,"rope_scaling":null)")).rope.theta;
  const double fresh =
      good(llama(R"("rope_parameters":{"rope_type":"default","rope_theta":1e6})")).rope.theta;
  EXPECT_EQ(old, 1e6);
  EXPECT_EQ(fresh, 1e6);
  EXPECT_EQ(good(llama(R"("rope_parameters":{"full_attention":{"rope_theta":5e5}})")).rope.theta,
            5e5);
  expectError(llama(R"("rope_parameters":{"full_attention":{"rope_theta":1e6},)"
                    R"("sliding_attention":{"rope_theta":1e4}})"),
              "differ by type of layer");
  expectError(llama(R"("rope_theta":1e6,"rope_parameters":{"rope_theta":1e4})"), "must agree");
  EXPECT_EQ(
      good(llama(R"("rope_theta":1e6,"rope_parameters":{"rope_theta":1000000.0})")).rope.theta,
      1e6);
  EXPECT_EQ(good(llama("")).rope.theta, 10000);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("10000"), std::string::npos);
}

TEST_F(Config, readsScalings) {
  const std::string llama3 = R"({"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,)"
                             R"("high_freq_factor":4.0,"original_max_position_embeddings":8192})";
  for (const char *key : {"rope_scaling", "rope_parameters"}) {
    const RopeParameters p =
        good(llama(R"("rope_theta":500000.0,")" + std::string(key) + "\":" + llama3)).rope;
    EXPECT_EQ(p.type, "llama3");
    EXPECT_EQ(p.originalContext, 8192u);
    EXPECT_EQ(p.factor, 8);
  }
  const RopeParameters linear =
      good(llama(R"("rope_scaling":{"type":"linear","factor":2.0})")).rope;
  EXPECT_EQ(linear.type, "linear");
  EXPECT_EQ(linear.originalContext, 256u);
  EXPECT_EQ(good(llama(R"("partial_rotary_factor":0.5)")).rope.rotarySize, 8u);
  expectError(llama(R"("rope_scaling":{"type":"linear"})"), "no 'factor'");
  expectError(llama(R"("rope_scaling":5)"), "rope_scaling");
  expectError(llama(R"("rope_scaling":{"rope_type":"linear","factor":2.0},)"
                    R"("rope_parameters":{"rope_type":"linear","factor":4.0})"),
              "differ");
  // What the resolver doesn't know is refused when the frequencies are made.
  EXPECT_FALSE(
      resolveRope(good(llama(R"("rope_scaling":{"type":"longrope","factor":2.0})")).rope).isOk());
}

TEST_F(Config, refusesWhatIsNotSupported) {
  expectError(llama("", "gemma3"), "'gemma3' is not supported; supported: llama");
  expectError(llama(R"("quantization_config":{"quant_method":"gptq"})"), "quantization_config");
  expectError(llama(R"("hidden_act":"gelu")"), "activation 'gelu'");
  expectError(llama(R"("sliding_window":8,"layer_types":["chunked_attention","full_attention"])",
                    "mistral"),
              "chunked_attention");
}

TEST_F(Config, refusesMalformedFiles) {
  expectError("{", "config.json");
  expectError("[]", "JSON object");
  expectError("{}", "model_type");
  expectError(R"({"model_type":"llama"})", "num_hidden_layers");
  expectError(R"({"model_type":"llama","model_type":"llama"})", "twice");
  for (const char *bad :
       {R"("head_dim":0)", R"("head_dim":-4)", R"("head_dim":"16")", R"("head_dim":16.5)",
        R"("num_key_value_heads":3)", R"("num_key_value_heads":0)", R"("rms_norm_eps":-1)",
        R"("rms_norm_eps":"x")", R"("partial_rotary_factor":2)", R"("rope_theta":"1e6")",
        R"("tie_word_embeddings":1)", R"("hidden_act":3)", R"("head_dim":1e300)"})
    EXPECT_FALSE(read(llama(bad)).isOk()) << bad;
}

} // namespace
