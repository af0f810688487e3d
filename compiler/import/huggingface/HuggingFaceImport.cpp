#include "compiler/import/huggingface/HuggingFaceImport.h"

#include "compiler/import/decoder/LlamaBuilder.h"
#include "compiler/import/huggingface/Checkpoint.h"
#include "compiler/import/huggingface/FolderText.h"
#include "compiler/import/huggingface/ModelConfig.h"
#include "runtime/text/Tokenizer.h"

#include <filesystem>

using namespace mlir;
using namespace llmc;
using llmrt::Result;
using llmrt::Status;

/// The names of transformers' LlamaForCausalLM and of the families that follow it.
static std::string nameOf(LlamaPart part, uint64_t layer) {
  const std::string block = "model.layers." + std::to_string(layer) + ".";
  switch (part) {
  case LlamaPart::Embedding:
    return "model.embed_tokens";
  case LlamaPart::FinalNorm:
    return "model.norm";
  case LlamaPart::Head:
    return "lm_head";
  case LlamaPart::AttentionNorm:
    return block + "input_layernorm";
  case LlamaPart::Query:
    return block + "self_attn.q_proj";
  case LlamaPart::Key:
    return block + "self_attn.k_proj";
  case LlamaPart::Value:
    return block + "self_attn.v_proj";
  case LlamaPart::Output:
    return block + "self_attn.o_proj";
  case LlamaPart::QueryNorm:
    return block + "self_attn.q_norm";
  case LlamaPart::KeyNorm:
    return block + "self_attn.k_norm";
  case LlamaPart::MlpNorm:
    return block + "post_attention_layernorm";
  case LlamaPart::Gate:
    return block + "mlp.gate_proj";
  case LlamaPart::Up:
    return block + "mlp.up_proj";
  case LlamaPart::Down:
    return block + "mlp.down_proj";
  }
  return "";
}

static TensorTable tableOf(const Checkpoint &checkpoint) {
  TensorTable table;
  table.files = checkpoint.names();
  for (const Checkpoint::Tensor &tensor : checkpoint.tensors()) {
    TensorEntry entry;
    entry.name = tensor.name;
    entry.shape.assign(tensor.shape.begin(), tensor.shape.end());
    entry.file = tensor.file;
    entry.offset = tensor.offset;
    entry.size = tensor.size;
    if (Result<WeightSource> source = checkpoint.source(tensor); source.isOk())
      entry.encoding = source->encoding;
    else
      entry.unsupported = source.status().message();
    table.add(std::move(entry));
  }
  return table;
}

/// Fills \p text and checks that every token has a row.
static Status readText(const std::string &folder, uint64_t vocabulary, ImportedText &text) {
  LLMRT_ASSIGN_OR_RETURN(text, readFolderText(folder));
  if (text.tokenizerBlob.empty())
    return Status::ok();
  const auto *bytes = reinterpret_cast<const uint8_t *>(text.tokenizerBlob.data());
  LLMRT_ASSIGN_OR_RETURN(const std::shared_ptr<llmrt::Tokenizer> tokenizer,
                         llmrt::Tokenizer::fromBlob({bytes, text.tokenizerBlob.size()}));
  return tokenizer->checkVocabulary(static_cast<int64_t>(vocabulary)).withContext(folder);
}

OwningOpRef<ModuleOp> llmc::importHuggingFace(StringRef folder, MLIRContext *context,
                                              ImportedText *text) {
  Location loc = UnknownLoc::get(context);
  const auto fail = [&](const Status &status) {
    emitError(loc) << status.message();
    return nullptr;
  };
  Result<std::unique_ptr<JsonFile>> file = JsonFile::open(folder.str(), "config.json");
  if (!file)
    return fail(file.status());
  if (!*file)
    return fail(llmrt::invalidFile(folder.str() + ": has no config.json"));
  std::vector<std::string> notes;
  Result<DecoderConfig> config = readModelConfig(**file, notes);
  if (!config)
    return fail(config.status());
  if (text)
    if (Status status = readText(folder.str(), config->vocabulary, *text); !status.isOk())
      return fail(status);
  Result<Checkpoint> checkpoint = Checkpoint::open(folder.str());
  if (!checkpoint)
    return fail(checkpoint.status());
  for (const std::string &note : notes)
    emitRemark(loc) << note;
  for (const std::string &note : checkpoint->notes())
    emitRemark(loc) << note;
  TensorTable tensors = tableOf(*checkpoint);
  // Buffers that older versions of transformers saved; their values follow from the configuration.
  tensors.ignoreIf([](StringRef name) { return name.ends_with(".rotary_emb.inv_freq"); });
  return buildLlama(context, *config, tensors, nameOf);
}
