#include "test/replay/guest/Machine.h"

using namespace llmc::replay;

extern "C" int memcmp(const void *a, const void *b, size_t bytes) {
  const uint8_t *x = static_cast<const uint8_t *>(a), *y = static_cast<const uint8_t *>(b);
  for (; bytes >= 8; x += 8, y += 8, bytes -= 8) {
    uint64_t v, w;
    __builtin_memcpy(&v, x, 8);
    __builtin_memcpy(&w, y, 8);
    if (v != w)
      break;
  }
  for (size_t i = 0; i < bytes; ++i)
    if (x[i] != y[i])
      return x[i] < y[i] ? -1 : 1;
  return 0;
}

void llmc::replay::print(const char *text) {
  for (; *text; ++text)
    print(text, 1);
}
void llmc::replay::printHex(uint64_t value) {
  print("0x");
  for (int shift = 60; shift >= 0; shift -= 4)
    print(&"0123456789abcdef"[value >> shift & 15], 1);
}
void llmc::replay::printDecimal(uint64_t value) {
  if (value >= 10)
    printDecimal(value / 10);
  print(&"0123456789"[value % 10], 1);
}

static const char *currentName = "nothing yet";
static size_t currentLength = 11;

void llmc::replay::setCurrent(const char *name, size_t length) {
  currentName = name;
  currentLength = length;
}
void llmc::replay::printCurrent() { print(currentName, currentLength); }
