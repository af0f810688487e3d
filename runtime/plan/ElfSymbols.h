//===- ElfSymbols.h - what a code module provides ----------------------------===//
//
// Reads the dynamic symbols of a code module without loading it, and refuses what a module of a
// plan never holds: libraries that it needs, symbols that it imports, code that would run when
// it is loaded. Every offset is checked against the segment. Layout: System V ABI, ELF-64.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_PLAN_ELFSYMBOLS_H
#define LLMRT_PLAN_ELFSYMBOLS_H

#include "runtime/support/Status.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_set>

namespace llmrt {

class ElfSymbols {
public:
  /// Reads the symbols of an ELF-64 shared object, little-endian, for x86-64 or AArch64.
  /// \p object must outlive the result.
  static Result<ElfSymbols> read(std::span<const uint8_t> object);

  /// Does the object define a global function of that name, inside its executable memory?
  bool hasFunction(std::string_view name) const { return functions_.count(name) != 0; }
  size_t functionCount() const { return functions_.size(); }
  /// "x86-64" or "aarch64".
  const char *machine() const { return machine_; }

private:
  std::unordered_set<std::string_view> functions_;
  const char *machine_ = "";
};

} // namespace llmrt

#endif // LLMRT_PLAN_ELFSYMBOLS_H
