//===- Verify.h - `llmc verify` and `llmrt verify` ----------------------------===//
#ifndef LLMC_TOOLS_COMMON_VERIFY_H
#define LLMC_TOOLS_COMMON_VERIFY_H

#include <ostream>
#include <string>

namespace llmc::tools {

/// Checks all of the plan at \p path: header, head, semantics, code, padding, and the checksum of
/// every segment, weights too. Prints a line for the head and for each segment as it is found
/// good. Returns the exit status: 1, with one line on \p err, at the first thing that is wrong.
int verifyMain(const std::string &path, std::ostream &out, std::ostream &err);

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_VERIFY_H
