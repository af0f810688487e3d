//===- ImportedText.h - what a model says about text --------------------------------===//
//
// Tokenizer, chat template and generation defaults, as an importer found them: the `text` table of
// the plan before it is written.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_IMPORT_COMMON_IMPORTEDTEXT_H
#define LLMC_IMPORT_COMMON_IMPORTEDTEXT_H

#include <cstdint>
#include <string>
#include <vector>

namespace llmc {

struct ImportedText {
  std::string tokenizerBlob; ///< llmrt::Tokenizer::serialize(); empty: the model has no tokenizer
  std::string chatTemplate;  ///< Jinja; empty: none
  std::string bosToken, eosToken; ///< as the template sees them; empty: none

  // generation_config.json, or the sampling keys of a GGUF.
  std::vector<int32_t> stopIds;
  bool doSample = false;
  float temperature = 1.0f;
  int32_t topK = 0;
  float topP = 1.0f;
  float minP = 0.0f;
  float repetitionPenalty = 1.0f;

  std::vector<std::string> notes; ///< what was left out, for the user
};

} // namespace llmc

#endif // LLMC_IMPORT_COMMON_IMPORTEDTEXT_H
