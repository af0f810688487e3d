#ifndef LLMC_TEST_UNIT_CODEGEN_EMULATEDVNNI_H
#define LLMC_TEST_UNIT_CODEGEN_EMULATEDVNNI_H

#include "runtime/device/cpu/KernelAbi.h"

namespace llmc::test {

/// gemm with int8 activations, N16K4 weights, f16 minimums, one tile a task.
void emulatedGemm(const LlmrtStep *step, void *const *bindings, int64_t tasks, int64_t k, int64_t n,
                  int64_t element, int64_t wGroup, int64_t scale, int64_t hasMin, int64_t group);

} // namespace llmc::test

#endif // LLMC_TEST_UNIT_CODEGEN_EMULATEDVNNI_H
