//===- Activate.cpp - activations for kernels whose body MLIR builds ------------===//
#include "codegen/cpu/kernels/Math.h"

/// tanh of sixteen values, in place, as llmc_activate has them.
extern "C" __attribute__((always_inline)) void llmc_tanh(float *lanes) {
  using namespace llmc::kernel;
  store(lanes, tanh(load(lanes)));
}

/// Sixteen values in place; \p activation as plans number them. In memory, because a vector has no
/// calling convention that all levels share; after inlining nothing of it remains.
extern "C" __attribute__((always_inline)) void llmc_activate(float *lanes, int64_t activation) {
  using namespace llmc::kernel;
  store(lanes, activate(load(lanes), activation));
}
