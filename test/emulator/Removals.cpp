#include "test/emulator/Removals.h"

#include <cstdio>
#include <cstdlib>
#include <sys/resource.h>

namespace {

constexpr int mostRemovals = 4096;

/// SIMT_REMOVE; SIMT_REACHED=FILE: at the end, the processor seconds of this process alone and the
/// removals that were reached.
struct Removals {
  int inForce = 0;
  const char *file = nullptr;
  bool reached[mostRemovals] = {};

  Removals() {
    if (const char *number = std::getenv("SIMT_REMOVE"))
      inForce = std::atoi(number);
    file = std::getenv("SIMT_REACHED");
  }
  ~Removals() {
    std::FILE *out = file ? std::fopen(file, "w") : nullptr;
    if (!out)
      return;
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    std::fprintf(out, "%.3f\n",
                 double(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                     1e-6 * double(used.ru_utime.tv_usec + used.ru_stime.tv_usec));
    for (int i = 0; i < mostRemovals; ++i)
      if (reached[i])
        std::fprintf(out, "%d\n", i);
    std::fclose(out);
  }
};
Removals removals;

} // namespace

int simt_removal() { return removals.inForce; }

void simt_reached(int number) {
  if (number > 0 && number < mostRemovals)
    removals.reached[number] = true;
}
