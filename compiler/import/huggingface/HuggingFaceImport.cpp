#include "compiler/import/huggingface/HuggingFaceImport.h"

#include "compiler/import/decoder/DecoderBuilder.h"
#include "compiler/import/huggingface/Checkpoint.h"
#include "compiler/import/huggingface/FamilyNames.h"
#include "compiler/import/huggingface/FolderText.h"
#include "compiler/import/huggingface/ModelConfig.h"
#include "compiler/import/huggingface/QuantizedCheckpoint.h"

#include <filesystem>

using namespace mlir;
using namespace llmc;
using llmrt::Result;
using llmrt::Status;

static Result<TensorTable> tableOf(const Checkpoint &checkpoint, const QuantizationConfig &config,
                                   std::vector<std::string> &notes) {
  TensorTable table;
  table.files = checkpoint.names();
  std::set<std::string> quantized;
  LLMRT_RETURN_IF_ERROR(addQuantizedTensors(checkpoint, config, table, quantized, notes));
  for (const Checkpoint::Tensor &tensor : checkpoint.tensors()) {
    if (quantized.contains(tensor.name))
      continue;
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

/// The family's names; Falcon's norms are called by their number, and the prefix may be missing.
static DecoderNames namesIn(const TensorTable &tensors, const DecoderConfig &config) {
  DecoderNames names = familyNames(config.architecture);
  if (config.architecture == "falcon" && config.residual == ResidualForm::Parallel)
    names = names.with({{DecoderPart::AttentionNorm, "transformer.h.#.ln_attn"},
                        {DecoderPart::MlpNorm, "transformer.h.#.ln_mlp"}});
  DecoderNames bare = names.withoutPrefix(familyPrefix(config.architecture));
  const auto embedding = [&](const DecoderNames &n) {
    return tensors.has(n.of(DecoderPart::Embedding, 0) + ".weight");
  };
  return !embedding(names) && embedding(bare) ? bare : names;
}

OwningOpRef<ModuleOp> llmc::importHuggingFace(StringRef folder, MLIRContext *context,
                                              ImportedText *text, uint64_t maxModelLen) {
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
  Result<DecoderConfig> config = readModelConfig(**file, notes, maxModelLen);
  if (!config)
    return fail(config.status());
  if (text) {
    Result<ImportedText> read = readFolderText(folder.str(), config->vocabulary);
    if (!read)
      return fail(read.status());
    *text = std::move(*read);
  }
  Result<Checkpoint> checkpoint = Checkpoint::open(folder.str());
  if (!checkpoint)
    return fail(checkpoint.status());
  Result<QuantizationConfig> quantization = readQuantizationConfig(**file);
  if (!quantization)
    return fail(quantization.status());
  Result<TensorTable> table = tableOf(*checkpoint, *quantization, notes);
  if (!table)
    return fail(table.status());
  TensorTable &tensors = *table;
  if (quantization->method == "mxfp4") {
    if (config->mixture.storage != ExpertStorage::Turned)
      return fail(llmrt::unsupported("config.json: quant_method 'mxfp4' is read for gpt_oss; the "
                                     "model is a " +
                                     config->architecture));
    config->mixture.storage = ExpertStorage::InTurn;
  }
  for (const std::string &note : notes)
    emitRemark(loc) << note;
  for (const std::string &note : checkpoint->notes())
    emitRemark(loc) << note;
  tensors.ignoreIf([](StringRef name) {
    return llvm::any_of(bufferEndings(), [&](StringRef end) { return name.ends_with(end); });
  });
  // Modules that draft further tokens stand after the last layer, as layers.
  for (uint64_t i = 0; i < std::min<uint64_t>(config->draftLayers, 64); ++i) {
    const std::string prefix = "model.layers." + std::to_string(config->layers.size() + i) + ".";
    tensors.ignoreIf([&](StringRef name) { return name.starts_with(prefix); });
  }
  return buildDecoder(context, *config, tensors, namesIn(tensors, *config));
}
