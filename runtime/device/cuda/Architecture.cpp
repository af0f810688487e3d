#include "runtime/device/cuda/Architecture.h"

#include <charconv>
#include <optional>
#include <string_view>

namespace llmrt::cuda {
namespace {

struct Architecture {
  bool ptx;
  int number;  ///< 10 * major + minor
  char suffix; ///< 'a': this chip only; 'f': its family; 0
};

std::optional<Architecture> parse(std::string_view name) {
  Architecture a{};
  if (name.starts_with("sm_"))
    name.remove_prefix(3);
  else if (name.starts_with("compute_")) {
    a.ptx = true;
    name.remove_prefix(8);
  } else
    return std::nullopt;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), a.number);
  std::string_view rest(end, size_t(name.data() + name.size() - end));
  if (error != std::errc() || rest.size() > 1 || (!rest.empty() && rest != "a" && rest != "f"))
    return std::nullopt;
  a.suffix = rest.empty() ? '\0' : rest[0];
  return a;
}

/// How good \p a is on a device: more is better, nothing: it does not run.
std::optional<int> rank(const Architecture &a, int major, int minor) {
  int device = 10 * major + minor;
  bool sameMajor = a.number / 10 == major && a.number <= device;
  if (a.suffix == 'a'             ? a.number != device
      : a.suffix == 'f' || !a.ptx ? !sameMajor
                                  : a.number > device)
    return std::nullopt;
  return (a.ptx ? 0 : 10000) + 4 * a.number + (a.suffix == 'a' ? 2 : a.suffix == 'f' ? 1 : 0);
}

} // namespace

Result<size_t> chooseArchitecture(std::span<const std::string> names, int major, int minor) {
  std::optional<size_t> best;
  int bestRank = -1;
  std::string list;
  for (size_t i = 0; i < names.size(); ++i) {
    list += (i ? ", " : "") + names[i];
    auto architecture = parse(names[i]);
    auto r = architecture ? rank(*architecture, major, minor) : std::nullopt;
    if (r && *r > bestRank) {
      bestRank = *r;
      best = i;
    }
  }
  if (best)
    return *best;
  return unsupported("the plan has CUDA code for " + (list.empty() ? "no architecture" : list) +
                     ", and this device is sm_" + std::to_string(major) + std::to_string(minor) +
                     "; compile the model with --target cuda:sm_" + std::to_string(major) +
                     std::to_string(minor));
}

} // namespace llmrt::cuda
