#include "test/replay/guest/Machine.h"

using namespace llmc::replay;

static void out(uint16_t port, uint8_t value) {
  asm volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}
static uint8_t in(uint16_t port) {
  uint8_t value;
  asm volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
  return value;
}

extern "C" {
void *memcpy(void *to, const void *from, size_t bytes) {
  void *start = to;
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
  return start;
}
void *memset(void *to, int value, size_t bytes) {
  void *start = to;
  asm volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(value) : "memory");
  return start;
}
}

//===- Serial port: a 16550 at 0x3f8 ------------------------------------------===//

void llmc::replay::print(const char *text, size_t length) {
  out(0x3fb, 3); // 8 bits, one stop bit
  for (size_t i = 0; i < length; ++i) {
    while (!(in(0x3fd) & 0x20)) { // until the transmitter takes a byte
    }
    out(0x3f8, static_cast<uint8_t>(text[i]));
  }
}
void llmc::replay::stop(const char *why) {
  print("@end ");
  print(why);
  print("\n");
  for (;;)
    asm volatile("cli; hlt");
}

//===- Processor ----------------------------------------------------------------===//

namespace {

struct Cpuid {
  uint32_t a, b, c, d;
};
Cpuid cpuid(uint32_t leaf, uint32_t sub) {
  Cpuid r;
  asm volatile("cpuid" : "=a"(r.a), "=b"(r.b), "=c"(r.c), "=d"(r.d) : "a"(leaf), "c"(sub));
  return r;
}

/// Bits of XCR0 (Intel SDM volume 1, 13.3): x87, SSE, AVX; opmask, ZMM_Hi256, Hi16_ZMM; tile
/// configuration and data.
constexpr uint64_t kAvx = 0x7, kAvx512 = 0xe0, kTiles = 0x60000;

struct __attribute__((packed)) Gate {
  uint16_t low, selector;
  uint8_t stack, type;
  uint16_t middle;
  uint32_t high, zero;
};
Gate gates[32];

/// What a processor pushes on a fault, below it the error code (or 0) and the vector.
struct Frame {
  uint64_t vector, error, rip, cs, flags, rsp, ss;
};

extern "C" [[noreturn]] void handleFault(const Frame *frame) {
  print("@fault vector ");
  printDecimal(frame->vector);
  print(" error ");
  printHex(frame->error);
  print(" at ");
  printHex(frame->rip);
  if (frame->vector == 14) {
    uint64_t touched;
    asm volatile("mov %%cr2, %0" : "=r"(touched));
    print(" touching ");
    printHex(touched);
  } else if (frame->vector == 6) {
    print(" instruction");
    for (int i = 0; i < 12; ++i) {
      print(" ");
      printHex(reinterpret_cast<const uint8_t *>(frame->rip)[i]);
    }
  }
  print(" in ");
  printCurrent();
  print("\n");
  stop("a fault");
}

} // namespace

// Entries of all vectors, 16 bytes each: an error code where the processor pushes none, the vector.
asm(R"(
.balign 16
faultEntries:
.set vector, 0
.rept 32
  .balign 16
  .if !(vector == 8 || vector == 17 || vector == 21 || (vector >= 10 && vector <= 14))
  pushq $0
  .endif
  pushq $vector
  jmp faultCommon
  .set vector, vector + 1
.endr
faultCommon:
  movq %rsp, %rdi
  andq $-16, %rsp
  call handleFault
)");
extern "C" char faultEntries[];

void llmc::replay::catchFaults() {
  for (int i = 0; i < 32; ++i) {
    const uint64_t entry = reinterpret_cast<uint64_t>(faultEntries) + 16 * i;
    gates[i] = {static_cast<uint16_t>(entry),       24, 0, 0x8e, static_cast<uint16_t>(entry >> 16),
                static_cast<uint32_t>(entry >> 32), 0};
  }
  const struct __attribute__((packed)) {
    uint16_t limit;
    uint64_t base;
  } table{sizeof(gates) - 1, reinterpret_cast<uint64_t>(gates)};
  asm volatile("lidt %0" : : "m"(table));
}

bool llmc::replay::allowVectors() {
  const Cpuid state = cpuid(0xd, 0);
  if ((state.a & kAvx512) != kAvx512)
    return false;
  const uint64_t wanted = 3 | kAvx | kAvx512 | (state.a & kTiles);
  asm volatile("xsetbv" : : "c"(0), "a"(uint32_t(wanted)), "d"(uint32_t(wanted >> 32)));
  return true;
}

//===- Memory -------------------------------------------------------------------===//

namespace {

constexpr uint64_t kTop = 0x10000;                // Entry.S's TABLES
constexpr uint64_t kIdentity = uint64_t(1) << 30; // what Entry.S mapped
uint64_t nextPage = 16 << 20;

uint64_t newPage() {
  const uint64_t page = nextPage;
  nextPage += 4096;
  if (nextPage > kIdentity)
    stop("more than 1 GiB is recorded");
  memset(reinterpret_cast<void *>(page), 0, 4096);
  return page;
}

} // namespace

void llmc::replay::mapMemory(uint64_t at, uint64_t bytes) {
  if (at < kIdentity || at + bytes >= uint64_t(1) << 47)
    stop("an address of the recording is the replaying program's own");
  for (uint64_t page = at & ~uint64_t(4095); page < at + bytes; page += 4096) {
    uint64_t table = kTop;
    for (int shift = 39; shift >= 12; shift -= 9) {
      uint64_t &entry = reinterpret_cast<uint64_t *>(table)[page >> shift & 511];
      if (!entry)
        entry = newPage() | 3;
      table = entry & ~uint64_t(4095);
    }
  }
}

//===- Disk: ATA, programmed I/O, LBA of 28 bits (ATA-5) -------------------------===//

namespace {

constexpr int kSectors = 128; // a command
constexpr uint64_t kBuffer = 512 * kSectors;
uint8_t *const sectors = reinterpret_cast<uint8_t *>(9 << 20); // above Entry.S's STACK
uint64_t used = kBuffer;                                       // all of what was read
uint32_t nextSector = 0;

void readSectors() {
  out(0x1f6, 0xe0 | (nextSector >> 24 & 15));
  out(0x1f2, kSectors);
  for (int i = 0; i < 3; ++i)
    out(0x1f3 + i, nextSector >> (8 * i) & 255);
  out(0x1f7, 0x20);
  for (int s = 0; s < kSectors; ++s) {
    uint8_t status;
    do {
      status = in(0x1f7);
      if (!(status & 0x80) && status & 0x21)
        stop("the disk can't be read");
    } while ((status & 0x88) != 8); // until it isn't busy and has data
    void *to = sectors + 512 * s;
    size_t words = 256;
    asm volatile("rep insw" : "+D"(to), "+c"(words) : "d"(uint16_t(0x1f0)) : "memory");
  }
  nextSector += kSectors;
  used = 0;
}

} // namespace

void llmc::replay::readDisk(void *to, uint64_t bytes) {
  for (uint8_t *p = static_cast<uint8_t *>(to); bytes;) {
    if (used == kBuffer)
      readSectors();
    const uint64_t part = bytes < kBuffer - used ? bytes : kBuffer - used;
    memcpy(p, sectors + used, part);
    p += part, used += part, bytes -= part;
  }
}
