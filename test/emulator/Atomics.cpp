// Atomics and fences. Blocks may run on several host threads, so these are the host's atomics too.
#include "test/emulator/Block.h"

#include <algorithm>
#include <bit>

namespace simt {
namespace {

template <typename T, typename F> T update(T *p, Where where, F f) {
  noteAtomic(p);
  checkAccess(p, sizeof(T), Mode::Atomic, where, sizeof(T));
  T old = __atomic_load_n(p, __ATOMIC_SEQ_CST), next;
  do
    next = f(old);
  while (!__atomic_compare_exchange_n(p, &old, next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  return old;
}

} // namespace
} // namespace simt

using namespace simt;

uint32_t simt_atomic_add_u32(uint32_t *p, uint32_t v, Where where) {
  return update(p, where, [v](uint32_t old) { return old + v; });
}
uint64_t simt_atomic_add_u64(uint64_t *p, uint64_t v, Where where) {
  return update(p, where, [v](uint64_t old) { return old + v; });
}
uint32_t simt_atomic_exchange_u32(uint32_t *p, uint32_t v, Where where) {
  return update(p, where, [v](uint32_t) { return v; });
}
uint32_t simt_atomic_max_u32(uint32_t *p, uint32_t v, Where where) {
  return update(p, where, [v](uint32_t old) { return std::max(old, v); });
}
uint64_t simt_atomic_max_u64(uint64_t *p, uint64_t v, Where where) {
  return update(p, where, [v](uint64_t old) { return std::max(old, v); });
}
float simt_atomic_add_f32(float *p, float v, Where where) {
  return std::bit_cast<float>(update(reinterpret_cast<uint32_t *>(p), where, [v](uint32_t old) {
    return std::bit_cast<uint32_t>(std::bit_cast<float>(old) + v);
  }));
}

void simt_fence(Where) {
  if (currentBlock->checker.on)
    currentBlock->checker.fence(currentThread()->linear);
}

void simt_check(const void *address, int bytes, int write, Where where) {
  checkAccess(address, bytes, write ? Mode::Write : Mode::Read, where, bytes);
}

uint32_t simt_shared_address(const void *p) {
  const Block &b = *currentBlock;
  auto address = reinterpret_cast<uintptr_t>(p), shared = reinterpret_cast<uintptr_t>(b.shared);
  if (address >= b.staticLow && address < b.staticHigh) // behind the dynamic part
    return uint32_t((256 << 10) + (address - b.staticLow));
  return uint32_t(address - shared);
}

void simt_trap(const char *what, Where where) {
  fail("trap", describe(*currentThread()) + ": " + what + " at " + Site(where).text());
}
