//===- Removals.h - barriers and checks of a kernel that can be left out ----------===//
//
// mutate.py writes the kernels' headers with each barrier, wait and bound check in one of these
// macros, so that one object serves all removals: SIMT_REMOVE=NUMBER chooses the one that is left
// out. Where a run with that removal would go another way than this one, it is noted
// (SIMT_REACHED).
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TEST_EMULATOR_REMOVALS_H
#define LLMC_TEST_EMULATOR_REMOVALS_H

extern "C" {
/// The removal in force, 0: none. It is the same as long as the process lives.
int simt_removal() __attribute__((const));
/// Without removal \p number what comes next differs from what would come with it.
void simt_reached(int number);
}

namespace simt {

__attribute__((always_inline)) inline bool isKept(int number) {
  if (simt_removal() == number)
    return false;
  simt_reached(number);
  return true;
}

/// A condition that is \p Instead where it is removed.
template <bool Instead> __attribute__((always_inline)) inline bool checked(int number, bool value) {
  if (value != Instead)
    simt_reached(number);
  return value;
}

/// Removal \p number leaves \p a of min(a, b), the next one \p b.
template <class T> __attribute__((always_inline)) inline T minimum(int number, T a, T b, T least) {
  if (simt_removal() == number)
    return a;
  if (simt_removal() == number + 1)
    return b;
  if (least != a)
    simt_reached(number);
  if (least != b)
    simt_reached(number + 1);
  return least;
}

} // namespace simt

#define SIMT_STATEMENT(number, ...)                                                                \
  do {                                                                                             \
    if (::simt::isKept(number))                                                                    \
      __VA_ARGS__;                                                                                 \
  } while (0)
#define SIMT_TRUE(number, ...)                                                                     \
  (simt_removal() == (number) || ::simt::checked<true>(number, (__VA_ARGS__)))
#define SIMT_FALSE(number, ...)                                                                    \
  (simt_removal() != (number) && ::simt::checked<false>(number, (__VA_ARGS__)))
#define SIMT_MINIMUM(number, a, b) (::simt::minimum<decltype(min(a, b))>(number, a, b, min(a, b)))

#endif // LLMC_TEST_EMULATOR_REMOVALS_H
