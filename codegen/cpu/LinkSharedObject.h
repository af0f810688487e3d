//===- LinkSharedObject.h - one relocatable object to a shared object --------===//
#ifndef LLMC_CODEGEN_CPU_LINKSHAREDOBJECT_H
#define LLMC_CODEGEN_CPU_LINKSHAREDOBJECT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace llmc {

/// Links an ELF relocatable with lld, in process, into a shared object without needed
/// libraries; an undefined symbol is an error that names it. Calls are serialised: lld has one
/// global state.
llvm::Expected<std::string> linkSharedObject(llvm::StringRef relocatable);

} // namespace llmc

#endif // LLMC_CODEGEN_CPU_LINKSHAREDOBJECT_H
