#include "runtime/plan/WeightFormat.h"
#include "tools/common/InspectPrinters.h"
#include "tools/common/JsonWriter.h"

#include <cstdio>

namespace llmc::tools {

using namespace llmrt;

/// Hashes go as text: a JSON number is a double to most readers.
static std::string hex(uint64_t v) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(v));
  return text;
}

static void writeModel(JsonWriter &j, const fbs::Plan &p) {
  const fbs::Model &m = *p.model();
  j.key("model").object([&] {
    j.key("name").value(m.name()->string_view());
    j.key("architecture").value(m.architecture()->string_view());
    const std::pair<const char *, uint64_t> fields[] = {
        {"layers", m.layers()},
        {"hidden_size", m.hidden_size()},
        {"intermediate_size", m.intermediate_size()},
        {"heads", m.heads()},
        {"kv_heads", m.kv_heads()},
        {"key_size", m.key_size()},
        {"value_size", m.value_size()},
        {"vocab_size", m.vocab_size()},
        {"max_context", m.max_context()},
        {"rotary_size", m.rotary_size()},
        {"sliding_window", m.sliding_window()},
        {"rope_original_context", m.rope_original_context()},
        {"parameters", m.parameters()}};
    for (auto [name, value] : fields)
      j.key(name).value(value);
    j.key("rope_theta").value(m.rope_theta());
    j.key("activations").value(elementName(p.activations()));
  });
  j.key("provenance").object([&] {
    j.key("compiler").value(p.provenance()->compiler()->string_view());
    j.key("sources").array([&] {
      for (const fbs::SourceFile *s : *p.provenance()->sources())
        j.object([&] {
          j.key("name").value(s->name()->string_view());
          j.key("size").value(s->size());
          j.key("sha256").value(s->sha256()->string_view());
        });
    });
    j.key("options").array([&] {
      for (const flatbuffers::String *s : *p.provenance()->options())
        j.value(s->string_view());
    });
  });
  j.key("limits").object([&] {
    j.key("max_tokens").value(p.limits()->max_tokens());
    j.key("max_sequences").value(p.limits()->max_sequences());
    j.key("max_rows").value(p.limits()->max_rows());
    j.key("query_tile").value(p.limits()->query_tile());
  });
}

static void writeAffine(JsonWriter &j, const fbs::Affine &a) {
  j.object([&] {
    j.key("constant").value(a.constant());
    j.key("per_token").value(a.per_token());
    j.key("per_sequence").value(a.per_sequence());
    j.key("per_row").value(a.per_row());
    j.key("per_tile").value(a.per_tile());
  });
}

static void writeMemory(JsonWriter &j, const Inspection &i) {
  const fbs::Plan &p = i.plan->head();
  const PlanSummary &s = i.summary;
  j.key("weights").object([&] {
    j.key("tensors").value(s.allWeights.count);
    j.key("values").value(s.allWeights.values);
    j.key("bytes").value(s.allWeights.bytes);
    j.key("types").array([&] {
      for (const WeightType &t : s.weights)
        j.object([&] {
          j.key("type").value(t.name);
          j.key("tensors").value(t.count);
          j.key("values").value(t.values);
          j.key("bytes").value(t.bytes);
          j.key("bits_per_value").value(t.bitsPerValue());
        });
    });
  });
  j.key("kv_bytes_per_token").value(p.kv()->bytes_per_token());
  j.key("kv").object([&] {
    j.key("type").value(s.kvTypes);
    j.key("block_tokens").value(p.kv()->block_tokens());
    j.key("key_tile").value(p.kv()->key_tile());
    j.key("bytes_at_max_context").value(s.kvAtMaxContext);
    j.key("groups").array([&] {
      for (const KvGroup &group : s.kvGroups)
        j.object([&] {
          j.key("window").value(group.window);
          j.key("bytes_per_token").value(group.bytesPerToken);
        });
    });
  });
  j.key("arena").object([&] {
    j.key("slots").value(p.arena_slots()->size());
    j.key("buffers").value(p.buffers()->size());
    j.key("formula").value(formatAffine(s.arena));
    j.key("bytes");
    writeAffine(j, s.arena);
    j.key("bytes_at_limits").value(s.arenaAtLimits);
    j.key("logits_bytes_at_limits").value(s.logitsAtLimits);
    j.key("scratch_bytes_per_thread").value(s.scratchAThread);
    j.key("partials_bytes_at_limits").value(s.partialsAtLimits);
  });
}

static void writeProgram(JsonWriter &j, const Inspection &i) {
  const fbs::Plan &p = i.plan->head();
  j.key("kernels").array([&] {
    for (const KernelRow &k : i.summary.kernels)
      j.object([&] {
        j.key("name").value(k.name);
        j.key("kind").value(k.kind);
        j.key("target").value(k.target);
        j.key("used").value(k.uses);
        j.key("symbol").value(k.kernel ? k.kernel->symbol()->string_view() : k.kind);
        j.key("registers").value(k.cuda ? k.cuda->registers() : 0);
        j.key("spill_bytes").value(k.cuda ? k.cuda->spill_bytes() : 0);
        j.key("shared_bytes").value(k.cuda ? k.cuda->shared_bytes() : 0);
        j.key("block").value(k.cuda ? k.cuda->block() : 0);
        if (k.cuda) {
          j.key("max_rows").value(k.cuda->max_rows());
          j.key("scratch").value(formatAffine(*k.cuda->scratch()));
        }
        j.key("scratch_bytes").value(k.kernel ? k.kernel->scratch_bytes() : 0);
        j.key("constants").object([&] {
          if (!k.kernel) {
            j.key("vocabulary").value(p.outputs()->Get(0)->columns());
            return;
          }
          for (const fbs::Constant *c : *k.kernel->constants()) {
            j.key(c->name()->string_view());
            if (c->text()->size())
              j.value(c->text()->string_view());
            else if (c->is_real())
              j.value(c->real());
            else
              j.value(c->value());
          }
        });
      });
  });
  j.key("commands").value(p.commands()->size());
  j.key("segments").array([&] {
    static constexpr const char *kKinds[] = {"weights", "code", "tokenizer", "auxiliary"};
    for (const fbs::Segment *s : *p.segments())
      j.object([&] {
        j.key("name").value(s->name()->string_view());
        j.key("kind").value(kKinds[static_cast<int>(s->kind())]);
        j.key("offset").value(s->offset());
        j.key("bytes").value(s->size());
        j.key("xxh64").value(hex(s->checksum()));
      });
  });
  j.key("modules").array([&] {
    for (const fbs::CodeModule *m : *p.modules())
      j.object([&] {
        j.key("level").value(m->level()->string_view());
        j.key("target").value(m->target() == fbs::Target::Cpu ? "cpu" : "cuda");
        j.key("segment").value(m->segment());
        j.key("kernel_abi").value(m->kernel_abi());
      });
  });
}

static void writePrediction(JsonWriter &j, const Inspection &i) {
  auto step = [&](const Prediction &p) {
    j.key("tokens_per_s").value(p.tokensPerSecond);
    j.key("seconds").value(p.seconds);
    j.key("bytes").value(p.bytes);
    j.key("int8_operations").value(p.intOperations);
    j.key("f32_operations").value(p.floatOperations);
  };
  j.key("predicted").object([&] {
    j.key("decode_tokens_per_s").value(i.decode.tokensPerSecond);
    j.key("prefill_tokens_per_s").value(i.prefill.tokensPerSecond);
    j.key("decode").object([&] {
      j.key("context").value(i.context);
      step(i.decode);
    });
    j.key("prefill").object([&] {
      j.key("prompt").value(i.prompt);
      step(i.prefill);
    });
    j.key("machine").object([&] {
      j.key("source").value(i.limits.source);
      j.key("threads").value(i.limits.threads);
      j.key("memory_gb_per_s").value(i.limits.bytesPerSecond / 1e9);
      j.key("int8_gops").value(i.limits.intOperationsPerSecond / 1e9);
      j.key("f32_gflops").value(i.limits.floatOperationsPerSecond / 1e9);
    });
  });
}

void printInspectionJson(const Inspection &i, std::ostream &out) {
  const fbs::Plan &p = i.plan->head();
  JsonWriter j(out);
  j.object([&] {
    j.key("file").object([&] {
      j.key("name").value(i.plan->name());
      j.key("bytes").value(i.plan->fileSize());
      j.key("head_bytes").value(i.plan->headSize());
      j.key("format").value(std::to_string(p.format()->major()) + "." +
                            std::to_string(p.format()->minor()));
      j.key("content").value(hex(i.plan->contentHash()));
    });
    writeModel(j, p);
    writeMemory(j, i);
    writeProgram(j, i);
    writePrediction(j, i);
  });
}

} // namespace llmc::tools
