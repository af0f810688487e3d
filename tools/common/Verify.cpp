#include "tools/common/Verify.h"

#include "runtime/plan/Plan.h"
#include "tools/common/Table.h"

#include <algorithm>
#include <cstdio>

namespace llmc::tools {

using namespace llmrt;

int verifyMain(const std::string &path, std::ostream &out, std::ostream &err) {
  auto opened = Plan::open(path);
  if (!opened) {
    err << "error: " << opened.status().message() << '\n';
    return 1;
  }
  const Plan &plan = **opened;
  size_t width = 4;
  for (const fbs::Segment *s : *plan.head().segments())
    width = std::max<size_t>(width, s->name()->size());
  auto line = [&](const std::string &name, uint64_t bytes, uint64_t hash) {
    char text[64];
    std::snprintf(text, sizeof text, "  %10s  xxh64 %016llx  ok\n",
                  formatBytes(static_cast<double>(bytes)).c_str(),
                  static_cast<unsigned long long>(hash));
    out << name << std::string(width - name.size(), ' ') << text;
  };
  line("head", plan.headSize(), plan.contentHash());
  for (size_t i = 0; i < plan.segmentCount(); ++i) {
    const fbs::Segment &s = *plan.head().segments()->Get(static_cast<uint32_t>(i));
    if (Status status = plan.verifySegment(i); !status.isOk()) {
      err << "error: " << path << ": " << status.message() << '\n';
      return 1;
    }
    line(s.name()->str(), s.size(), s.checksum());
  }
  out << path << ": " << plan.head().weights()->size() << " weights, "
      << plan.head().kernels()->size() << " kernels, " << plan.head().commands()->size()
      << " commands: ok\n";
  out.flush();
  if (!out) {
    err << "error: can't write the output\n";
    return 1;
  }
  return 0;
}

} // namespace llmc::tools
