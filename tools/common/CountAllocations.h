//===- CountAllocations.h - operator new that counts ------------------------===//
//
// A program that links CountAllocations.cpp counts what it allocates with new: one addition to a
// number of the thread. It is how a server shows that its decode loop allocates nothing.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TOOLS_COMMON_COUNTALLOCATIONS_H
#define LLMC_TOOLS_COMMON_COUNTALLOCATIONS_H

#include <cstdint>

namespace llmc::tools {

/// Calls of operator new by this thread since it began; 0 in a build with a sanitizer.
int64_t allocationsOfThisThread();

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_COUNTALLOCATIONS_H
