/* The code of the test plan: kernels that do nothing, with the symbols that its head names. */
#include "runtime/device/cpu/KernelAbi.h"

#define KERNEL(name)                                                                               \
  __attribute__((visibility("default"))) void name(const LlmrtStep *step, void *const *bindings,   \
                                                   const int64_t *scalars, int64_t taskBegin,      \
                                                   int64_t taskEnd, void *scratch) {}
KERNEL(embed_f32_d8)
KERNEL(gemm_i4g32_k8_n8)
KERNEL(rope_append_f32_d4)
KERNEL(attention_f32_d4)
#ifdef MISSING_KERNEL
static int unused;
#else
KERNEL(logits_f32_n20)
#endif
