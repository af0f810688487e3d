//===- TokenFile.h - token ids from a file ----------------------------------===//
#ifndef LLMC_TOOLS_COMMON_TOKENFILE_H
#define LLMC_TOOLS_COMMON_TOKENFILE_H

#include "runtime/support/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llmc::tools {

/// The bytes of a file. IoError, with the path.
llmrt::Result<std::string> readWholeFile(const std::string &path);

/// Token ids from NumPy's format (one dimension, or rows that follow each other; 32 or 64 bit
/// integers, little-endian) or from a JSON list. InvalidArgument, with the path and what would be
/// right; an id below 0 or beyond 31 bits is one.
llmrt::Result<std::vector<int32_t>> readTokenFile(const std::string &path);
/// The same from the file's bytes, for messages that name \p path.
llmrt::Result<std::vector<int32_t>> parseTokens(std::string_view bytes, const std::string &path);

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_TOKENFILE_H
