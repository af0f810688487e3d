//===- Machine.h - the little that the replay needs of a machine --------------===//
//
// Machine.cpp: a PC as it comes out of Entry.S, without a system: memory mapped one to one up to 1
// GiB, no interrupts, one disk, one serial port. Linux.cpp: a process on AArch64.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TEST_REPLAY_GUEST_MACHINE_H
#define LLMC_TEST_REPLAY_GUEST_MACHINE_H

#include <stddef.h>
#include <stdint.h>

extern "C" {
void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);
}

namespace llmc::replay {

/// Writes to the serial port, or to standard output.
void print(const char *text, size_t length);
void print(const char *text);
void printHex(uint64_t value);
void printDecimal(uint64_t value);
/// Says that this is the end, and stops.
[[noreturn]] void stop(const char *why);

/// Allows vector state up to AVX-512 and, where there is one, AMX; false: the processor has no
/// AVX-512. On AArch64 there is nothing to do.
bool allowVectors();

/// Rounds to nearest, with denormals as zeros, while it lives: as the recorded calls were made.
/// \p mxcsr says that for x86-64.
class FloatMode {
public:
#if defined(__x86_64__)
  explicit FloatMode(uint32_t mxcsr) {
    asm volatile("stmxcsr %0; ldmxcsr %1" : "=m"(saved) : "m"(mxcsr));
  }
  ~FloatMode() { asm volatile("vzeroupper; ldmxcsr %0" : : "m"(saved)); }

private:
  uint32_t saved;
#else
  explicit FloatMode(uint32_t) {
    asm volatile("mrs %0, fpcr; msr fpcr, %1" : "=&r"(saved) : "r"(uint64_t(1) << 24)); // FZ
  }
  ~FloatMode() { asm volatile("msr fpcr, %0" : : "r"(saved)); }

private:
  uint64_t saved;
#endif
};
/// Faults print the current call (setCurrent) and where they were, and stop.
void catchFaults();
void setCurrent(const char *name, size_t length);
void printCurrent();

/// Takes care that the pages of [at, at + bytes) are mapped, zero when new.
void mapMemory(uint64_t at, uint64_t bytes);

/// Reads the next bytes of the disk, or of the recording's file.
void readDisk(void *to, uint64_t bytes);

} // namespace llmc::replay

#endif // LLMC_TEST_REPLAY_GUEST_MACHINE_H
