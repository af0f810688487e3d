//===- CodeModule.h - a plan's machine code, loaded -------------------------===//
#ifndef LLMRT_DEVICE_CPU_CODEMODULE_H
#define LLMRT_DEVICE_CPU_CODEMODULE_H

#include "runtime/device/cpu/KernelAbi.h"
#include "runtime/support/Status.h"

#include <cstddef>
#include <span>
#include <string>

namespace llmrt {

/// An ELF shared object given as bytes, loaded through memfd_create and dlopen. The descriptor
/// stays open for the module's life: /proc/self/fd/N is the name by which the dynamic linker
/// knows the object, and a second module under a reused N would silently be the first one.
class CodeModule {
public:
  /// \p name is for messages ("code.x86-64-v3").
  static Result<CodeModule> load(std::span<const std::byte> elf, const std::string &name);

  CodeModule(CodeModule &&other) noexcept;
  CodeModule &operator=(CodeModule &&other) noexcept;
  ~CodeModule();

  /// The kernel called \p symbol; an error that names both otherwise.
  Result<LlmrtKernel> kernel(const char *symbol) const;
  /// The address of any function called \p symbol, in the same way.
  Result<void *> symbol(const char *symbol) const;

private:
  CodeModule(int descriptor, void *handle, std::string name)
      : descriptor_(descriptor), handle_(handle), name_(std::move(name)) {}
  int descriptor_ = -1;
  void *handle_ = nullptr;
  std::string name_;
};

} // namespace llmrt

#endif // LLMRT_DEVICE_CPU_CODEMODULE_H
