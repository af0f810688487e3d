//===- CpuLevel.h - which of the plan's code levels this machine runs -------===//
#ifndef LLMRT_DEVICE_CPU_CPULEVEL_H
#define LLMRT_DEVICE_CPU_CPULEVEL_H

#include "runtime/support/Status.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace llmrt {

/// A row of CpuLevels.inc; None is a machine below the first row.
enum class CpuLevel : int {
  None = 0,
#define LLMRT_CPU_LEVEL(Id, Name, Arch, Cpu, Features, What) Id,
#include "runtime/device/cpu/CpuLevels.inc"
};

/// What cpuid and xgetbv say, in the registers' own bits: kept apart from the instructions so that
/// the decision can be tested for machines that are not this one.
struct CpuidBits {
  uint32_t leaf1Ecx = 0, leaf7Ebx = 0, leaf7Ecx = 0, leaf7Edx = 0, extended1Ecx = 0;
  uint64_t xcr0 = 0; ///< register state the operating system saves; 0 without OSXSAVE
};

/// The bits of this machine; all zero where it is no x86-64.
CpuidBits readCpuid();

/// The highest level whose every instruction set is there and whose registers are saved.
CpuLevel levelOf(const CpuidBits &bits);

/// What Linux says of an AArch64 CPU (AT_HWCAP, AT_HWCAP2;
/// Documentation/arch/arm64/elf_hwcaps.rst).
struct ArmHwcaps {
  uint64_t hwcap = 0, hwcap2 = 0;
};

/// Of this machine; all zero where it is no AArch64.
ArmHwcaps readHwcaps();
CpuLevel levelOf(const ArmHwcaps &bits);

/// The level of this machine (cached). Where it has AMX, the first call asks the system for leave
/// to use tiles, on behalf of all threads; without it the machine counts as one that has none.
CpuLevel machineCpuLevel();

/// "x86-64-v3"; "none" below every level.
std::string_view cpuLevelName(CpuLevel level);

/// The level called \p name; an error that lists the names otherwise.
Result<CpuLevel> parseCpuLevel(std::string_view name);

/// Whether a machine of level \p machine runs code for \p level: of its architecture, and no more
/// than it has.
bool runsLevel(CpuLevel machine, CpuLevel level);

/// Picks one of a plan's modules, given the names of their levels: the highest that \p machine has
/// or, when \p forced is not empty (LLMRT_CPU_LEVEL), exactly that one. Returns its index.
Result<size_t> chooseCpuModule(std::span<const std::string_view> modules, CpuLevel machine,
                               std::string_view forced);

/// Whether code for \p level leaves out what \p machine can do. A plan has code for AMX and for
/// SMMLA only where it has a use for them, so none is no loss.
bool isLesserCode(CpuLevel level, CpuLevel machine);

} // namespace llmrt

#endif // LLMRT_DEVICE_CPU_CPULEVEL_H
