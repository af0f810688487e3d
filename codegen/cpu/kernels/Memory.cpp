//===- Memory.cpp - what the code generator itself may call --------------------===//
//
// A plan's code has no undefined symbol: these are the only functions that LLVM emits calls to on
// its own. Compiled without builtins, so that none becomes a call to itself.
//
//===----------------------------------------------------------------------===//
#include <stddef.h>

#if defined(__x86_64__)
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
#else
typedef char Bytes16 __attribute__((vector_size(16), aligned(1), may_alias));

// Every step is opaque, or the optimiser would see a memcpy in the loop.
extern "C" void *memcpy(void *to, const void *from, size_t bytes) {
  char *t = static_cast<char *>(to);
  const char *f = static_cast<const char *>(from);
  for (; bytes >= 16; bytes -= 16, t += 16, f += 16) {
    *reinterpret_cast<Bytes16 *>(t) = *reinterpret_cast<const Bytes16 *>(f);
    asm volatile("" : "+r"(t), "+r"(f) : : "memory");
  }
  for (; bytes > 0; --bytes, ++t, ++f) {
    *t = *f;
    asm volatile("" : "+r"(t), "+r"(f) : : "memory");
  }
  return to;
}

extern "C" void *memset(void *to, int value, size_t bytes) {
  char *t = static_cast<char *>(to);
  const Bytes16 values = static_cast<char>(value) - Bytes16{};
  for (; bytes >= 16; bytes -= 16, t += 16) {
    *reinterpret_cast<Bytes16 *>(t) = values;
    asm volatile("" : "+r"(t) : : "memory");
  }
  for (; bytes > 0; --bytes, ++t) {
    *t = static_cast<char>(value);
    asm volatile("" : "+r"(t) : : "memory");
  }
  return to;
}
#endif

extern "C" void *memmove(void *to, const void *from, size_t bytes) {
  char *t = static_cast<char *>(to);
  const char *f = static_cast<const char *>(from);
  if (t <= f)
    return memcpy(to, from, bytes);
  while (bytes-- > 0)
    *(volatile char *)(t + bytes) = f[bytes];
  return to;
}
