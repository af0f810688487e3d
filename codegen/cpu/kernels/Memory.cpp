//===- Memory.cpp - what the code generator itself may call --------------------===//
//
// A plan's code has no undefined symbol: these are the only functions that LLVM emits calls to on
// its own. Compiled without builtins, so that none becomes a call to itself.
//
//===----------------------------------------------------------------------===//
#include <stddef.h>

extern "C" void *memcpy(void *to, const void *from, size_t bytes) {
  void *at = to;
  asm volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(bytes) : : "memory");
  return to;
}

extern "C" void *memset(void *to, int value, size_t bytes) {
  void *at = to;
  asm volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(value) : "memory");
  return to;
}

extern "C" void *memmove(void *to, const void *from, size_t bytes) {
  char *t = static_cast<char *>(to);
  const char *f = static_cast<const char *>(from);
  if (t <= f)
    return memcpy(to, from, bytes);
  while (bytes-- > 0)
    *(volatile char *)(t + bytes) = f[bytes];
  return to;
}
