#include "test/emulator/Site.h"

#include <bit>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <map>

namespace simt {
namespace {

const char *baseName(const char *path) {
  const char *slash = std::strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/// An address in an object, and which text it is wanted for.
struct Address {
  size_t text;
  uintptr_t offset;
};

void symbolize(const std::string &object, const std::vector<Address> &addresses,
               std::vector<std::string> &texts) {
  std::string command = "llvm-symbolizer-22 --functions=none --inlines --obj='" + object + "'";
  for (Address a : addresses) {
    char text[32];
    std::snprintf(text, sizeof text, " 0x%lx", static_cast<unsigned long>(a.offset));
    command += text;
  }
  FILE *pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (!pipe)
    return;
  // A line a frame, innermost first; an empty line ends an address.
  char line[4096];
  size_t at = 0;
  while (std::fgets(line, sizeof line, pipe) && at < addresses.size()) {
    line[std::strcspn(line, "\n")] = 0;
    std::string &text = texts[addresses[at].text];
    if (line[0] == 0)
      ++at;
    else if (line[0] != '?')
      text = (text == "?" ? "" : text + " in ") + baseName(line);
  }
  pclose(pipe);
}

} // namespace

Site::Site(Where where) {
  static_assert(sizeof(Where) == sizeof(uint64_t));
  bits_ = std::bit_cast<uint64_t>(where);
}

Site Site::ofReturnAddress(const void *pc) {
  Site s;
  s.bits_ = reinterpret_cast<uint64_t>(pc) | returnAddress;
  return s;
}

std::vector<std::string> Site::texts(const std::vector<Site> &sites) {
  std::vector<std::string> texts(sites.size(), "?");
  std::map<std::string, std::vector<Address>> byObject;
  for (size_t i = 0; i < sites.size(); ++i) {
    const uint64_t bits = sites[i].bits_;
    if (bits == 0)
      continue;
    if (!(bits & returnAddress)) {
      const Where w = std::bit_cast<Where>(bits);
      texts[i] = std::string(baseName(w.file_name())) + ":" + std::to_string(w.line()) + ":" +
                 std::to_string(w.column());
      continue;
    }
    const auto pc = uintptr_t(bits & ~returnAddress);
    Dl_info info;
    if (dladdr(reinterpret_cast<const void *>(pc), &info)) // - 1: the call, not what follows it
      byObject[info.dli_fname].push_back({i, pc - uintptr_t(info.dli_fbase) - 1});
  }
  for (const auto &[object, addresses] : byObject)
    symbolize(object, addresses, texts);
  return texts;
}

} // namespace simt
