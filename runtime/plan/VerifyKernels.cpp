// The part of the verifier that knows what each kernel family touches:
// codegen/cpu/kernels/README.md says which memory a kernel reads and writes for its constants, and
// here a command that would give it less, or run other than all of its tasks, is refused.
#include "runtime/device/cpu/KernelAbi.h"
#include "runtime/plan/CheckedMath.h"
#include "runtime/plan/VerifyParts.h"
#include "runtime/plan/WeightFormat.h"

#include <limits>
#include <vector>

namespace llmrt::verify {
namespace {

/// What one command needs: bytes of each binding, in order, and its tasks.
struct Needs {
  std::vector<fbs::Affine> bindings;
  fbs::Affine tasks;
};

/// A number that no int64 of an Affine can hold makes the whole contract impossible.
constexpr int64_t kTooMuch = std::numeric_limits<int64_t>::max();

int64_t amount(Checked bytes) {
  auto value = bytes.get();
  return value && *value < uint64_t(kTooMuch) ? static_cast<int64_t>(*value) : kTooMuch;
}

enum class Per { Nothing, Token, LogitRow };

class Contract {
public:
  Contract(const fbs::Plan &plan, const fbs::Kernel &kernel) : plan_(plan), kernel_(kernel) {}

  /// Fills in \p needs; false for a family that isn't known here.
  bool describe(Needs &needs) {
    std::string_view kind = kernel_.kind()->string_view();
    Per m = get("rows").get() == 1 ? Per::LogitRow : Per::Token;
    if (kind == "embed") {
      add(Per::Nothing,
          packed(has("positions") ? get("positions") : plan_.model()->vocab_size(), get("d")));
      add(Per::Token, floats(get("d")));
      tasks_ = row(Per::Token, 1);
    } else if (kind == "rope_angles") {
      add(Per::Nothing, floats(get("half")));
      add(Per::Token, floats(get("half") * 2));
      tasks_ = row(Per::Token, 1);
    } else if (kind == "rope_gather") {
      add(Per::Nothing, floats(get("positions") * get("half")));
      add(Per::Nothing, floats(get("positions") * get("half")));
      add(Per::Token, floats(get("half") * 2));
      tasks_ = row(Per::Token, 1);
    } else if (kind == "rope_select") {
      for (int i = 0; i < 3; ++i)
        add(Per::Token, floats(get("half") * 2));
      tasks_ = row(Per::Token, 1);
    } else if (kind == "gather_rows") {
      add(Per::Token, floats(get("d")));
      add(Per::LogitRow, floats(get("d")));
      tasks_ = row(Per::LogitRow, 1);
    } else if (kind == "norm") {
      add(m, floats(get("d")));
      add(Per::Nothing, floats(get("d")));
      if (has("bias"))
        add(Per::Nothing, floats(get("d")));
      add(m, has("out") ? int8Row(get("d")) : floats(get("d")));
      tasks_ = row(m, 1);
    } else if (kind == "quantize") {
      Checked slots(atLeastOne("slots"));
      add(m, floats(get("k") * slots));
      add(m, int8Row(get("k")) * slots);
      tasks_ = row(m, amount(slots));
    } else if (kind == "gemm") {
      gemm(m);
    } else if (kind == "rope_append") {
      ropeAppend();
    } else if (kind == "attention") {
      add(Per::Token, floats(get("heads") * get("key_size")));
      for (const char *scores : {"alibi", "sinks"})
        if (has(scores))
          add(Per::Nothing, floats(get("heads")));
      add(Per::Token, floats(get("heads") * get("value_size")));
      tasks_ = fbs::Affine(0, 0, 0, 0, amount(get("kv_heads") * Checked(atLeastOne("head_tasks"))));
    } else if (kind == "latent_append") {
      Checked heads = get("heads"), latent = get("latent"), rotary = get("rotary");
      add(Per::Token, floats(heads * latent));
      add(Per::Token, floats(heads * get("stride")));
      for (Checked part : {latent, rotary, rotary})
        add(Per::Token, floats(part));
      add(Per::Token, floats(heads * (latent + rotary)));
      tasks_ = row(Per::Token, 1);
    } else if (kind == "route") {
      add(m, floats(get("experts")));
      if (has("correction"))
        add(Per::Nothing, floats(get("experts")));
      for (int i = 0; i < 2; ++i) // ids are as wide as weights
        add(m, floats(get("chosen")));
      tasks_ = row(m, 1);
    } else if (kind == "grouped_gemm") {
      groupedGemm(m);
    } else if (kind == "combine") {
      Checked d = get("d"), slots = get("slots");
      add(m, floats(d * slots));
      add(m, floats(slots));
      if (has("residual"))
        add(m, floats(d));
      add(m, floats(d));
      tasks_ = row(m, 1);
    } else if (kind == "elementwise") {
      for (uint32_t i = 0; i < (isBinary() ? 3 : 2); ++i)
        add(m, floats(get("d")));
      tasks_ = row(m, 1);
    } else {
      return false;
    }
    needs.bindings = std::move(bindings_);
    needs.tasks = tasks_;
    return true;
  }

private:
  /// An integer constant; 0 where it isn't given. A negative one is beyond any size.
  Checked get(std::string_view name) const {
    for (const fbs::Constant *c : *kernel_.constants())
      if (c->name()->string_view() == name)
        return Checked(c->value() < 0 ? ~uint64_t(0) : static_cast<uint64_t>(c->value()));
    return Checked(0);
  }
  bool has(std::string_view name) const { return get(name).get() != uint64_t(0); }
  uint64_t atLeastOne(std::string_view name) const {
    return std::max<uint64_t>(1, *get(name).get());
  }

  static Checked floats(Checked count) { return count * 4; }
  /// An int8 activation row of \p k values, see LLMRT_Q8_ROW_BYTES.
  Checked int8Row(Checked k) const {
    uint64_t group = atLeastOne("group");
    return k.roundUp(group) + k.divideUp(group) * 8;
  }
  /// A weight of that many rows in the format that the constants say.
  Checked packed(Checked rows, Checked columns) const {
    auto type = [&](std::string_view name) {
      return static_cast<fbs::ElementType>(std::min<uint64_t>(255, *get(name).get()));
    };
    WeightFormat f;
    f.element = type("w_element");
    f.packing = static_cast<fbs::Packing>(std::min<uint64_t>(255, *get("w_packing").get()));
    f.group = static_cast<uint32_t>(std::min<uint64_t>(~0u, *get("w_group").get()));
    f.scale = type("w_scale");
    f.hasMin = has("w_has_min");
    f.min = type("w_min");
    auto bytes =
        rows.get() && columns.get() ? packedBytes(f, *rows.get(), *columns.get()) : std::nullopt;
    return Checked(bytes.value_or(~uint64_t(0)));
  }
  bool isBinary() const {
    for (const fbs::Constant *c : *kernel_.constants())
      if (c->name()->string_view() == "op") {
        std::string_view op = c->text()->string_view();
        return op == "add" || op == "mul" || (op.size() > 4 && op.substr(op.size() - 4) == "_mul");
      }
    return false;
  }

  void gemm(Per m) {
    // With GLU, gate and up are tiled apart and their tiles alternate.
    Checked n = get("n"), outputs = has("glu") ? Checked(n.get().value_or(0) / 2) : n;
    Checked tiles = outputs.divideUp(kTileRows) * (has("glu") ? 2 : 1);
    add(m, has("x_int8") ? int8Row(get("k")) : floats(get("k")));
    add(Per::Nothing, packed(tiles * kTileRows, get("k")));
    if (has("bias"))
      add(Per::Nothing, floats(n));
    if (has("residual"))
      add(m, floats(outputs));
    add(m, floats(outputs));
    tasks_ = row(Per::Nothing, amount(tiles.divideUp(atLeastOne("task_tiles"))));
  }

  void groupedGemm(Per m) {
    Checked n = get("n"), outputs = has("glu") ? Checked(n.get().value_or(0) / 2) : n;
    Checked tiles = outputs.divideUp(kTileRows) * (has("glu") ? 2 : 1);
    Checked slots = get("slots"), rows = tiles * kTileRows * get("groups");
    Checked stride = get("x_stride");
    if (!has("x_stride"))
      add(m, has("x_int8") ? int8Row(get("k")) : floats(get("k")));
    else
      add(m, (has("x_int8") ? int8Row(get("k")) : floats(stride)) * slots);
    add(Per::Nothing, packed(rows, get("k")));
    if (has("chosen"))
      add(m, floats(slots));
    if (has("bias"))
      add(Per::Nothing, floats(rows));
    add(m, floats(outputs * slots));
    Checked tasks = tiles.divideUp(atLeastOne("task_tiles"));
    tasks_ = row(Per::Nothing, amount(has("chosen") ? tasks : tasks * get("groups")));
  }

  void ropeAppend() {
    Checked q = get("heads") * get("head_size"), k = get("kv_heads") * get("head_size"),
            v = get("kv_heads") * get("value_size");
    if (has("split")) {
      for (Checked part : {q, k, v})
        add(Per::Token, floats(part));
    } else {
      add(Per::Token, floats(q + k + v));
    }
    if (has("rotary"))
      add(Per::Token, floats(get("rotary")));
    if (has("q_norm"))
      for (int i = 0; i < 2; ++i)
        add(Per::Nothing, floats(get("head_size")));
    add(Per::Token, floats(q));
    tasks_ = row(Per::Token, 1);
  }

  static fbs::Affine row(Per per, int64_t count) {
    return fbs::Affine(per == Per::Nothing ? count : 0, per == Per::Token ? count : 0, 0,
                       per == Per::LogitRow ? count : 0, 0);
  }
  void add(Per per, Checked bytes) { bindings_.push_back(row(per, amount(bytes))); }

  const fbs::Plan &plan_;
  const fbs::Kernel &kernel_;
  std::vector<fbs::Affine> bindings_;
  fbs::Affine tasks_;
};

/// The memory that a binding gives.
fbs::Affine provided(const fbs::Plan &plan, const fbs::Binding &b) {
  switch (b.kind()) {
  case fbs::BindingKind::Weight:
    return fbs::Affine(static_cast<int64_t>(plan.weights()->Get(b.index())->size()), 0, 0, 0, 0);
  case fbs::BindingKind::Buffer:
    return *plan.buffers()->Get(b.index())->size();
  case fbs::BindingKind::Output:
    break;
  }
  return *plan.outputs()->Get(b.index())->size();
}

std::string describe(const fbs::Affine &a) {
  std::string s;
  const std::pair<const char *, int64_t> terms[] = {{"", a.constant()},
                                                    {" a token", a.per_token()},
                                                    {" a sequence", a.per_sequence()},
                                                    {" a row", a.per_row()},
                                                    {" a tile", a.per_tile()}};
  for (auto [per, value] : terms)
    if (value != 0)
      s += (s.empty() ? "" : " + ") + std::to_string(value) + per;
  return s.empty() ? "0" : s;
}

} // namespace

Status kernelNeeds(const fbs::Plan &plan, const fbs::Command &command) {
  const fbs::Kernel &kernel = *plan.kernels()->Get(command.kernel());
  Needs needs;
  if (!Contract(plan, kernel).describe(needs))
    return Status::ok();
  std::string who = "kernel '" + kernel.symbol()->str() + "' (" + kernel.kind()->str() + ") ";
  if (command.bindings()->size() != needs.bindings.size())
    return invalidFile(who + "takes " + num(needs.bindings.size()) +
                       " bindings for its constants, not " + num(command.bindings()->size()));
  for (uint32_t i = 0; i < needs.bindings.size(); ++i) {
    fbs::Affine given = provided(plan, *command.bindings()->Get(i));
    if (!fits(needs.bindings[i], given, plan.limits()->max_tokens()))
      return invalidFile(who + "touches " + describe(needs.bindings[i]) + " bytes of '" +
                         kernel.signature()->Get(i)->str() + "', which has " + describe(given));
  }
  const fbs::Affine &tasks = *command.tasks();
  if (tasks.constant() != needs.tasks.constant() || tasks.per_token() != needs.tasks.per_token() ||
      tasks.per_sequence() != 0 || tasks.per_row() != needs.tasks.per_row() ||
      tasks.per_tile() != needs.tasks.per_tile())
    return invalidFile(who + "has tasks " + describe(needs.tasks) + ", not " + describe(tasks));
  return Status::ok();
}

} // namespace llmrt::verify
