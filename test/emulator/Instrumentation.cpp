// The functions that clang's -fsanitize=thread,alignment,bounds calls, implemented here: the
// instrumentation is the sanitizers', the checks are ours, no sanitizer's library is linked.
#include "test/emulator/Block.h"

#include <cstring>

using namespace simt;

#define HERE Site::ofReturnAddress(__builtin_return_address(0))

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void *, void *) {}
void __tsan_vptr_read(void *) {}

#define ACCESSES(N)                                                                                \
  void __tsan_read##N(void *p) { checkAccess(p, N, Mode::Read, HERE, N); }                         \
  void __tsan_write##N(void *p) { checkAccess(p, N, Mode::Write, HERE, N); }                       \
  void __tsan_unaligned_read##N(void *p) { checkAccess(p, N, Mode::Read, HERE, 1); }               \
  void __tsan_unaligned_write##N(void *p) { checkAccess(p, N, Mode::Write, HERE, 1); }             \
  void __tsan_read_write##N(void *p) {                                                             \
    checkAccess(p, N, Mode::Read, HERE, N);                                                        \
    checkAccess(p, N, Mode::Write, HERE, N);                                                       \
  }                                                                                                \
  void __tsan_unaligned_read_write##N(void *p) {                                                   \
    checkAccess(p, N, Mode::Read, HERE, 1);                                                        \
    checkAccess(p, N, Mode::Write, HERE, 1);                                                       \
  }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_read_range(void *p, unsigned long n) { checkAccess(p, int(n), Mode::Read, HERE, 1); }
void __tsan_write_range(void *p, unsigned long n) { checkAccess(p, int(n), Mode::Write, HERE, 1); }
void *__tsan_memset(void *to, int value, unsigned long n) {
  if (n)
    checkAccess(to, int(n), Mode::Write, HERE, 1);
  return std::memset(to, value, n);
}
void *__tsan_memcpy(void *to, const void *from, unsigned long n) {
  if (n) {
    checkAccess(from, int(n), Mode::Read, HERE, 1);
    checkAccess(to, int(n), Mode::Write, HERE, 1);
  }
  return std::memcpy(to, from, n);
}
void *__tsan_memmove(void *to, const void *from, unsigned long n) {
  if (n) {
    checkAccess(from, int(n), Mode::Read, HERE, 1);
    checkAccess(to, int(n), Mode::Write, HERE, 1);
  }
  return std::memmove(to, from, n);
}

// UBSan's handlers get a pointer to static data that starts with the place.
struct UbPlace {
  const char *file;
  uint32_t line, column;
};
struct UbTypeMismatch {
  UbPlace place;
  void *type;
  unsigned char logAlignment, kind;
};

static void undefined(const char *kind, const UbPlace &place, const std::string &what) {
  Thread *t = currentThread();
  if (!t)
    return;
  const char *slash = std::strrchr(place.file, '/');
  fail(kind, describe(*t) + ": " + what + " at " + (slash ? slash + 1 : place.file) + ":" +
                 std::to_string(place.line) + ":" + std::to_string(place.column));
}

void __ubsan_handle_type_mismatch_v1(UbTypeMismatch *d, uintptr_t p) {
  if (p == 0)
    undefined("null access", d->place, "a null pointer");
  else
    undefined("misaligned access", d->place,
              "an address that is " + std::to_string(p % 32) + " mod 32 where " +
                  std::to_string(1 << d->logAlignment) + "-byte alignment is needed");
}
void __ubsan_handle_out_of_bounds(UbPlace *d, uintptr_t index) {
  undefined("array index out of bounds", *d, "index " + std::to_string(intptr_t(index)));
}
void __ubsan_handle_shift_out_of_bounds(UbPlace *d, uintptr_t, uintptr_t) {
  undefined("shift out of bounds", *d, "a shift by more than the type's width");
}
void __ubsan_handle_divrem_overflow(UbPlace *d, uintptr_t, uintptr_t) {
  undefined("division by zero", *d, "a division");
}
}
