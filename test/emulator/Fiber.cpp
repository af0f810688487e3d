#include "test/emulator/Fiber.h"

// Only the registers that a callee saves; kernels never change the floating-point modes.
asm(R"(
  .text
  .p2align 4
  .globl simtSwitchFiber
  .type simtSwitchFiber, @function
simtSwitchFiber:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  retq
  .size simtSwitchFiber, .-simtSwitchFiber
)");
