//===- GgufArchitectures.h - what the architectures of GGUF are -----------------------===//
#ifndef LLMC_IMPORT_GGUF_GGUFARCHITECTURES_H
#define LLMC_IMPORT_GGUF_GGUFARCHITECTURES_H

#include "compiler/import/common/DecoderConfig.h"
#include "compiler/import/gguf/GgufKeys.h"

namespace llmc {

/// Completes \p model, whose sizes, norms' epsilon, tied head and shared rope are read, by what its
/// architecture says and does not write into the file.
using ArchitectureReader = llmrt::Status (*)(GgufKeys &keys, DecoderConfig &model);

struct GgufArchitecture {
  const char *name;
  NormForm::Kind norm;
  ArchitectureReader complete;
};

/// The architecture called \p name, or null.
const GgufArchitecture *findGgufArchitecture(const std::string &name);
/// "bloom, falcon, ..."
std::string supportedGgufArchitectures();

} // namespace llmc

#endif // LLMC_IMPORT_GGUF_GGUFARCHITECTURES_H
