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
  llmrt::Result<DecoderConfig> read(const std::string &json, uint64_t maxModelLen = 0) {
    folder.write("config.json", json);
    auto file = JsonFile::open(folder.path(), "config.json");
    if (!file.isOk())
      return file.status();
    notes.clear();
    return readModelConfig(**file, notes, maxModelLen);
  }
  DecoderConfig good(const std::string &json, uint64_t maxModelLen = 0) {
    auto config = read(json, maxModelLen);
    EXPECT_TRUE(config.isOk()) << config.status().message();
    return config.isOk() ? *config : DecoderConfig();
  }
  static std::vector<uint64_t> windows(const DecoderConfig &config) {
    std::vector<uint64_t> result;
    for (const DecoderLayer &layer : config.layers)
      result.push_back(layer.window);
    return result;
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
  EXPECT_EQ(c.layers.size(), 2u);
  EXPECT_EQ(c.attention.headSize, 16u);
  EXPECT_EQ(c.attention.kvHeads, 2u);
  EXPECT_EQ(c.norm.eps, 1e-5);
  EXPECT_EQ(c.ropes.at(0).theta, 100000);
  EXPECT_EQ(c.ropes.at(0).rotarySize, 16u);
  EXPECT_TRUE(c.tiedHead);
  EXPECT_FALSE(c.attention.qkvBias || c.attention.outputBias || c.mlp.upBias ||
               c.attention.permutedHeads);
  EXPECT_EQ(c.attention.qkNorm, QkNorm::None);
  EXPECT_EQ(windows(c), (std::vector<uint64_t>{0, 0}));
  EXPECT_TRUE(notes.empty());
}

TEST_F(Config, readsWhatFamiliesDiffer) {
  EXPECT_TRUE(good(llama("", "qwen2")).attention.qkvBias);
  EXPECT_FALSE(good(llama("", "qwen2")).attention.outputBias);
  EXPECT_EQ(good(llama("", "qwen3")).attention.qkNorm, QkNorm::Head);
  EXPECT_EQ(good(llama(R"("head_dim":32)", "qwen3")).attention.headSize, 32u);
  EXPECT_TRUE(good(llama(R"("attention_bias":true,"mlp_bias":true)")).mlp.upBias);
  EXPECT_EQ(windows(good(llama(R"("sliding_window":8)", "mistral"))),
            (std::vector<uint64_t>{8, 8}));
  EXPECT_EQ(windows(good(llama(R"("sliding_window":null)", "mistral")))[0], 0u);
  // Qwen names a window that is switched off.
  EXPECT_EQ(windows(good(llama(R"("sliding_window":8,"use_sliding_window":false)", "qwen2")))[1],
            0u);
  EXPECT_EQ(windows(good(llama(
                R"("sliding_window":8,"use_sliding_window":true,"max_window_layers":1)", "qwen2"))),
            (std::vector<uint64_t>{0, 8}));
  EXPECT_EQ(
      windows(good(llama(
          R"("sliding_window":8,"layer_types":["sliding_attention","full_attention"])", "qwen3"))),
      (std::vector<uint64_t>{8, 0}));
}

TEST_F(Config, findsThetaInAllItsPlaces) { // case A22
  const double old = good(llama(R"("rope_theta":1e6,"rope_scaling":null)")).ropes.at(0).theta;
  const double fresh = good(llama(R"("rope_parameters":{"rope_type":"default","rope_theta":1e6})"))
                           .ropes.at(0)
                           .theta;
  EXPECT_EQ(old, 1e6);
  EXPECT_EQ(fresh, 1e6);
  EXPECT_EQ(
      good(llama(R"("rope_parameters":{"full_attention":{"rope_theta":5e5}})")).ropes.at(0).theta,
      5e5);
  expectError(llama(R"("rope_parameters":{"full_attention":{"rope_theta":1e6},)"
                    R"("sliding_attention":{"rope_theta":1e4}})"),
              "differ by type of layer");
  expectError(llama(R"("rope_theta":1e6,"rope_parameters":{"rope_theta":1e4})"), "must agree");
  EXPECT_EQ(good(llama(R"("rope_theta":1e6,"rope_parameters":{"rope_theta":1000000.0})"))
                .ropes.at(0)
                .theta,
            1e6);
  EXPECT_EQ(good(llama("")).ropes.at(0).theta, 10000);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("10000"), std::string::npos);
}

TEST_F(Config, readsScalings) {
  const std::string llama3 = R"({"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,)"
                             R"("high_freq_factor":4.0,"original_max_position_embeddings":8192})";
  for (const char *key : {"rope_scaling", "rope_parameters"}) {
    const RopeParameters p =
        good(llama(R"("rope_theta":500000.0,")" + std::string(key) + "\":" + llama3)).ropes.at(0);
    EXPECT_EQ(p.type, "llama3");
    EXPECT_EQ(p.originalContext, 8192u);
    EXPECT_EQ(p.factor, 8);
  }
  const RopeParameters linear =
      good(llama(R"("rope_scaling":{"type":"linear","factor":2.0})")).ropes.at(0);
  EXPECT_EQ(linear.type, "linear");
  EXPECT_EQ(linear.originalContext, 256u);
  EXPECT_EQ(good(llama(R"("partial_rotary_factor":0.5)")).ropes.at(0).rotarySize, 8u);
  expectError(llama(R"("rope_scaling":{"type":"linear"})"), "no 'factor'");
  expectError(llama(R"("rope_scaling":5)"), "rope_scaling");
  expectError(llama(R"("rope_scaling":{"rope_type":"linear","factor":2.0},)"
                    R"("rope_parameters":{"rope_type":"linear","factor":4.0})"),
              "differ");
  // What the resolver doesn't know is refused when the frequencies are made.
  EXPECT_FALSE(
      resolveRope(good(llama(R"("rope_scaling":{"type":"ntk","factor":2.0})")).ropes.at(0)).isOk());
}

TEST_F(Config, refusesWhatIsNotSupported) {
  expectError(llama("", "gemma3"), "'gemma3' is not supported; supported: bloom, deepseek_v2");
  expectError(llama(R"("hidden_act":"mish")"),
              "activation 'mish' is not supported; supported: silu");
  expectError(llama(R"("sliding_window":8,"layer_types":["chunked_attention","full_attention"])",
                    "mistral"),
              "chunked_attention");
}

// A key that changes the mathematics is honoured or refused, never ignored.
TEST_F(Config, refusesKeysThatTheFamilyDoesNotHave) {
  for (const char *key :
       {R"("final_logit_softcapping":30.0)", R"("embedding_multiplier":12.0)", R"("alibi":true)",
        R"("num_local_experts":8)", R"("query_pre_attn_scalar":256)", R"("clip_qkv":8.0)",
        R"("kv_lora_rank":512)", R"("logit_scale":0.0625)"})
    expectError(llama(key), "changes what the model computes");
  expectError(llama(R"("attention_bias":true)", "qwen2"), "'attention_bias'");
  // Off, in the ways that files say so.
  for (const char *key : {R"("final_logit_softcapping":null)", R"("embedding_multiplier":1.0)",
                          R"("alibi":false)", R"("num_local_experts":0)"})
    EXPECT_TRUE(read(llama(key)).isOk()) << key;
  EXPECT_TRUE(read(llama(R"("rope_theta":1e4,"some_new_key":3,"attention_dropout":0.1)")).isOk());
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("ignored: 'some_new_key'"), std::string::npos) << notes[0];
}

TEST_F(Config, readsGemma) {
  const DecoderConfig one = good(llama("", "gemma"));
  EXPECT_TRUE(one.norm.plusOne && one.tiedHead);
  EXPECT_EQ(one.embeddingScale, 8); // sqrt(64)
  EXPECT_EQ(one.mlp.activation, MlpActivation::GeluTanh);
  EXPECT_EQ(one.normPlace, NormPlace::Before);
  const DecoderConfig two = good(llama(
      R"("query_pre_attn_scalar":16,"attn_logit_softcapping":50.0,"final_logit_softcapping":30.0,)"
      R"("sliding_window":8)",
      "gemma2"));
  EXPECT_EQ(two.attention.scale, 0.25);
  EXPECT_EQ(two.attention.softcap, 50);
  EXPECT_EQ(two.logitSoftcap, 30);
  EXPECT_EQ(two.normPlace, NormPlace::Around);
  EXPECT_EQ(windows(two), (std::vector<uint64_t>{8, 0}));
  const DecoderConfig three =
      good(llama(R"("num_hidden_layers":7,"sliding_window":8,"rope_theta":1e6,)"
                 R"("rope_local_base_freq":1e4,"rope_scaling":{"rope_type":"linear","factor":8.0})",
                 "gemma3_text"));
  EXPECT_EQ(windows(three), (std::vector<uint64_t>{8, 8, 8, 8, 8, 0, 8}));
  EXPECT_EQ(three.ropes.at(0).theta, 1e6);
  EXPECT_EQ(three.ropes.at(0).factor, 8);
  EXPECT_EQ(three.ropes.at(1).theta, 1e4);
  EXPECT_EQ(three.ropes.at(1).type, "default");
  EXPECT_EQ(three.layers[5].rope, 0);
  EXPECT_EQ(three.layers[6].rope, 1);
  const DecoderConfig newer = good(llama(
      R"("rope_parameters":{"full_attention":{"rope_theta":1e6},"sliding_attention":{"rope_theta":1e4}})",
      "gemma3_text"));
  EXPECT_EQ(newer.ropes.at(0).theta, 1e6);
  EXPECT_EQ(newer.ropes.at(1).theta, 1e4);
  expectError(llama(R"("use_bidirectional_attention":true)", "gemma3_text"), "only false");
}

TEST_F(Config, readsGraniteSmolLm3Olmo2) {
  const DecoderConfig granite =
      good(llama(R"("embedding_multiplier":12.0,"residual_multiplier":0.22,)"
                 R"("attention_multiplier":0.0156,"logits_scaling":8.0)",
                 "granite"));
  EXPECT_EQ(granite.embeddingScale, 12);
  EXPECT_EQ(granite.residualScale, 0.22);
  EXPECT_EQ(granite.attention.scale, 0.0156);
  EXPECT_EQ(granite.logitScale, 0.125);
  expectError(llama(R"("logits_scaling":0)", "granite"), "logits_scaling");
  const DecoderConfig smol = good(llama(R"("num_hidden_layers":5)", "smollm3"));
  EXPECT_TRUE(smol.tiedHead);
  EXPECT_EQ(smol.layers[3].rope, -1);
  EXPECT_EQ(smol.layers[4].rope, 0);
  EXPECT_EQ(good(llama(R"("no_rope_layers":[0,1])", "smollm3")).layers[0].rope, -1);
  expectError(llama(R"("no_rope_layers":[0])", "smollm3"), "no_rope_layers");
  const DecoderConfig olmo = good(llama("", "olmo2"));
  EXPECT_EQ(olmo.normPlace, NormPlace::After);
  EXPECT_EQ(olmo.attention.qkNorm, QkNorm::Row);
}

TEST_F(Config, readsFalcon) {
  const std::string sizes = R"({"model_type":"falcon","hidden_size":64,"num_hidden_layers":2,)"
                            R"("num_attention_heads":4,"vocab_size":512,"rope_theta":1e4)";
  const DecoderConfig seven = good(sizes + R"(,"multi_query":true,"parallel_attn":true})");
  EXPECT_EQ(seven.attention.kvHeads, 1u);
  EXPECT_EQ(seven.residual, ResidualForm::ParallelSharedNorm);
  EXPECT_EQ(seven.maxContext, 2048u);
  EXPECT_EQ(seven.mlp.intermediate, 256u);
  const DecoderConfig forty = good(sizes + R"(,"new_decoder_architecture":true,"num_kv_heads":2})");
  EXPECT_EQ(forty.attention.kvHeads, 2u);
  EXPECT_EQ(forty.residual, ResidualForm::Parallel);
  const DecoderConfig rw = good(sizes + R"(,"alibi":true,"multi_query":false})");
  EXPECT_TRUE(rw.attention.alibi && rw.ropes.empty());
  EXPECT_EQ(rw.attention.alibiScale, 0.25); // heads of 16
  EXPECT_EQ(rw.layers.at(1).rope, -1);
}

TEST_F(Config, readsGpt) {
  const std::string sizes = R"({"model_type":"gpt2","n_embd":64,"n_layer":2,"n_head":4,)"
                            R"("n_positions":32,"vocab_size":512)";
  const DecoderConfig gpt2 = good(sizes + "}");
  EXPECT_EQ(gpt2.learnedPositions, 32u);
  EXPECT_TRUE(gpt2.transposedProjections && gpt2.tiedHead && gpt2.norm.bias);
  EXPECT_EQ(gpt2.layers[1].attentionScale, 0.25);
  EXPECT_EQ(good(sizes + R"(,"scale_attn_by_inverse_layer_idx":true})").layers[1].attentionScale,
            0.125);
  expectError(sizes + R"(,"add_cross_attention":true})", "add_cross_attention");
  const DecoderConfig neox =
      good(llama(R"("num_key_value_heads":4,"rotary_pct":0.25,"rotary_emb_base":2e4)", "gpt_neox"));
  EXPECT_EQ(neox.ropes.at(0).rotarySize, 4u);
  EXPECT_EQ(neox.ropes.at(0).theta, 2e4);
  EXPECT_EQ(neox.residual, ResidualForm::Parallel);
  EXPECT_EQ(
      good(llama(R"("num_key_value_heads":4,"use_parallel_residual":false)", "gpt_neox")).residual,
      ResidualForm::Sequential);
}

// A plan has the long factors too, unless its contexts never reach beyond the original one.
TEST_F(Config, choosesTheFactorsOfLongRope) {
  const std::string phi3 =
      llama(R"("original_max_position_embeddings":64,"rope_scaling":{"type":"longrope",)"
            R"("short_factor":[1,1,1,1,1,1,1,1],"long_factor":[2,2,2,2,2,2,2,2]})",
            "phi3");
  const DecoderConfig brief = good(phi3, 64);
  EXPECT_FALSE(brief.ropes.at(0).hasLongContexts);
  EXPECT_NEAR(resolveRope(brief.ropes.at(0))->scale, 1.1547005, 1e-6); // sqrt(1 + ln 4 / ln 64)
  for (uint64_t asked : {uint64_t(0), uint64_t(65)}) {
    const DecoderConfig both = good(phi3, asked);
    EXPECT_EQ(both.maxContext, 256u);
    EXPECT_TRUE(both.ropes.at(0).hasLongContexts);
    EXPECT_FLOAT_EQ(resolveRope(both.ropes.at(0))->frequencies[0], 1.0f);
    EXPECT_FLOAT_EQ(resolveRope(both.ropes.at(0), RopeContext::Long)->frequencies[0], 0.5f);
  }
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
