//===- EmulatedVnni.cpp - the gemm text of x86-64-v4, one instruction emulated ===//
#include "codegen/cpu/kernels/Gemm.cpp"

#include "test/unit/codegen/EmulatedVnni.h"

void llmc::test::emulatedGemm(const LlmrtStep *step, void *const *bindings, int64_t tasks,
                              int64_t k, int64_t n, int64_t element, int64_t wGroup, int64_t scale,
                              int64_t hasMin, int64_t group) {
  llmc_kernel_gemm(step, bindings, nullptr, 0, tasks, nullptr, k, n, element, kN16K4, wGroup, scale,
                   hasMin, kF16, 1, group, 0, 0, 0, 0, 0, 1);
}
