#include "tools/common/CountAllocations.h"

#include <cstdlib>
#include <new>

static thread_local int64_t allocations = 0;

int64_t llmc::tools::allocationsOfThisThread() { return allocations; }

// A sanitizer has an operator new of its own, which finds what it is there to find.
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer) &&                       \
    !__has_feature(memory_sanitizer)

// The forms for arrays, for nothrow and their counterparts call these. Aligned ones have to be
// replaced with their own delete.
static void *allocate(void *(*get)(size_t, size_t), size_t alignment, size_t size) {
  ++allocations;
  for (;;) {
    if (void *p = get(alignment, size ? size : 1))
      return p;
    std::new_handler handler = std::get_new_handler();
    if (!handler)
      throw std::bad_alloc();
    handler();
  }
}

void *operator new(size_t size) {
  return allocate([](size_t, size_t n) { return std::malloc(n); }, 0, size);
}
void *operator new(size_t size, std::align_val_t alignment) {
  return allocate([](size_t a, size_t n) { return std::aligned_alloc(a, (n + a - 1) / a * a); },
                  static_cast<size_t>(alignment), size);
}
void operator delete(void *p) noexcept { std::free(p); }
void operator delete(void *p, size_t) noexcept { std::free(p); }
void operator delete(void *p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void *p, size_t, std::align_val_t) noexcept { std::free(p); }

#endif
