#include "runtime/plan/ArenaLayout.h"
#include "tools/common/InspectPrinters.h"
#include "tools/common/Table.h"

#include <cstdio>

namespace llmc::tools {

using namespace llmrt;

static std::string n(uint64_t v) { return std::to_string(v); }

template <typename... T> static std::string format(const char *text, T... values) {
  char line[256];
  std::snprintf(line, sizeof line, text, values...);
  return line;
}

/// "136.2 M": powers of ten.
static std::string formatCount(double v) {
  return v >= 1e9   ? format("%.2f G", v / 1e9)
         : v >= 1e6 ? format("%.1f M", v / 1e6)
                    : format("%.0f", v);
}

static void printModel(const Inspection &i, std::ostream &out) {
  const fbs::Plan &p = i.plan->head();
  const fbs::Model &m = *p.model();
  out << m.name()->str() << " (" << m.architecture()->str() << "), " << i.plan->name() << ", "
      << formatBytes(double(i.plan->fileSize())) << ", plan format " << p.format()->major() << '.'
      << p.format()->minor() << ", content "
      << format("%016llx", static_cast<unsigned long long>(i.plan->contentHash())) << "\n\n";
  std::string attention = n(m.heads()) + " heads, " + n(m.kv_heads()) + " for K and V, sizes " +
                          n(m.key_size()) + " and " + n(m.value_size());
  std::string context = n(m.max_context()) + " tokens";
  if (m.sliding_window())
    context += ", sliding window " + n(m.sliding_window());
  if (m.rope_original_context())
    context += ", longrope's long factors beyond " + n(m.rope_original_context());
  std::string sources, options;
  for (const fbs::SourceFile *s : *p.provenance()->sources())
    sources += (sources.empty() ? "" : ", ") + s->name()->str();
  for (const flatbuffers::String *s : *p.provenance()->options())
    options += (options.empty() ? "" : " ") + s->str();
  const std::pair<const char *, std::string> lines[] = {
      {"layers",
       n(m.layers()) + " of width " + n(m.hidden_size()) + ", MLP " + n(m.intermediate_size())},
      {"attention", attention},
      {"positions", "rotary " + n(m.rotary_size()) + format(", theta %g", m.rope_theta())},
      {"vocabulary", n(m.vocab_size())},
      {"context", context},
      {"parameters", formatCount(double(m.parameters()))},
      {"activations", p.activations() == fbs::ElementType::I8 ? "int8 into linear layers" : "f32"},
      {"compiled by", p.provenance()->compiler()->str()},
      {"from", sources},
      {"options", options}};
  for (const auto &[name, value] : lines)
    out << format("  %-12s", name) << value << '\n';
}

static void printMemory(const Inspection &i, std::ostream &out) {
  const fbs::Plan &p = i.plan->head();
  const PlanSummary &s = i.summary;
  out << "\nWeights\n";
  Table weights({"type", "tensors", "values", "bytes", "bits/value"});
  auto row = [&](const WeightType &t) {
    weights.add({t.name, n(t.count), n(t.values), n(t.bytes), format("%.3f", t.bitsPerValue())});
  };
  for (const WeightType &t : s.weights)
    row(t);
  row(s.allWeights);
  weights.print(out);

  uint64_t kv = p.kv()->bytes_per_token(), context = p.model()->max_context();
  const fbs::Limits &l = *p.limits();
  out << "\nMemory\n";
  Table memory({"what", "bytes", "how"});
  memory.add({"weights", n(s.allWeights.bytes), "mapped from the file, shared between processes"});
  memory.add({"KV cache", n(kv),
              "a token; " + s.kvTypes + "; " + formatBytes(s.kvAtMaxContext) +
                  " for a context of " + n(context) + "; blocks of " + n(p.kv()->block_tokens())});
  for (size_t group = 0; s.kvGroups.size() > 1 && group < s.kvGroups.size(); ++group) {
    const KvGroup &g = s.kvGroups[group];
    memory.add({"  of it", n(g.bytesPerToken),
                g.window ? "of layers that keep the last " + n(g.window) + " tokens"
                         : "of layers that keep all tokens"});
  }
  memory.add({"arena", n(s.arenaAtLimits),
              "= " + formatAffine(s.arena) + " in " + n(p.arena_slots()->size()) +
                  " slots, at the limits"});
  memory.add({"logits", n(s.logitsAtLimits),
              "= " + formatAffine(*p.outputs()->Get(0)->size()) + ", at the limits"});
  memory.add({"scratch", n(s.scratchAThread * i.limits.threads),
              "= " + n(s.scratchAThread) + " a thread"});
  memory.add({"partials", n(s.partialsAtLimits), "of attention that threads share"});
  memory.print(out);
  out << "  limits: T " << l.max_tokens() << " tokens, S " << l.max_sequences() << " sequences, R "
      << l.max_rows() << " rows with logits, Q " << stepLimits(l).Q << " tiles of "
      << l.query_tile() << " queries\n";
}

static void printProgram(const Inspection &i, std::ostream &out) {
  const fbs::Plan &p = i.plan->head();
  bool cuda = false;
  for (const KernelRow &k : i.summary.kernels)
    cuda |= k.cuda != nullptr;
  out << "\nKernels, run by " << p.commands()->size() << " commands a step\n";
  Table kernels(cuda ? std::vector<std::string>{"kernel", "kind", "target", "used", "registers",
                                                "spilled", "shared", "constants"}
                     : std::vector<std::string>{"kernel", "kind", "used", "scratch", "constants"});
  for (const KernelRow &k : i.summary.kernels) {
    std::string constants =
        k.kernel ? formatConstants(*k.kernel) : "vocabulary=" + n(p.outputs()->Get(0)->columns());
    if (k.cuda)
      kernels.add({k.name, k.kind, k.target, n(k.uses), n(k.cuda->registers()),
                   n(k.cuda->spill_bytes()), n(k.cuda->shared_bytes()), constants});
    else if (cuda)
      kernels.add({k.name, k.kind, k.target, n(k.uses), "", "", "", constants});
    else
      kernels.add({k.name, k.kind, n(k.uses), n(k.kernel->scratch_bytes()), constants});
  }
  kernels.print(out);

  out << "\nSegments\n";
  Table segments({"segment", "kind", "offset", "bytes", "xxh64"});
  static constexpr const char *kKinds[] = {"weights", "code", "tokenizer", "auxiliary"};
  for (const fbs::Segment *s : *p.segments())
    segments.add({s->name()->str(), kKinds[static_cast<int>(s->kind())], n(s->offset()),
                  n(s->size()), format("%016llx", static_cast<unsigned long long>(s->checksum()))});
  segments.print(out);
  for (const fbs::CodeModule *m : *p.modules())
    out << "  code for " << m->level()->str() << " (kernel ABI " << m->kernel_abi() << ")\n";
}

static void printPrediction(const Inspection &i, std::ostream &out) {
  const MachineLimits &l = i.limits;
  out << "\nRoofline (" << l.source << ", " << l.threads
      << (l.threads == 1 ? " thread" : " threads")
      << format(": memory %.1f GB/s, int8 %.0f GOPS, f32 %.0f GFLOPS)\n", l.bytesPerSecond / 1e9,
                l.intOperationsPerSecond / 1e9, l.floatOperationsPerSecond / 1e9);
  Table table({"step", "tokens/s", "ms", "memory", "int8 GOP", "f32 GFLOP"});
  auto row = [&](const std::string &name, const Prediction &p) {
    table.add({name, format("%.1f", p.tokensPerSecond), format("%.2f", p.seconds * 1e3),
               formatBytes(p.bytes), format("%.3f", p.intOperations / 1e9),
               format("%.3f", p.floatOperations / 1e9)});
  };
  row("decode, context " + n(static_cast<uint64_t>(i.context)), i.decode);
  row("prefill of " + n(static_cast<uint64_t>(i.prompt)), i.prefill);
  table.print(out);
}

void printInspectionText(const Inspection &i, std::ostream &out) {
  printModel(i, out);
  printMemory(i, out);
  printProgram(i, out);
  printPrediction(i, out);
}

} // namespace llmc::tools
