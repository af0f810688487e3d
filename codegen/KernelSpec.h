//===- KernelSpec.h - a kernel that is to be generated -------------------------===//
#ifndef LLMC_CODEGEN_KERNELSPEC_H
#define LLMC_CODEGEN_KERNELSPEC_H

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace llmc {

/// A constant of a kernel by its name in the plan: codegen/cpu/kernels/README.md. One that isn't
/// given is 0.
struct KernelConstant {
  std::string name;
  std::variant<int64_t, double, std::string> value;
};

/// A kernel to make: \p kind of the README's table, specialised for \p constants.
struct KernelSpec {
  std::string symbol; ///< a C identifier, unique
  std::string kind;
  std::vector<KernelConstant> constants;
};

} // namespace llmc

#endif // LLMC_CODEGEN_KERNELSPEC_H
