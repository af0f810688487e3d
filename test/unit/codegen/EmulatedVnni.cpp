//===- EmulatedVnni.cpp - the gemm text of x86-64-v4, one instruction emulated ===//
#include "codegen/cpu/kernels/Gemm.cpp"

#include "test/unit/codegen/EmulatedGemm.h"

void llmc::test::emulatedVnniGemm(const LlmrtStep *step, void *const *bindings, int64_t tasks,
                                  const EmulatedShape &s) {
  llmc_kernel_gemm(step, bindings, nullptr, 0, tasks, nullptr, s.k, s.n, s.element, kN16K4,
                   s.wGroup, s.scale, s.hasMin, kF16, 1, s.group, 0, 0, 0, 0, 0, 1);
}
