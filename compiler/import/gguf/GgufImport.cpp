#include "compiler/import/gguf/GgufImport.h"

#include "compiler/import/decoder/LlamaBuilder.h"
#include "compiler/import/gguf/GgufConfig.h"
#include "compiler/import/gguf/GgufText.h"

#include <filesystem>

using namespace mlir;
using namespace llmc;

/// The names that llama.cpp's converter gives.
static std::string nameOf(LlamaPart part, uint64_t layer) {
  const std::string block = "blk." + std::to_string(layer) + ".";
  switch (part) {
  case LlamaPart::Embedding:
    return "token_embd";
  case LlamaPart::FinalNorm:
    return "output_norm";
  case LlamaPart::Head:
    return "output";
  case LlamaPart::AttentionNorm:
    return block + "attn_norm";
  case LlamaPart::Query:
    return block + "attn_q";
  case LlamaPart::Key:
    return block + "attn_k";
  case LlamaPart::Value:
    return block + "attn_v";
  case LlamaPart::Output:
    return block + "attn_output";
  case LlamaPart::QueryNorm:
    return block + "attn_q_norm";
  case LlamaPart::KeyNorm:
    return block + "attn_k_norm";
  case LlamaPart::MlpNorm:
    return block + "ffn_norm";
  case LlamaPart::Gate:
    return block + "ffn_gate";
  case LlamaPart::Up:
    return block + "ffn_up";
  case LlamaPart::Down:
    return block + "ffn_down";
  }
  return "";
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

OwningOpRef<ModuleOp> llmc::importGguf(StringRef path, MLIRContext *context, ImportedText *text) {
  Location loc = UnknownLoc::get(context);
  const auto fail = [&](const llmrt::Status &status) {
    emitError(loc) << status.message();
    return nullptr;
  };
  llmrt::Result<GgufFile> file = GgufFile::open(path.str());
  if (!file)
    return fail(file.status());
  std::vector<std::string> notes;
  llmrt::Result<DecoderConfig> config = readGgufConfig(*file, notes);
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
  tensors.ignore("rope_freqs.weight"); // in the frequencies already
  return buildLlama(context, *config, tensors, nameOf);
}
