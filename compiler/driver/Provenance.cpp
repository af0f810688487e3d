//===- Provenance.cpp - what a plan was made from -----------------------------------------===//

#include "compiler/driver/Provenance.h"

#include <filesystem>
#include <openssl/evp.h>

using namespace llmc;
namespace fbs = llmrt::fbs;

std::vector<std::string> llmc::optionsKey(const CompileOptions &options) {
  std::vector<std::string> key = {"-O" + std::to_string(options.optLevel)};
  if (options.quantization != "none")
    key.push_back("--" + options.quantization);
  key.push_back("--kv-cache-dtype=" +
                (options.kvCacheDtype == "auto" ? std::string("f16") : options.kvCacheDtype));
  if (options.activations == "f32")
    key.push_back("--activations=f32");
  if (options.maxModelLen)
    key.push_back("--max-model-len=" + std::to_string(options.maxModelLen));
  if (options.maxBatchedTokens != CompileOptions().maxBatchedTokens)
    key.push_back("--max-num-batched-tokens=" + std::to_string(options.maxBatchedTokens));
  if (options.maxSequences != CompileOptions().maxSequences)
    key.push_back("--max-num-seqs=" + std::to_string(options.maxSequences));
  for (const std::string &pass : options.disabledPasses)
    key.push_back("--disable-pass=" + pass);
  for (const std::string &level : options.cpuLevels)
    key.push_back("--cpu-level=" + level);
  return key;
}

std::string llmc::sha256Hex(std::span<const uint8_t> bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest, &length, EVP_sha256(), nullptr);
  static constexpr char digits[] = "0123456789abcdef";
  std::string hex;
  for (unsigned i = 0; i < length; ++i) {
    hex += digits[digest[i] >> 4];
    hex += digits[digest[i] & 15];
  }
  return hex;
}

llmrt::Result<std::vector<SourceHash>> llmc::hashSources(const ModelFiles &files) {
  std::vector<SourceHash> sources;
  for (size_t i = 0; i < files.size(); ++i) {
    LLMRT_RETURN_IF_ERROR(files[i].checkStillWhole());
    sources.push_back({std::filesystem::path(files[i].path()).filename().string(), files[i].size(),
                       sha256Hex(files[i].bytes())});
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
