//===- Provenance.h - what a plan was made from -------------------------------------------===//
#ifndef LLMC_COMPILER_DRIVER_PROVENANCE_H
#define LLMC_COMPILER_DRIVER_PROVENANCE_H

#include "compiler/driver/CompileOptions.h"
#include "compiler/driver/CompileReport.h"
#include "compiler/driver/PlanEmitter.h"
#include "compiler/import/common/ImportedText.h"

namespace llmc {

/// Reads all of \p files, and \p model if that is a file that is not among them.
llmrt::Result<std::vector<SourceHash>> hashSources(const ModelFiles &files,
                                                   const std::string &model);

/// Compiler version, sources and options: nothing of the host, and no time.
llmrt::fbs::ProvenanceT makeProvenance(const std::vector<SourceHash> &sources,
                                       const CompileOptions &options);

/// The text table of the plan.
void fillText(const ImportedText &text, PlanExtras &extras);

} // namespace llmc

#endif // LLMC_COMPILER_DRIVER_PROVENANCE_H
