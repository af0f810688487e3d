#include "runtime/device/cpu/GraphExecutor.h"

#include "runtime/device/cpu/GraphMemory.h"
#include "runtime/device/cpu/LoadModule.h"

#include <cmath>
#include <cstring>
#include <unordered_map>

namespace llmrt {

unsigned graphElementBytes(int32_t type) {
  switch (type) {
  case LLMRT_TYPE_F32:
  case LLMRT_TYPE_I32:
  case LLMRT_TYPE_U32:
    return 4;
  case LLMRT_TYPE_F64:
  case LLMRT_TYPE_I64:
  case LLMRT_TYPE_U64:
    return 8;
  case LLMRT_TYPE_F16:
  case LLMRT_TYPE_BF16:
  case LLMRT_TYPE_I16:
  case LLMRT_TYPE_U16:
    return 2;
  default:
    return type == LLMRT_TYPE_U8 || type == LLMRT_TYPE_I8 || type == LLMRT_TYPE_BOOL ||
                   (type >= LLMRT_TYPE_F8E4M3FN && type <= LLMRT_TYPE_I2)
               ? 1
               : 0;
  }
}

const char *graphTypeName(int32_t type) {
  static constexpr const char *names[] = {"undefined",
                                          "float32",
                                          "uint8",
                                          "int8",
                                          "uint16",
                                          "int16",
                                          "int32",
                                          "int64",
                                          "string",
                                          "bool",
                                          "float16",
                                          "float64",
                                          "uint32",
                                          "uint64",
                                          "complex64",
                                          "complex128",
                                          "bfloat16",
                                          "float8_e4m3fn",
                                          "float8_e4m3fnuz",
                                          "float8_e5m2",
                                          "float8_e5m2fnuz",
                                          "uint4",
                                          "int4",
                                          "float4_e2m1fn",
                                          "float8_e8m0fnu",
                                          "uint2",
                                          "int2"};
  return type >= 0 && type < static_cast<int32_t>(std::size(names)) ? names[type] : "unknown";
}

namespace {

double graphMath(int32_t function, double x, double y) {
  switch (function) {
  case LLMRT_MATH_EXP:
    return std::exp(x);
  case LLMRT_MATH_LOG:
    return std::log(x);
  case LLMRT_MATH_SIN:
    return std::sin(x);
  case LLMRT_MATH_COS:
    return std::cos(x);
  case LLMRT_MATH_TAN:
    return std::tan(x);
  case LLMRT_MATH_TANH:
    return std::tanh(x);
  case LLMRT_MATH_ERF:
    return std::erf(x);
  case LLMRT_MATH_ASIN:
    return std::asin(x);
  case LLMRT_MATH_ACOS:
    return std::acos(x);
  case LLMRT_MATH_ATAN:
    return std::atan(x);
  case LLMRT_MATH_SINH:
    return std::sinh(x);
  case LLMRT_MATH_COSH:
    return std::cosh(x);
  case LLMRT_MATH_ASINH:
    return std::asinh(x);
  case LLMRT_MATH_ACOSH:
    return std::acosh(x);
  case LLMRT_MATH_ATANH:
    return std::atanh(x);
  case LLMRT_MATH_LOG1P:
    return std::log1p(x);
  case LLMRT_MATH_POW:
    return std::pow(x, y);
  case LLMRT_MATH_FMOD:
    return std::fmod(x, y);
  default:
    return std::nan("");
  }
}

/// The value as the code sees it; its elements stay where they are.
struct Lent {
  LlmrtValue value{};
  std::vector<Lent> items;
  std::vector<LlmrtValue *> pointers;

  explicit Lent(const GraphValue &from) {
    value.references = 1;
    value.kind = from.kind;
    value.type = from.type;
    value.rank = static_cast<int32_t>(from.dims.size());
    value.count = 1;
    for (size_t i = 0; i < from.dims.size(); ++i) {
      value.dims[i] = from.dims[i];
      value.count *= from.dims[i];
    }
    value.data = const_cast<uint8_t *>(from.data.data());
    if (from.kind != LLMRT_SEQUENCE)
      return;
    items.reserve(from.items.size());
    for (const GraphValue &item : from.items)
      items.emplace_back(item);
    for (Lent &item : items)
      pointers.push_back(&item.value);
    value.count = static_cast<int64_t>(items.size());
    value.data = pointers.data();
  }
};

GraphValue taken(const LlmrtValue &value) {
  GraphValue result;
  result.kind = value.kind;
  result.type = value.type;
  result.dims.assign(value.dims, value.dims + value.rank);
  if (value.kind == LLMRT_SEQUENCE) {
    for (int64_t i = 0; i < value.count; ++i)
      result.items.push_back(taken(*static_cast<LlmrtValue **>(value.data)[i]));
  } else if (value.kind == LLMRT_TENSOR && value.count > 0) {
    auto *bytes = static_cast<const uint8_t *>(value.data);
    result.data.assign(bytes, bytes + value.count * graphElementBytes(value.type));
  }
  return result;
}

std::string shapeText(const std::vector<int64_t> &dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

std::string declaredShape(const fbs::ValueType &type) {
  if (!type.has_rank())
    return "[any]";
  std::string text = "[";
  for (uint32_t i = 0; i < type.dims()->size(); ++i) {
    const fbs::Dimension &d = *type.dims()->Get(i);
    text += i ? ", " : "";
    text += d.size() >= 0 ? std::to_string(d.size()) : d.symbol()->size() ? d.symbol()->str() : "?";
  }
  return text + "]";
}

} // namespace

/// A tensor of \p type with as many bytes as its shape takes; the message goes behind a name.
static Status checkTensor(const GraphValue &value, int32_t type) {
  if (value.kind != LLMRT_TENSOR || value.type != type)
    return invalidArgument(std::string("is ") + graphTypeName(value.type) + ", must be " +
                           graphTypeName(type));
  if (value.dims.size() > LLMRT_GRAPH_MAX_RANK)
    return invalidArgument("has " + std::to_string(value.dims.size()) + " dimensions; at most " +
                           std::to_string(LLMRT_GRAPH_MAX_RANK) + " are supported");
  int64_t count = 1;
  for (int64_t dim : value.dims)
    if (dim < 0 || __builtin_mul_overflow(count, dim, &count))
      return invalidArgument("has the impossible shape " + shapeText(value.dims));
  if (static_cast<uint64_t>(count) * graphElementBytes(value.type) != value.data.size())
    return invalidArgument("has " + std::to_string(value.data.size()) + " bytes for the shape " +
                           shapeText(value.dims));
  return Status::ok();
}

GraphExecutor::GraphExecutor(std::shared_ptr<const Plan> plan, CodeModule code, CpuLevel level,
                             LlmrtGraphMain main)
    : plan_(std::move(plan)), code_(std::move(code)), level_(level), main_(main) {
  for (size_t i = 0; i < plan_->head().weights()->size(); ++i)
    weights_.push_back(plan_->weightData(i));
}

Result<std::unique_ptr<GraphExecutor>> GraphExecutor::create(std::shared_ptr<const Plan> plan) {
  if (!plan->head().main())
    return invalidArgument(plan->name() + ": the plan is of a decoder, which takes text or token "
                                          "ids (-p, --prompt-ids), not tensors");
  LLMRT_ASSIGN_OR_RETURN(LoadedModule loaded, loadModule(*plan));
  LLMRT_ASSIGN_OR_RETURN(void *main, loaded.code.symbol(plan->head().main()->symbol()->c_str()));
  return std::unique_ptr<GraphExecutor>(new GraphExecutor(std::move(plan), std::move(loaded.code),
                                                          loaded.level,
                                                          reinterpret_cast<LlmrtGraphMain>(main)));
}

Status GraphExecutor::check(std::span<const NamedGraphValue> inputs,
                            std::vector<const GraphValue *> &ordered) const {
  const auto &types = *plan_->head().main()->inputs();
  auto known = [&] {
    std::string names;
    for (const fbs::ValueType *type : types)
      names += (names.empty() ? "" : ", ") + type->name()->str() + " " +
               graphTypeName(type->type()) + declaredShape(*type);
    return names.empty() ? std::string("it has none") : "its inputs: " + names;
  };
  std::unordered_map<std::string_view, const GraphValue *> given;
  for (const NamedGraphValue &input : inputs) {
    bool isKnown = false;
    for (const fbs::ValueType *type : types)
      isKnown |= type->name()->string_view() == input.name;
    if (!isKnown)
      return invalidArgument("no input '" + input.name + "'; " + known());
    if (!given.emplace(input.name, &input.value).second)
      return invalidArgument("input '" + input.name + "' is given twice");
  }
  std::unordered_map<std::string_view, std::pair<int64_t, std::string_view>> symbols;
  for (const fbs::ValueType *type : types) {
    auto found = given.find(type->name()->string_view());
    if (found == given.end())
      return invalidArgument("input '" + type->name()->str() + "' is missing; " + known());
    const GraphValue &value = *found->second;
    ordered.push_back(&value);
    auto fail = [&](const std::string &what) {
      return invalidArgument("input '" + type->name()->str() + "' " + what);
    };
    bool isOptional = type->kind() == fbs::ValueKind::Optional;
    bool isSequence = type->kind() == fbs::ValueKind::Sequence || type->of_sequence();
    if (isOptional && value.kind == LLMRT_NONE)
      continue;
    if (isSequence && value.kind != LLMRT_SEQUENCE)
      return fail("is not a sequence");
    for (const GraphValue &item : value.items)
      if (Status status = checkTensor(item, type->type()); !status)
        return fail(status.message());
    if (isSequence)
      continue;
    if (Status status = checkTensor(value, type->type()); !status)
      return fail(status.message());
    if (isOptional)
      continue;
    if (!type->has_rank())
      continue;
    if (value.dims.size() != type->dims()->size())
      return fail("has the shape " + shapeText(value.dims) + ", must be " + declaredShape(*type));
    for (uint32_t i = 0; i < value.dims.size(); ++i) {
      const fbs::Dimension &d = *type->dims()->Get(i);
      if (d.size() >= 0 && d.size() != value.dims[i])
        return fail("has the shape " + shapeText(value.dims) + ", must be " + declaredShape(*type));
      if (d.size() >= 0 || d.symbol()->size() == 0)
        continue;
      auto [entry, isNew] = symbols.try_emplace(d.symbol()->string_view(), value.dims[i],
                                                type->name()->string_view());
      if (!isNew && entry->second.first != value.dims[i])
        return fail("has the shape " + shapeText(value.dims) + ", where " + d.symbol()->str() +
                    " is " + std::to_string(value.dims[i]) + "; input '" +
                    std::string(entry->second.second) + "' has it as " +
                    std::to_string(entry->second.first));
    }
  }
  return Status::ok();
}

Status GraphExecutor::runError(const LlmrtGraph &graph) const {
  const auto &nodes = *plan_->head().main()->nodes();
  std::string where = plan_->name() + ": ";
  if (graph.node >= 0 && static_cast<uint32_t>(graph.node) < nodes.size())
    where += "node '" + nodes.Get(static_cast<uint32_t>(graph.node))->str() + "': ";
  std::string a = std::to_string(graph.detail[0]), b = std::to_string(graph.detail[1]);
  switch (graph.error) {
  case LLMRT_GRAPH_NO_MEMORY:
    return resourceExhausted(where + "no memory for " + a + " bytes");
  case LLMRT_GRAPH_TOO_LARGE:
    return resourceExhausted(where + "a tensor of too many elements (a dimension is " + a + ")");
  case LLMRT_GRAPH_RANK:
    return invalidArgument(where + "a tensor of rank " + a + ", expected " + b);
  case LLMRT_GRAPH_BROADCAST:
    return invalidArgument(where + "dimensions " + a + " and " + b + " don't broadcast");
  case LLMRT_GRAPH_INDEX:
    return invalidArgument(where + "index " + a + " is out of range for a dimension of " + b);
  case LLMRT_GRAPH_AXIS:
    return invalidArgument(where + "axis " + a + " is out of range for rank " + b);
  case LLMRT_GRAPH_SHAPE:
    return invalidArgument(where + "sizes " + a + " and " + b + " must agree");
  case LLMRT_GRAPH_ARGUMENT:
    return invalidArgument(where + "the value " + a + " is not allowed");
  case LLMRT_GRAPH_DIVIDE_BY_ZERO:
    return invalidArgument(where + "an integer is divided by zero");
  case LLMRT_GRAPH_EMPTY:
    return invalidArgument(where + "there is nothing in what it reads");
  case LLMRT_GRAPH_TRIP_COUNT:
    return invalidArgument(where + "the loop does not end");
  default:
    return internalError(where + "error " + std::to_string(graph.error));
  }
}

Result<std::vector<NamedGraphValue>> GraphExecutor::run(std::span<const NamedGraphValue> inputs) {
  std::vector<const GraphValue *> ordered;
  if (Status status = check(inputs, ordered); !status)
    return status.withContext(plan_->name());
  std::vector<Lent> lent;
  lent.reserve(ordered.size());
  for (const GraphValue *value : ordered)
    lent.emplace_back(*value);
  std::vector<LlmrtValue *> pointers;
  for (Lent &value : lent)
    pointers.push_back(&value.value);
  const auto &types = *plan_->head().main()->outputs();
  std::vector<LlmrtValue *> outputs(types.size(), nullptr);

  GraphMemory memory;
  memory.graph.math = graphMath;
  memory.graph.weights = weights_.data();
  if (main_(&memory.graph, pointers.data(), outputs.data()) != LLMRT_GRAPH_OK)
    return runError(memory.graph);
  std::vector<NamedGraphValue> results;
  for (uint32_t i = 0; i < types.size(); ++i)
    results.push_back({types.Get(i)->name()->str(), taken(*outputs[i])});
  return results;
}

} // namespace llmrt
