//===- CompilerLibrary.cpp - the library's entry ---------------------------------------------===//

#include "compiler/driver/CompilerLibrary.h"
#include "compiler/driver/Driver.h"

extern "C" __attribute__((visibility("default"))) void
llmcCompileModel(const llmc::CompileOptions &options, llmc::CompileReport &report,
                 llmrt::Status &status) {
  llmc::Progress progress(options.quiet);
  status = llmc::compileModel(options, progress, &report);
}
