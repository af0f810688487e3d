//===- KernelConstants.h - reading a KernelSpec's constants ------------------===//
#ifndef LLMC_CODEGEN_CPU_KERNELCONSTANTS_H
#define LLMC_CODEGEN_CPU_KERNELCONSTANTS_H

#include "codegen/KernelSpec.h"
#include "llvm/ADT/StringRef.h"

namespace llmc {

/// The constants of a verified KernelSpec by name; what isn't given is 0 or "".
class KernelConstants {
public:
  explicit KernelConstants(const KernelSpec &spec) : spec(spec) {}
  int64_t integer(llvm::StringRef name) const {
    const auto *c = find(name);
    return c ? *std::get_if<int64_t>(&c->value) : 0;
  }
  /// An integer constant counts as a real one.
  double real(llvm::StringRef name) const {
    const auto *c = find(name);
    if (!c)
      return 0;
    if (const double *r = std::get_if<double>(&c->value))
      return *r;
    return static_cast<double>(*std::get_if<int64_t>(&c->value));
  }
  llvm::StringRef text(llvm::StringRef name) const {
    const auto *c = find(name);
    return c ? llvm::StringRef(*std::get_if<std::string>(&c->value)) : "";
  }

private:
  const KernelConstant *find(llvm::StringRef name) const {
    for (const KernelConstant &c : spec.constants)
      if (c.name == name)
        return &c;
    return nullptr;
  }
  const KernelSpec &spec;
};

} // namespace llmc

#endif // LLMC_CODEGEN_CPU_KERNELCONSTANTS_H
