//===- LinkSharedObject.h - relocatable objects to a shared object --------===//
#ifndef LLMC_CODEGEN_CPU_LINKSHAREDOBJECT_H
#define LLMC_CODEGEN_CPU_LINKSHAREDOBJECT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace llmc {

/// Links ELF relocatables with lld, in process, into a shared object without needed libraries; an
/// undefined symbol is an error that names it. Calls are serialised: lld has one global state.
llvm::Expected<std::string> linkSharedObject(llvm::ArrayRef<llvm::StringRef> relocatables);

} // namespace llmc

#endif // LLMC_CODEGEN_CPU_LINKSHAREDOBJECT_H
