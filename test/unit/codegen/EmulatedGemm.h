#ifndef LLMC_TEST_UNIT_CODEGEN_EMULATEDGEMM_H
#define LLMC_TEST_UNIT_CODEGEN_EMULATEDGEMM_H

#include "runtime/device/cpu/KernelAbi.h"

namespace llmc::test {

/// The constants of a gemm with int8 activations, N16K4 weights, f16 minimums, one tile a task.
struct EmulatedShape {
  int64_t k, n, element, wGroup, scale, hasMin, group;
};

/// The texts of levels that the machine may lack, with what it lacks emulated.
void emulatedVnniGemm(const LlmrtStep *step, void *const *bindings, int64_t tasks,
                      const EmulatedShape &shape);
void emulatedTilesGemm(const LlmrtStep *step, void *const *bindings, int64_t tasks,
                       const EmulatedShape &shape);

} // namespace llmc::test

#endif // LLMC_TEST_UNIT_CODEGEN_EMULATEDGEMM_H
