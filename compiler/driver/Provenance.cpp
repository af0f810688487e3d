//===- Provenance.cpp - what a plan was made from -----------------------------------------===//

#include "compiler/driver/Provenance.h"
#include "compiler/cache/CompileCache.h"

#include <algorithm>
#include <filesystem>

using namespace llmc;
namespace fbs = llmrt::fbs;

llmrt::Result<std::vector<SourceHash>> llmc::hashSources(const ModelFiles &files,
                                                         const std::string &model) {
  std::vector<SourceHash> sources;
  for (size_t i = 0; i < files.size(); ++i) {
    LLMRT_RETURN_IF_ERROR(files[i].checkStillWhole());
    sources.push_back({files[i].path(), files[i].size(),
                       sha256Hex(files[i].bytes().data(), files[i].bytes().size())});
  }
  // An ONNX file whose weights are all in others is the model no less.
  namespace fs = std::filesystem;
  std::error_code error;
  auto isModel = [&](const SourceHash &source) {
    return fs::equivalent(source.path, model, error);
  };
  if (fs::is_regular_file(model, error) && std::ranges::none_of(sources, isModel)) {
    std::optional<std::string> hash = sha256OfFile(model);
    if (!hash)
      return llmrt::ioError(model + ": can't be read again");
    sources.insert(sources.begin(), {model, fs::file_size(model, error), *hash});
  }
  return sources;
}

fbs::ProvenanceT llmc::makeProvenance(const std::vector<SourceHash> &sources,
                                      const CompileOptions &options) {
  fbs::ProvenanceT provenance;
  provenance.compiler = "llmc " LLMC_VERSION;
  for (const SourceHash &source : sources) {
    auto file = std::make_unique<fbs::SourceFileT>();
    file->name = std::filesystem::path(source.path).filename().string();
    file->size = source.size;
    file->sha256 = source.sha256;
    provenance.sources.push_back(std::move(file));
  }
  provenance.options = optionsKey(options);
  return provenance;
}

void llmc::fillText(const ImportedText &text, PlanExtras &extras) {
  extras.tokenizerBlob = text.tokenizerBlob;
  extras.text.chat_template = text.chatTemplate;
  extras.text.bos_token = text.bosToken;
  extras.text.eos_token = text.eosToken;
  extras.text.generation = std::make_unique<fbs::GenerationDefaultsT>();
  fbs::GenerationDefaultsT &generation = *extras.text.generation;
  generation.stop_ids = text.stopIds;
  generation.do_sample = text.doSample;
  generation.temperature = text.temperature;
  generation.top_k = text.topK;
  generation.top_p = text.topP;
  generation.min_p = text.minP;
  generation.repetition_penalty = text.repetitionPenalty;
}
