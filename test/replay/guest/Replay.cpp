//===- Replay.cpp - does again what a recording tells, and compares -----------===//
#include "runtime/device/cpu/KernelAbi.h"
#include "test/replay/Format.h"
#include "test/replay/guest/Machine.h"

using namespace llmc::replay;

namespace {

constexpr uint64_t kMostShown = 20;
uint64_t calls = 0, differences = 0, compared = 0;
char name[256];
uint64_t nameLength = 0;

void differs(uint64_t at, const uint8_t *got, const uint8_t *want) {
  if (++differences > kMostShown)
    return;
  print("@differs ");
  printCurrent();
  print(" at ");
  printHex(at);
  if (got) {
    uint32_t g, w;
    memcpy(&g, got, 4);
    memcpy(&w, want, 4);
    print(": ");
    printHex(g);
    print(" instead of ");
    printHex(w);
  }
  print("\n");
}

/// \p bytes of the disk must be what memory holds; if not, memory gets them: one fault is shown
/// once.
void expectBytes(uint64_t at, uint64_t bytes) {
  static uint8_t want[4096];
  while (bytes) {
    const uint64_t part = bytes < sizeof(want) ? bytes : sizeof(want);
    readDisk(want, padded(part));
    uint8_t *got = reinterpret_cast<uint8_t *>(at);
    if (memcmp(got, want, part) != 0) {
      uint64_t i = 0;
      while (got[i] == want[i])
        ++i;
      i = i / 4 * 4;
      differs(at + i, i + 4 <= part ? got + i : nullptr, want + i);
      memcpy(got, want, part);
    }
    at += part, bytes -= part, compared += part;
  }
}

void call(const Record &record, uint32_t mxcsr) {
  Call c;
  readDisk(&c, sizeof(c));
  const uint64_t length = record.bytes - sizeof(c);
  if (length > sizeof(name))
    stop("a call's name is too long");
  readDisk(name, padded(length));
  nameLength = length;
  setCurrent(name, nameLength);
  FloatMode mode(mxcsr);
  reinterpret_cast<LlmrtKernel>(record.address)(
      reinterpret_cast<const LlmrtStep *>(c.step), reinterpret_cast<void *const *>(c.bindings),
      reinterpret_cast<const int64_t *>(c.scalars), c.taskBegin, c.taskEnd,
      reinterpret_cast<void *>(c.scratch));
  ++calls;
}

[[noreturn]] void replay() {
  uint32_t mxcsr = 0;
  for (;;) {
    Record record;
    readDisk(&record, sizeof(record));
    switch (record.kind) {
    case kStart: {
      mxcsr = static_cast<uint32_t>(record.address);
      const uint64_t length = record.bytes < sizeof(name) ? record.bytes : 0;
      readDisk(name, padded(length));
      print("@level ");
      print(name, length);
      print("\n");
      break;
    }
    case kWrite:
      mapMemory(record.address, record.bytes);
      readDisk(reinterpret_cast<void *>(record.address), record.bytes);
      if (uint64_t padding = padded(record.bytes) - record.bytes)
        readDisk(name, padding);
      break;
    case kCall:
      call(record, mxcsr);
      break;
    case kExpect:
      mapMemory(record.address, record.bytes);
      expectBytes(record.address, record.bytes);
      break;
    case kExpectHash: {
      uint64_t told[2];
      readDisk(told, sizeof(told));
      if (hashWords(reinterpret_cast<const void *>(record.address), told[0]) != told[1])
        differs(record.address, nullptr, nullptr);
      compared += told[0];
      break;
    }
    case kEnd:
      print("@calls ");
      printDecimal(calls);
      print(" of ");
      printDecimal(record.address);
      print(" bytes ");
      printDecimal(compared);
      print(" differences ");
      printDecimal(differences);
      print("\n");
      stop("of the recording");
    default:
      stop("the recording is damaged");
    }
  }
}

} // namespace

extern "C" __attribute__((section(".entry"))) void enter() {
  print("@started\n");
  catchFaults();
  if (!allowVectors())
    stop("this processor has no AVX-512");
  replay();
}
