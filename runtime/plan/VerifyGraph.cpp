// The part of the verifier that looks at the entry `main`.
#include "runtime/device/cpu/GraphAbi.h"
#include "runtime/plan/VerifyParts.h"

namespace llmrt::verify {

static Status values(const flatbuffers::Vector<flatbuffers::Offset<fbs::ValueType>> *list,
                     const char *name) {
  if (!list)
    return invalidFile(std::string(name) + " is missing");
  UniqueNames names;
  for (uint32_t i = 0; i < list->size(); ++i) {
    const fbs::ValueType &v = *list->Get(i);
    auto fail = [&](const std::string &what) { return invalidFile(at(name, i, v.name()) + what); };
    if (!isName(v.name()))
      return fail("has no printable name");
    if (!names.add(v.name()))
      return fail("the name is used twice");
    if (v.kind() > fbs::ValueKind::Optional)
      return fail("unknown kind " + num(static_cast<uint64_t>(v.kind())));
    if (v.type() < 1 || v.type() > LLMRT_TYPE_I2)
      return fail("unknown element type " + std::to_string(v.type()));
    if (!v.dims() || v.dims()->size() > LLMRT_GRAPH_MAX_RANK)
      return fail("has no dimensions, or more than " + num(LLMRT_GRAPH_MAX_RANK));
    for (const fbs::Dimension *d : *v.dims())
      if (d->size() < -1 || !isText(d->symbol(), kMaxNameBytes))
        return fail("a dimension is negative, or its symbol isn't text");
  }
  return Status::ok();
}

Status graph(const fbs::Plan &plan) {
  const fbs::Main &m = *plan.main();
  if (!isIdentifier(m.symbol()))
    return invalidFile("main: the symbol isn't an identifier");
  LLMRT_RETURN_IF_ERROR(values(m.inputs(), "main.inputs"));
  LLMRT_RETURN_IF_ERROR(values(m.outputs(), "main.outputs"));
  if (!m.nodes())
    return invalidFile("main: the list of nodes is missing");
  for (uint32_t i = 0; i < m.nodes()->size(); ++i)
    if (!isText(m.nodes()->Get(i), kMaxNameBytes))
      return invalidFile(at("main.nodes", i) + "isn't text");
  if (plan.commands()->size() || plan.buffers()->size() || plan.arena_slots()->size() ||
      plan.outputs()->size() || (plan.cuda_kernels() && plan.cuda_kernels()->size()) ||
      (plan.cuda_sampling() && plan.cuda_sampling()->size()))
    return invalidFile("main: a plan has commands or this entry, not both");
  // Whoever loads the code looks the entry up by its kernel, which the code must provide.
  for (const fbs::Kernel *k : *plan.kernels())
    if (k->symbol()->string_view() == m.symbol()->string_view())
      return Status::ok();
  return invalidFile("main: no kernel '" + m.symbol()->str() + "'");
}

} // namespace llmrt::verify
