// Machine.h on Linux for AArch64, without a library: system calls are made by number
// (include/uapi/asm-generic/unistd.h). It runs under qemu-aarch64, or on a machine of that kind.
#include "test/replay/guest/Machine.h"

using namespace llmc::replay;

static int64_t call(int64_t number, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0,
                    uint64_t e = 0, uint64_t f = 0) {
  register int64_t x8 asm("x8") = number;
  register uint64_t x0 asm("x0") = a, x1 asm("x1") = b, x2 asm("x2") = c;
  register uint64_t x3 asm("x3") = d, x4 asm("x4") = e, x5 asm("x5") = f;
  asm volatile("svc 0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory");
  return static_cast<int64_t>(x0);
}
enum SystemCall {
  kOpenAt = 56,
  kRead = 63,
  kWriteTo = 64,
  kExit = 94,
  kSigAction = 134,
  kMap = 222
};

extern "C" {
void *memcpy(void *to, const void *from, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i)
    static_cast<uint8_t *>(to)[i] = static_cast<const uint8_t *>(from)[i];
  return to;
}
void *memset(void *to, int value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i)
    static_cast<uint8_t *>(to)[i] = static_cast<uint8_t>(value);
  return to;
}
}

void llmc::replay::print(const char *text, size_t length) {
  call(kWriteTo, 1, reinterpret_cast<uint64_t>(text), length);
}
void llmc::replay::stop(const char *why) {
  print("@end ");
  print(why);
  print("\n");
  for (;;)
    call(kExit, 0);
}

bool llmc::replay::allowVectors() { return true; }

/// What the kernel's struct sigaction is (asm-generic/signal.h).
struct Action {
  void (*handler)(int);
  uint64_t flags;
  void (*restorer)();
  uint64_t mask;
};
static void handleFault(int signal) {
  print("@fault signal ");
  printDecimal(static_cast<uint64_t>(signal));
  print(" in ");
  printCurrent();
  print("\n");
  stop("a fault");
}
void llmc::replay::catchFaults() {
  const Action action{handleFault, 0, nullptr, 0};
  constexpr int signals[] = {4, 7, 8, 11}; // SIGILL, SIGBUS, SIGFPE, SIGSEGV
  for (int signal : signals)
    call(kSigAction, static_cast<uint64_t>(signal), reinterpret_cast<uint64_t>(&action), 0, 8);
}

static uint64_t mapped[1 << 16]; // pages that are, a hash table of their numbers
void llmc::replay::mapMemory(uint64_t at, uint64_t bytes) {
  constexpr uint64_t page = 4096;
  for (uint64_t p = at / page; p * page < at + bytes; ++p) {
    uint64_t slot = p * 0x9e3779b97f4a7c15ULL >> 48;
    for (uint64_t tries = 0; mapped[slot] && mapped[slot] != p; ++tries) {
      slot = (slot + 1) % (sizeof(mapped) / sizeof(mapped[0]));
      if (tries == sizeof(mapped) / sizeof(mapped[0]))
        stop("more than 256 MiB is recorded");
    }
    if (mapped[slot] == p)
      continue;
    // Read, write, execute; private, anonymous, fixed where nothing else is.
    if (call(kMap, p * page, page, 7, 0x100022, ~uint64_t(0), 0) != static_cast<int64_t>(p * page))
      stop("an address of the recording is the emulator's own");
    mapped[slot] = p;
  }
}

static uint8_t buffer[1 << 16];
static uint64_t used = 0, filled = 0;
static int64_t file;

void llmc::replay::readDisk(void *to, uint64_t bytes) {
  for (uint8_t *p = static_cast<uint8_t *>(to); bytes;) {
    if (used == filled) {
      const int64_t got = call(kRead, static_cast<uint64_t>(file),
                               reinterpret_cast<uint64_t>(buffer), sizeof(buffer));
      if (got <= 0)
        stop("the recording can't be read");
      filled = static_cast<uint64_t>(got);
      used = 0;
    }
    const uint64_t part = bytes < filled - used ? bytes : filled - used;
    memcpy(p, buffer + used, part);
    p += part, used += part, bytes -= part;
  }
}

extern "C" void enter();

/// \p stack: the number of arguments and then each, as the system gives them to a program.
extern "C" void start(const uint64_t *stack) {
  if (stack[0] != 2)
    stop("the recording's name is missing");
  file =
      call(kOpenAt, static_cast<uint64_t>(-100), stack[2], 0); // from the current folder, to read
  if (file < 0)
    stop("the recording can't be opened");
  enter();
}
asm(".globl _start\n_start: mov x29, xzr\n mov x0, sp\n and sp, x0, #-16\n b start\n");
