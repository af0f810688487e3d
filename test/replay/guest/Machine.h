//===- Machine.h - the little that a program without a system needs -----------===//
//
// A PC as it comes out of Entry.S: memory mapped one to one up to 1 GiB, no interrupts, one disk,
// one serial port.
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

/// Writes to the serial port.
void print(const char *text, size_t length);
void print(const char *text);
void printHex(uint64_t value);
void printDecimal(uint64_t value);
/// Says that this is the end, and stops.
[[noreturn]] void stop(const char *why);

/// Allows vector state up to AVX-512 and, where there is one, AMX; false: the processor has no
/// AVX-512.
bool allowVectors();
/// Faults print the current call (setCurrent) and where they were, and stop.
void catchFaults();
void setCurrent(const char *name, size_t length);
void printCurrent();

/// Takes care that the pages of [at, at + bytes) are mapped, zero when new.
void mapMemory(uint64_t at, uint64_t bytes);

/// Reads the next bytes of the disk.
void readDisk(void *to, uint64_t bytes);

} // namespace llmc::replay

#endif // LLMC_TEST_REPLAY_GUEST_MACHINE_H
