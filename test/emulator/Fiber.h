//===- Fiber.h - a stack of its own that runs until it switches -------------===//
#ifndef LLMC_TEST_EMULATOR_FIBER_H
#define LLMC_TEST_EMULATOR_FIBER_H

#include <cstddef>
#include <cstdint>

#ifndef __x86_64__
#error "the emulator switches fibers on x86-64 only"
#endif

/// Saves this fiber's registers on its stack, that stack's pointer to \p *from, and goes on where
/// \p to was saved. It ends in ret, not in a jump: lanes run in lockstep, so the return address
/// that the processor predicts from the lane before is right for this one.
extern "C" void simtSwitchFiber(void **from, void *to) noexcept;

namespace simt {

/// The stack pointer of a fiber that will start in \p entry, which must never return.
inline void *prepareFiber(char *stackTop, void (*entry)()) {
  auto *sp = reinterpret_cast<void **>(reinterpret_cast<uintptr_t>(stackTop) & ~uintptr_t(63));
  *--sp = nullptr; // the return address of entry, and its alignment
  *--sp = reinterpret_cast<void *>(entry);
  for (int i = 0; i < 6; ++i) // rbp, rbx, r12 to r15
    *--sp = nullptr;
  return sp;
}

} // namespace simt

#endif // LLMC_TEST_EMULATOR_FIBER_H
