/* The code of the test plan: kernels that do nothing, with the symbols that its head names; and,
   by macro, modules with one thing that the loader must refuse. */
#include "runtime/device/cpu/KernelAbi.h"

#define VISIBLE __attribute__((visibility("default")))
#define KERNEL(name)                                                                               \
  VISIBLE void name(const LlmrtStep *step, void *const *bindings, const int64_t *scalars,          \
                    int64_t taskBegin, int64_t taskEnd, void *scratch) {}
KERNEL(embed_f32_d8)
KERNEL(gemm_i4g32_k8_n16)
KERNEL(rope_append_f32_d4)
KERNEL(attention_f32_d4)
KERNEL(gather_d8)
KERNEL(append_f16)
KERNEL(attention_f16)
#ifdef WITH_DATA
VISIBLE int64_t logits_f32_n20 = 1;
#elif defined(WITH_FUNCTION_IN_DATA)
__asm__(".data\n.globl logits_f32_n20\n.type logits_f32_n20, @function\nlogits_f32_n20: .quad 1\n.text");
#elif !defined(WITHOUT_LOGITS)
KERNEL(logits_f32_n20)
#endif
#ifdef WITH_IMPORT
void outside(void);
VISIBLE void inside(void) { outside(); }
#endif
#ifdef WITH_CONSTRUCTOR
static volatile int ran;
__attribute__((constructor)) static void early(void) { ran = 1; }
#endif
