#include "runtime/plan/PlanVerifier.h"

#include "runtime/device/cpu/KernelAbi.h"
#include "runtime/plan/ArenaLayout.h"
#include "runtime/plan/CheckedMath.h"
#include "runtime/plan/ElfSymbols.h"
#include "runtime/plan/KvLayout.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/PlanFormat.h"
#include "runtime/plan/VerifyParts.h"
#include "runtime/plan/WeightFormat.h"

#include <cmath>

namespace llmrt {
namespace verify {

/// Length of the UTF-8 sequence at \p p (\p left bytes are there); 0 if there is none: an overlong
/// form, a surrogate, a value above U+10FFFF (RFC 3629).
static size_t utf8Length(const uint8_t *p, size_t left) {
  if (p[0] < 0x80)
    return 1;
  size_t n = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
  if (p[0] < 0xC2 || p[0] > 0xF4 || left < n)
    return 0;
  for (size_t i = 1; i < n; ++i)
    if ((p[i] & 0xC0) != 0x80)
      return 0;
  if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) ||
      (p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F))
    return 0;
  return n;
}

static bool isPrintable(std::string_view s, bool lineBreaks) {
  const auto *p = reinterpret_cast<const uint8_t *>(s.data());
  for (size_t i = 0; i < s.size();) {
    bool control = p[i] < 0x20 || p[i] == 0x7F;
    bool breaks = p[i] == '\n' || p[i] == '\r' || p[i] == '\t';
    if (control && !(lineBreaks && breaks))
      return false;
    size_t n = utf8Length(p + i, s.size() - i);
    if (n == 0)
      return false;
    i += n;
  }
  return true;
}

bool isName(const flatbuffers::String *s) {
  return s && s->size() != 0 && s->size() <= kMaxNameBytes && isPrintable(s->string_view(), false);
}

bool isText(const flatbuffers::String *s, size_t maxBytes) {
  return s && s->size() <= maxBytes && isPrintable(s->string_view(), true);
}

bool isIdentifier(const flatbuffers::String *s) {
  if (!s || s->size() == 0 || s->size() > kMaxNameBytes ||
      (s->c_str()[0] >= '0' && s->c_str()[0] <= '9'))
    return false;
  for (char c : s->string_view())
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'))
      return false;
  return true;
}

std::string at(const char *list, uint32_t index, const flatbuffers::String *name) {
  std::string s = std::string(list) + "[" + num(index) + "]";
  if (isName(name))
    s += " '" + name->str() + "'";
  return s + ": ";
}

Status top(const fbs::Plan &plan) {
  if (!plan.format())
    return invalidFile("the head has no 'format'");
  std::string mine = num(kPlanMajor) + "." + num(kPlanMinor);
  std::string theirs = num(plan.format()->major()) + "." + num(plan.format()->minor());
  if (plan.format()->major() > kPlanMajor)
    return unsupported("plan format " + theirs + " is newer than the " + mine +
                       " that this build reads; update llmrt or compile the model again");
  if (plan.format()->major() != kPlanMajor)
    return invalidFile("plan format " + theirs + ", expected " + mine);
  const std::pair<const char *, bool> parts[] = {{"provenance", plan.provenance() != nullptr},
                                                 {"model", plan.model() != nullptr},
                                                 {"limits", plan.limits() != nullptr},
                                                 {"segments", plan.segments() != nullptr},
                                                 {"weights", plan.weights() != nullptr},
                                                 {"buffers", plan.buffers() != nullptr},
                                                 {"arena_slots", plan.arena_slots() != nullptr},
                                                 {"kernels", plan.kernels() != nullptr},
                                                 {"commands", plan.commands() != nullptr},
                                                 {"outputs", plan.outputs() != nullptr},
                                                 {"kv", plan.kv() != nullptr},
                                                 {"modules", plan.modules() != nullptr},
                                                 {"text", plan.text() != nullptr}};
  for (auto [name, present] : parts)
    if (!present)
      return invalidFile(std::string("the head has no '") + name + "'");
  if (plan.activations() != fbs::ElementType::F32 && plan.activations() != fbs::ElementType::I8)
    return invalidFile("activations: must be f32 or i8, not " +
                       num(static_cast<uint64_t>(plan.activations())));
  return Status::ok();
}

static Status provenance(const fbs::Provenance &p) {
  if (!isName(p.compiler()) || !p.sources() || !p.options())
    return invalidFile("provenance: no compiler, sources or options");
  for (uint32_t i = 0; i < p.sources()->size(); ++i) {
    const fbs::SourceFile &s = *p.sources()->Get(i);
    if (!isName(s.name()) || s.name()->string_view().find('/') != std::string_view::npos)
      return invalidFile(at("provenance.sources", i, s.name()) +
                         "must be a file name without folders");
    if (!s.sha256() || (s.sha256()->size() != 0 && s.sha256()->size() != 64) ||
        s.sha256()->string_view().find_first_not_of("0123456789abcdef") != std::string_view::npos)
      return invalidFile(at("provenance.sources", i, s.name()) + "sha256 isn't 64 hex digits");
  }
  for (uint32_t i = 0; i < p.options()->size(); ++i)
    if (!isText(p.options()->Get(i), kMaxNameBytes))
      return invalidFile(at("provenance.options", i) + "isn't text");
  return Status::ok();
}

static Status inRange(const char *name, uint64_t value, uint64_t low, uint64_t high) {
  if (value >= low && value <= high)
    return Status::ok();
  return invalidFile(std::string(name) + " is " + num(value) + ", must be " + num(low) + " to " +
                     num(high));
}

static Status kvCache(const fbs::Plan &plan) {
  const fbs::Kv &kv = *plan.kv();
  if (!kv.layers())
    return invalidFile("kv has no layers");
  if (kv.layers()->size() != plan.model()->layers())
    return invalidFile("kv has " + num(kv.layers()->size()) + " layers, the model " +
                       num(plan.model()->layers()));
  Checked perToken(0);
  for (uint32_t i = 0; i < kv.layers()->size(); ++i) {
    const fbs::KvLayer &l = *kv.layers()->Get(i);
    if (l.kv_heads() == 0 || l.kv_heads() > kMaxHeads || l.key_size() == 0 ||
        l.key_size() > kMaxDimension || l.value_size() > kMaxDimension)
      return invalidFile(at("kv.layers", i) + "heads or sizes are 0 or too large");
    if (l.element() != fbs::ElementType::F32 && l.element() != fbs::ElementType::F16 &&
        l.element() != fbs::ElementType::BF16 && l.element() != fbs::ElementType::I8)
      return invalidFile(at("kv.layers", i) + "element must be f32, f16, bf16 or i8, not " +
                         elementName(l.element()));
    // Without values of its own a layer is latent: they are the first elements of the one key.
    if (l.value_size() == 0 && (l.kv_heads() != 1 || l.element() == fbs::ElementType::I8))
      return invalidFile(at("kv.layers", i) +
                         "has no values, but more than one head or int8 elements");
    perToken = perToken + Checked(kvBytesPerToken(l));
  }
  auto bytes = perToken.get();
  if (!bytes || *bytes != kv.bytes_per_token())
    return invalidFile("kv.bytes_per_token is " + num(kv.bytes_per_token()) + ", its layers take " +
                       (bytes ? num(*bytes) : "more than 64 bits"));
  if (!(Checked(*bytes) * Checked(kMaxBlockTokens) * Checked(uint64_t(1) << 15)).get())
    return invalidFile("kv.bytes_per_token is " + num(*bytes) + ", too large to address");
  LLMRT_RETURN_IF_ERROR(inRange("kv.key_tile", kv.key_tile(), LLMRT_KV_RUN, kMaxBlockTokens));
  LLMRT_RETURN_IF_ERROR(
      inRange("kv.block_tokens", kv.block_tokens(), LLMRT_KV_RUN, kMaxBlockTokens));
  if (kv.key_tile() % LLMRT_KV_RUN != 0 || kv.block_tokens() % LLMRT_KV_RUN != 0)
    return invalidFile("kv.key_tile and kv.block_tokens must be multiples of " + num(LLMRT_KV_RUN));
  return Status::ok();
}

Status model(const fbs::Plan &plan) {
  LLMRT_RETURN_IF_ERROR(provenance(*plan.provenance()));
  const fbs::Model &m = *plan.model();
  if (!isName(m.name()) || !isName(m.architecture()))
    return invalidFile("model: name or architecture is empty or not printable");
  if (plan.main())
    return Status::ok();
  LLMRT_RETURN_IF_ERROR(inRange("model.layers", m.layers(), 1, kMaxHeads));
  LLMRT_RETURN_IF_ERROR(inRange("model.hidden_size", m.hidden_size(), 1, kMaxDimension));
  LLMRT_RETURN_IF_ERROR(
      inRange("model.intermediate_size", m.intermediate_size(), 0, kMaxDimension));
  LLMRT_RETURN_IF_ERROR(inRange("model.heads", m.heads(), 1, kMaxHeads));
  LLMRT_RETURN_IF_ERROR(inRange("model.kv_heads", m.kv_heads(), 1, m.heads()));
  LLMRT_RETURN_IF_ERROR(inRange("model.key_size", m.key_size(), 1, kMaxDimension));
  LLMRT_RETURN_IF_ERROR(inRange("model.value_size", m.value_size(), 1, kMaxDimension));
  LLMRT_RETURN_IF_ERROR(inRange("model.vocab_size", m.vocab_size(), 1, kMaxDimension));
  LLMRT_RETURN_IF_ERROR(inRange("model.max_context", m.max_context(), 1, kMaxDimension));
  LLMRT_RETURN_IF_ERROR(inRange("model.rotary_size", m.rotary_size(), 0, m.key_size()));
  LLMRT_RETURN_IF_ERROR(inRange("model.sliding_window", m.sliding_window(), 0, kMaxDimension));
  LLMRT_RETURN_IF_ERROR(
      inRange("model.rope_original_context", m.rope_original_context(), 0, kMaxDimension));
  if (m.heads() % m.kv_heads() != 0)
    return invalidFile("model.heads is " + num(m.heads()) + ", no multiple of kv_heads " +
                       num(m.kv_heads()));
  if (!std::isfinite(m.rope_theta()) || m.rope_theta() < 0)
    return invalidFile("model.rope_theta isn't a finite number of 0 or more");

  const fbs::Limits &l = *plan.limits();
  LLMRT_RETURN_IF_ERROR(inRange("limits.max_tokens", l.max_tokens(), 1, kMaxStepTokens));
  LLMRT_RETURN_IF_ERROR(inRange("limits.max_sequences", l.max_sequences(), 1, l.max_tokens()));
  LLMRT_RETURN_IF_ERROR(inRange("limits.max_rows", l.max_rows(), 1, l.max_tokens()));
  LLMRT_RETURN_IF_ERROR(inRange("limits.query_tile", l.query_tile(), 1, kMaxQueryTile));
  return kvCache(plan);
}

Status text(const fbs::Plan &plan) {
  const fbs::Text &t = *plan.text();
  uint64_t vocab = plan.model()->vocab_size();
  if (t.tokenizer_segment() != -1) {
    auto i = static_cast<uint32_t>(t.tokenizer_segment());
    if (t.tokenizer_segment() < -1 || i >= plan.segments()->size() ||
        plan.segments()->Get(i)->kind() != fbs::SegmentKind::Tokenizer)
      return invalidFile("text.tokenizer_segment " + std::to_string(t.tokenizer_segment()) +
                         " is no tokenizer segment");
  }
  if (!isText(t.chat_template()) || !isText(t.bos_token(), kMaxNameBytes) ||
      !isText(t.eos_token(), kMaxNameBytes))
    return invalidFile("text: chat template or special token is missing, too long or not UTF-8");
  const fbs::GenerationDefaults *g = t.generation();
  if (!g || !g->stop_ids())
    return invalidFile("text.generation is missing");
  for (int32_t id : *g->stop_ids())
    if (id < 0 || static_cast<uint64_t>(id) >= vocab)
      return invalidFile("text.generation.stop_ids: " + std::to_string(id) +
                         " isn't in the vocabulary of " + num(vocab));
  auto within = [](float v, float low, float high) { return v >= low && v <= high; }; // not NaN
  if (!within(g->temperature(), 0, 100) || !within(g->top_p(), 0, 1) || !within(g->min_p(), 0, 1) ||
      !within(g->repetition_penalty(), 1e-3f, 1e3f) || g->top_k() < 0)
    return invalidFile("text.generation: temperature, top_k, top_p, min_p or repetition_penalty is "
                       "out of range");

  if (const fbs::SelfTest *s = plan.self_test()) {
    if (!s->prompt() || !s->tokens() || s->prompt()->size() == 0)
      return invalidFile("self_test has no prompt");
    if (uint64_t(s->prompt()->size()) + s->tokens()->size() > plan.model()->max_context())
      return invalidFile("self_test is longer than the model's context of " +
                         num(plan.model()->max_context()));
    for (const auto *ids : {s->prompt(), s->tokens()})
      for (int32_t id : *ids)
        if (id < 0 || static_cast<uint64_t>(id) >= vocab)
          return invalidFile("self_test: token " + std::to_string(id) +
                             " isn't in the vocabulary of " + num(vocab));
  }
  return Status::ok();
}

} // namespace verify

Result<const fbs::Plan *> PlanVerifier::verifyHead(std::span<const uint8_t> head,
                                                   const VerifyOptions &options) {
  flatbuffers::Verifier verifier(head.data(), head.size());
  if (head.size() > kMaxHeadBytes || !fbs::VerifyPlanBuffer(verifier))
    return invalidFile("the head isn't a well-formed plan (flatbuffer \"LLMP\")");
  const fbs::Plan &plan = *fbs::GetPlan(head.data());
  LLMRT_RETURN_IF_ERROR(verify::top(plan));
  LLMRT_RETURN_IF_ERROR(verify::model(plan));
  LLMRT_RETURN_IF_ERROR(verify::storage(plan, head.size(), options.fileSize));
  LLMRT_RETURN_IF_ERROR(verify::program(plan));
  if (plan.main()) {
    LLMRT_RETURN_IF_ERROR(verify::graph(plan));
    return &plan;
  }
  LLMRT_RETURN_IF_ERROR(verify::text(plan));
  return &plan;
}

Status PlanVerifier::verifyCode(const Plan &plan) {
  const fbs::Plan &head = plan.head();
  bool used[2] = {false, false}, provided[2] = {false, false};
  for (const fbs::Kernel *k : *head.kernels())
    used[static_cast<size_t>(k->target())] = true;
  for (const fbs::CodeModule *m : *head.modules()) {
    provided[static_cast<size_t>(m->target())] = true;
    if (m->target() != fbs::Target::Cpu)
      continue;
    auto context = [&](const Status &s) {
      return s.withContext("code module '" + m->level()->str() + "'");
    };
    auto symbols = ElfSymbols::read(plan.segment(m->segment()));
    if (!symbols)
      return context(symbols.status());
    for (const fbs::Kernel *k : *head.kernels())
      if (k->target() == fbs::Target::Cpu && !symbols->hasFunction(k->symbol()->string_view()))
        return context(invalidFile("doesn't provide kernel '" + k->symbol()->str() + "'"));
  }
  for (size_t t = 0; t < 2; ++t)
    if (used[t] && !provided[t])
      return invalidFile(std::string("no code module for its ") + (t == 0 ? "CPU" : "CUDA") +
                         " kernels");
  return Status::ok();
}

} // namespace llmrt
