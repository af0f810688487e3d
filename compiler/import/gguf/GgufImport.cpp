#include "compiler/import/gguf/GgufImport.h"

#include "compiler/import/decoder/DecoderBuilder.h"
#include "compiler/import/gguf/GgufConfig.h"
#include "compiler/import/gguf/GgufText.h"

#include <filesystem>

using namespace mlir;
using namespace llmc;

/// The names that llama.cpp's converter gives.
static DecoderNames namesOf(const DecoderConfig &config) {
  using Part = DecoderPart;
  const std::string &architecture = config.architecture;
  DecoderNames names = {{Part::Embedding, "token_embd"},
                        {Part::PositionEmbedding, "position_embd"},
                        {Part::EmbeddingNorm, "token_embd_norm"},
                        {Part::FinalNorm, "output_norm"},
                        {Part::Head, "output"},
                        {Part::AttentionNorm, "blk.#.attn_norm"},
                        {Part::Query, "blk.#.attn_q"},
                        {Part::Key, "blk.#.attn_k"},
                        {Part::Value, "blk.#.attn_v"},
                        {Part::QueryKeyValue, "blk.#.attn_qkv"},
                        {Part::QueryNorm, "blk.#.attn_q_norm"},
                        {Part::KeyNorm, "blk.#.attn_k_norm"},
                        {Part::Output, "blk.#.attn_output"},
                        {Part::AttentionPostNorm, "blk.#.post_attention_norm"},
                        {Part::MlpNorm, "blk.#.ffn_norm"},
                        {Part::Gate, "blk.#.ffn_gate"},
                        {Part::Up, "blk.#.ffn_up"},
                        {Part::GateUp, "blk.#.ffn_up"}, // of Phi-3, which has no ffn_gate
                        {Part::Down, "blk.#.ffn_down"},
                        {Part::MlpPostNorm, "blk.#.post_ffw_norm"},
                        {Part::QueryDown, "blk.#.attn_q_a"},
                        {Part::QueryDownNorm, "blk.#.attn_q_a_norm"},
                        {Part::QueryUp, "blk.#.attn_q_b"},
                        {Part::LatentDown, "blk.#.attn_kv_a_mqa"},
                        {Part::LatentNorm, "blk.#.attn_kv_a_norm"},
                        {Part::LatentUp, "blk.#.attn_kv_b"},
                        {Part::KeyUp, "blk.#.attn_k_b.weight"},
                        {Part::ValueUp, "blk.#.attn_v_b.weight"},
                        {Part::Sinks, "blk.#.attn_sinks.weight"},
                        {Part::Router, "blk.#.ffn_gate_inp"},
                        {Part::RouterCorrection, "blk.#.exp_probs_b.bias"},
                        {Part::SharedGate, "blk.#.ffn_gate_shexp"},
                        {Part::SharedUp, "blk.#.ffn_up_shexp"},
                        {Part::SharedDown, "blk.#.ffn_down_shexp"},
                        {Part::SharedWeight, "blk.#.ffn_gate_inp_shexp"},
                        {Part::ExpertGate, "blk.#.ffn_gate_exps.weight"},
                        {Part::ExpertUp, "blk.#.ffn_up_exps.weight"},
                        {Part::ExpertDown, "blk.#.ffn_down_exps.weight"},
                        {Part::ExpertGateBias, "blk.#.ffn_gate_exps.bias"},
                        {Part::ExpertUpBias, "blk.#.ffn_up_exps.bias"},
                        {Part::ExpertDownBias, "blk.#.ffn_down_exps.bias"}};
  if (architecture == "gpt-oss") // the norm between attention and MLP
    return names.with({{Part::MlpNorm, "blk.#.post_attention_norm"}});
  if (architecture == "falcon" && config.residual == ResidualForm::Parallel)
    return names.with({{Part::AttentionNorm, "blk.#.attn_norm_2"}, // ln_attn
                       {Part::MlpNorm, "blk.#.attn_norm"}});       // ln_mlp
  return names;
}

static TensorTable tableOf(const GgufFile &file) {
  TensorTable table;
  for (const MappedFile &part : file.files())
    table.files.push_back(std::filesystem::path(part.path()).filename().string());
  for (const GgufTensor &tensor : file.tensors()) {
    TensorEntry entry;
    entry.name = tensor.name;
    entry.shape.assign(tensor.shape.begin(), tensor.shape.end());
    entry.file = tensor.file;
    entry.offset = tensor.offset;
    entry.size = tensor.size;
    if (llmrt::Result<WeightSource> source = file.source(tensor); source.isOk())
      entry.encoding = source->encoding;
    else
      entry.unsupported = source.status().message();
    table.add(std::move(entry));
  }
  return table;
}

OwningOpRef<ModuleOp> llmc::importGguf(StringRef path, MLIRContext *context, ImportedText *text,
                                       uint64_t maxModelLen) {
  Location loc = UnknownLoc::get(context);
  const auto fail = [&](const llmrt::Status &status) {
    emitError(loc) << status.message();
    return nullptr;
  };
  llmrt::Result<GgufFile> file = GgufFile::open(path.str());
  if (!file)
    return fail(file.status());
  std::vector<std::string> notes;
  llmrt::Result<DecoderConfig> config = readGgufConfig(*file, notes, maxModelLen);
  if (!config)
    return fail(config.status());
  if (text) {
    llmrt::Result<ImportedText> found = readGgufText(*file, config->vocabulary);
    if (!found)
      return fail(found.status());
    *text = std::move(*found);
  }
  for (const std::string &note : notes)
    emitRemark(loc) << note;
  TensorTable tensors = tableOf(*file);
  for (StringRef name :
       {"rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"})
    tensors.ignore(name); // in the frequencies already
  return buildDecoder(context, *config, tensors, namesOf(*config));
}
