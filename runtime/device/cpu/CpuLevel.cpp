#include "runtime/device/cpu/CpuLevel.h"

#include <algorithm>
#include <optional>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace llmrt {
namespace {

enum class Architecture { X86_64, AArch64 };

struct LevelRow {
  CpuLevel level;
  std::string_view name;
  Architecture architecture;
};
constexpr LevelRow levelTable[] = {
#define LLMRT_CPU_LEVEL(Id, Name, Arch, Cpu, Features, What)                                       \
  {CpuLevel::Id, Name, Architecture::Arch},
#include "runtime/device/cpu/CpuLevels.inc"
};

std::string levelNames() {
  std::string names;
  for (const LevelRow &row : levelTable) {
    if (!names.empty())
      names += ", ";
    names += row.name;
  }
  return names;
}

#if defined(__x86_64__)
// Inline assembly, since the _xgetbv intrinsic needs the file to be compiled with -mxsave.
uint64_t readXcr0() {
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t(high) << 32) | low;
}

/// Linux enables tile registers for processes that ask (Documentation/arch/x86/xstate.rst).
bool allowTiles() {
  constexpr long requestPermission = 0x1023, tileData = 18; // ARCH_REQ_XCOMP_PERM, XTILEDATA
  return ::syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
}
#endif

constexpr uint32_t bit(int n) { return uint32_t(1) << n; }

} // namespace

CpuidBits readCpuid() {
  CpuidBits bits;
#if defined(__x86_64__)
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d))
    bits.leaf1Ecx = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
    bits.leaf7Ebx = b;
    bits.leaf7Ecx = c;
    bits.leaf7Edx = d;
  }
  if (__get_cpuid(0x80000001, &a, &b, &c, &d))
    bits.extended1Ecx = c;
  if (bits.leaf1Ecx & bit(27)) // OSXSAVE: xgetbv is an invalid instruction without it
    bits.xcr0 = readXcr0();
#endif
  return bits;
}

CpuLevel levelOf(const CpuidBits &bits) {
  // Intel SDM volume 2, CPUID; the levels are those of the x86-64 psABI.
  constexpr uint32_t v3Leaf1 = bit(12) /*FMA*/ | bit(22) /*MOVBE*/ | bit(27) /*OSXSAVE*/ |
                               bit(28) /*AVX*/ | bit(29) /*F16C*/;
  constexpr uint32_t v3Leaf7 = bit(3) /*BMI1*/ | bit(5) /*AVX2*/ | bit(8) /*BMI2*/;
  constexpr uint32_t v3Extended = bit(5) /*LZCNT*/;
  constexpr uint64_t ymmState = 0x6;  // XMM, YMM
  constexpr uint64_t zmmState = 0xe6; // and opmask, the upper halves, ZMM16-31
  constexpr uint32_t v4Leaf7 =
      bit(16) /*F*/ | bit(17) /*DQ*/ | bit(28) /*CD*/ | bit(30) /*BW*/ | bit(31) /*VL*/;
  constexpr uint32_t v4Leaf7c = bit(11) /*VNNI*/;
  constexpr uint32_t amxLeaf7d = bit(24) /*AMX-TILE*/ | bit(25) /*AMX-INT8*/;
  constexpr uint64_t tileState = 0x60000; // configuration and data

  auto has = [](auto value, auto wanted) { return (value & wanted) == wanted; };
  if (!has(bits.leaf1Ecx, v3Leaf1) || !has(bits.leaf7Ebx, v3Leaf7) ||
      !has(bits.extended1Ecx, v3Extended) || !has(bits.xcr0, ymmState))
    return CpuLevel::None;
  if (!has(bits.leaf7Ebx, v4Leaf7) || !has(bits.leaf7Ecx, v4Leaf7c) || !has(bits.xcr0, zmmState))
    return CpuLevel::X86V3;
  if (!has(bits.leaf7Edx, amxLeaf7d) || !has(bits.xcr0, tileState))
    return CpuLevel::X86V4;
  return CpuLevel::X86V4Amx;
}

ArmHwcaps readHwcaps() {
  ArmHwcaps bits;
#if defined(__aarch64__)
  bits.hwcap = ::getauxval(AT_HWCAP);
  bits.hwcap2 = ::getauxval(AT_HWCAP2);
#endif
  return bits;
}

CpuLevel levelOf(const ArmHwcaps &bits) {
  constexpr uint64_t advancedSimd = bit(1), dotProduct = bit(20); // HWCAP_ASIMD, HWCAP_ASIMDDP
  constexpr uint64_t matrixMultiply = bit(13);                    // HWCAP2_I8MM
  if (!(bits.hwcap & advancedSimd) || !(bits.hwcap & dotProduct))
    return CpuLevel::None;
  return bits.hwcap2 & matrixMultiply ? CpuLevel::ArmI8mm : CpuLevel::ArmDot;
}

CpuLevel machineCpuLevel() {
  static const CpuLevel level = [] {
#if defined(__x86_64__)
    CpuLevel all = levelOf(readCpuid());
    return all == CpuLevel::X86V4Amx && !allowTiles() ? CpuLevel::X86V4 : all;
#else
    return levelOf(readHwcaps());
#endif
  }();
  return level;
}

std::string_view cpuLevelName(CpuLevel level) {
  for (const LevelRow &row : levelTable)
    if (row.level == level)
      return row.name;
  return "none";
}

Result<CpuLevel> parseCpuLevel(std::string_view name) {
  for (const LevelRow &row : levelTable)
    if (row.name == name)
      return row.level;
  return invalidArgument("unknown CPU level '" + std::string(name) + "'; known: " + levelNames());
}

static std::optional<Architecture> architectureOf(CpuLevel level) {
  for (const LevelRow &row : levelTable)
    if (row.level == level)
      return row.architecture;
  return std::nullopt;
}

bool runsLevel(CpuLevel machine, CpuLevel level) {
  return level != CpuLevel::None && level <= machine &&
         architectureOf(level) == architectureOf(machine);
}

Result<size_t> chooseCpuModule(std::span<const std::string_view> modules, CpuLevel machine,
                               std::string_view forced) {
  std::string present;
  for (std::string_view name : modules) {
    if (!present.empty())
      present += ", ";
    present += name;
  }
  if (modules.empty())
    return unsupported("the plan has no code for a CPU; compile it with --target cpu");

  if (!forced.empty()) {
    Result<CpuLevel> wanted = parseCpuLevel(forced);
    if (!wanted)
      return wanted.status().withContext("LLMRT_CPU_LEVEL");
    if (!runsLevel(machine, *wanted))
      return unsupported("LLMRT_CPU_LEVEL=" + std::string(forced) + ": this machine has " +
                         std::string(cpuLevelName(machine)) + " only");
    for (size_t i = 0; i < modules.size(); ++i)
      if (modules[i] == forced)
        return i;
    return unsupported("LLMRT_CPU_LEVEL=" + std::string(forced) + ": the plan has code for " +
                       present + " only");
  }

  std::optional<size_t> best;
  CpuLevel bestLevel = CpuLevel::None;
  for (size_t i = 0; i < modules.size(); ++i) {
    // A level that a newer compiler knows and this runtime does not is passed over.
    Result<CpuLevel> level = parseCpuLevel(modules[i]);
    if (!level || !runsLevel(machine, *level) || *level < bestLevel)
      continue;
    best = i;
    bestLevel = *level;
  }
  if (!best)
    return unsupported("the plan has code for the CPU levels " + present + ", this machine has " +
                       std::string(cpuLevelName(machine)) +
                       "; compile the plan for this machine's level");
  return *best;
}

bool isLesserCode(CpuLevel level, CpuLevel machine) {
  return level != machine && level != CpuLevel::X86V4 && level != CpuLevel::ArmDot &&
         runsLevel(machine, level);
}

} // namespace llmrt
