#include "compiler/import/common/DecoderConfig.h"

#include <cmath>

using namespace llmrt;

namespace llmc {

Status DecoderConfig::check() const {
  const auto fail = [](const std::string &why) { return invalidFile("the configuration " + why); };
  const struct {
    const char *what;
    uint64_t value, limit;
  } numbers[] = {{"layers", layers, 10000},
                 {"the hidden size", hidden, uint64_t(1) << 20},
                 {"the intermediate size", intermediate, uint64_t(1) << 24},
                 {"attention heads", heads, 65536},
                 {"key-value heads", kvHeads, 65536},
                 {"the head size", headSize, 65536},
                 {"the vocabulary size", vocabulary, uint64_t(1) << 31},
                 {"the context length", maxContext, uint64_t(1) << 31}};
  for (const auto &number : numbers)
    if (number.value == 0 || number.value > number.limit)
      return fail(std::string("has ") + std::to_string(number.value) + " for " + number.what +
                  "; 1 to " + std::to_string(number.limit) + " is possible");
  if (heads % kvHeads != 0)
    return fail("has " + std::to_string(heads) + " attention heads for " + std::to_string(kvHeads) +
                " key-value heads; a multiple is needed");
  if (!(normEps >= 0) || !std::isfinite(normEps))
    return fail("has no usable epsilon for its norms");
  if (activation != "silu")
    return unsupported("activation '" + activation + "' is not supported for " + architecture +
                       "; silu is");
  if (rope.rotarySize > headSize)
    return fail("rotates " + std::to_string(rope.rotarySize) + " values of heads of " +
                std::to_string(headSize));
  if (permutedHeads && rope.rotarySize != headSize)
    return unsupported("a partial rotation with interleaved rows is not supported");
  if (windows.size() != layers)
    return internalError("windows of " + std::to_string(windows.size()) + " layers");
  return Status::ok();
}

} // namespace llmc
