#include "compiler/passes/raise/SampleEvaluation.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::graph;
using namespace llmc::raise;

/// Elements that are computed for every value at once; larger arrays wait until they are asked for.
static constexpr int64_t kEagerElements = 4096;
/// Elements of an array at most, so that a hostile file cannot exhaust memory.
static constexpr int64_t kMaxElements = int64_t(1) << 22;
/// Tokens of the long sample: beyond the windows of the models that have one (4096, 8192).
static constexpr int64_t kLongContext = 20000;
static constexpr int64_t kShortestLongContext = 8200, kLongestContext = int64_t(1) << 18;
/// The same for a graph without a cache.
static constexpr int64_t kLongSequence = 1200;

/// The context of the long sample: what the model's configuration says, within reason.
static int64_t longContext(func::FuncOp func) {
  auto module = func->getParentOfType<ModuleOp>();
  auto model = module ? module->getAttrOfType<DictionaryAttr>("graph.model") : nullptr;
  auto context = model ? model.getAs<IntegerAttr>("max_context") : nullptr;
  if (!context)
    return kLongContext;
  return std::clamp<int64_t>(context.getInt(), kShortestLongContext, kLongestContext);
}

/// The shape of an input at a sample: its role says what its dynamic dimensions are.
static std::optional<Shape> inputShape(Type type, Binding binding, const Sample &s) {
  auto ranked = dyn_cast<RankedTensorType>(type);
  auto fill = [&](ArrayRef<int64_t> sizes) -> std::optional<Shape> {
    Shape result(sizes);
    if (!ranked)
      return result;
    if (ranked.getRank() != static_cast<int64_t>(sizes.size()))
      return std::nullopt;
    // What the file states as fixed stays as stated (an exporter may have frozen the batch).
    for (auto [i, dim] : llvm::enumerate(ranked.getShape()))
      if (!ShapedType::isDynamic(dim)) {
        // A size that was frozen by the exporter is not this sample's: nothing is known of such an
        // input.
        if (result[i] >= 0 && result[i] != dim)
          return std::nullopt;
        result[i] = dim;
      }
    return llvm::is_contained(result, -1) ? std::nullopt : std::optional(result);
  };
  switch (binding.role) {
  case Role::TokenIds:
  case Role::PositionIds:
    return fill({s.batch, s.fresh});
  case Role::AttentionMask:
    return fill({s.batch, s.total()});
  case Role::PastKey:
  case Role::PastValue:
    return fill({s.batch, -1, s.past, -1});
  default:
    if (ranked && ranked.hasStaticShape())
      return Shape(ranked.getShape());
    return std::nullopt;
  }
}

static HostArrayRef inputData(Type type, Binding binding, const Shape &shape, const Sample &s) {
  auto element = cast<TensorType>(type).getElementType();
  if (binding.role != Role::AttentionMask && binding.role != Role::PositionIds)
    return nullptr;
  auto array = std::make_shared<HostArray>(element, shape);
  for (int64_t i = 0; i < array->size(); ++i)
    array->set(i, binding.role == Role::AttentionMask ? int64_t(1) : s.past + i % s.fresh);
  return array;
}

SampleEvaluation::SampleEvaluation(Operation *op) {
  auto func = cast<func::FuncOp>(op);
  bool isOneSequence = false;
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    if (auto type = dyn_cast<RankedTensorType>(func.getArgumentTypes()[i]))
      isOneSequence |= bindName(argumentName(func, i)).role == Role::TokenIds &&
                       type.getRank() == 2 && type.getDimSize(0) == 1;
  bool hasPast = llvm::any_of(llvm::seq(func.getNumArguments()), [&](unsigned i) {
    return bindName(argumentName(func, i)).role == Role::PastKey;
  });
  if (hasPast)
    points = {{1, 0, 5}, {1, 7, 1}, {2, 3, 4}, {1, 0, 1}, {1, longContext(func) - 2, 2}};
  else // Every run sees whole sequences; a mask grows with the square of the longest.
    points = {{1, 0, 5}, {1, 0, 9}, {2, 0, 4}, {1, 0, 1}, {1, 0, kLongSequence}};
  for (Sample &point : points)
    point.batch = isOneSequence ? 1 : point.batch;
  tables.resize(points.size());
  if (func.isDeclaration())
    return;
  unsigned next = 0;
  for (Operation &inner : func.getBody().front())
    order[&inner] = next++;
  for (unsigned i = 0; i < points.size(); ++i)
    run(func, i);
}

void SampleEvaluation::run(func::FuncOp func, unsigned sample) {
  Table &table = tables[sample];
  for (BlockArgument argument : func.getArguments()) {
    Binding binding = bindName(argumentName(func, argument.getArgNumber()));
    if (!isa<TensorType>(argument.getType()))
      continue;
    Facts facts;
    facts.shape = inputShape(argument.getType(), binding, points[sample]);
    if (facts.shape)
      facts.data = inputData(argument.getType(), binding, *facts.shape, points[sample]);
    table[argument] = facts;
  }
  for (Operation &op : func.getBody().front())
    evaluate(op, table, kEagerElements);
}

void SampleEvaluation::evaluate(Operation &op, Table &table, int64_t limit) {
  if (op.getNumResults() == 0)
    return;
  SmallVector<Facts> operands;
  bool isKnown = true;
  for (Value operand : op.getOperands()) {
    operands.push_back(table.lookup(operand));
    isKnown &= operands.back().data != nullptr;
  }
  SmallVector<Facts> results(op.getNumResults());
  inferShapes(&op, operands, results);
  if (auto shape = dyn_cast<ShapeOp>(op); shape && operands[0].shape) {
    // Needs no elements of its operand.
    auto range = clampSlice(shape.getStart(), shape.getEnd().value_or(INT64_MAX), 1,
                            operands[0].shape->size());
    auto array = std::make_shared<HostArray>(cast<TensorType>(shape.getType()).getElementType(),
                                             Shape{range.count});
    for (int64_t i = 0; i < range.count; ++i)
      array->set(i, (*operands[0].shape)[range.start + i]);
    results[0].data = array;
  } else if (auto size = dyn_cast<SizeOp>(op); size && operands[0].shape) {
    if (auto count = countElements(*operands[0].shape)) {
      auto array =
          std::make_shared<HostArray>(cast<TensorType>(size.getType()).getElementType(), Shape{});
      array->set(0, *count);
      results[0].data = array;
    }
  } else if (auto weight = dyn_cast<WeightOp>(op)) {
    results[0].data = limit > kEagerElements ? readWeight(weight, limit) : nullptr;
  } else if (isKnown && llvm::all_of(results, [&](const Facts &f) {
               return f.shape && countElements(*f.shape, limit);
             })) {
    if (results.size() == 1)
      results[0].data = computeData(&op, operands, *results[0].shape);
    else
      computeAll(&op, operands, results);
  }
  for (auto [value, facts] : llvm::zip(op.getResults(), results))
    table[value] = facts;
}

void SampleEvaluation::extend(Operation *op, Operation *old) {
  order[op] = order.lookup(old);
  for (Table &table : tables)
    evaluate(*op, table, kEagerElements);
}

const Shape *SampleEvaluation::shape(Value value, unsigned sample) const {
  auto found = tables[sample].find(value);
  return found == tables[sample].end() || !found->second.shape ? nullptr : &*found->second.shape;
}

bool SampleEvaluation::hasShape(Value value) const {
  for (unsigned i = 0; i < points.size(); ++i)
    if (!shape(value, i))
      return false;
  return true;
}

/// Computes the part of the graph that a value needs, in the order of the function.
HostArrayRef SampleEvaluation::materialize(Value value, Table &table) {
  llvm::DenseSet<Operation *> seen;
  SmallVector<Operation *> slice, work;
  auto push = [&](Value operand) {
    if (table.lookup(operand).data)
      return;
    Operation *op = operand.getDefiningOp();
    if (op && seen.insert(op).second)
      work.push_back(op);
  };
  push(value);
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    slice.push_back(op);
    for (Value operand : op->getOperands())
      push(operand);
  }
  llvm::sort(slice, [&](Operation *a, Operation *b) { return order.lookup(a) < order.lookup(b); });
  for (Operation *op : slice) {
    // A slice that reaches something unknown cannot be computed; what was computed on the way is
    // kept.
    if (isa<WeightOp>(op) || op->getNumOperands() == 0 ||
        llvm::all_of(op->getOperands(),
                     [&](Value operand) { return table.lookup(operand).data != nullptr; }))
      evaluate(*op, table, kMaxElements);
    else if (!isa<ShapeOp, SizeOp>(op))
      return nullptr;
  }
  return table.lookup(value).data;
}

HostArrayRef SampleEvaluation::data(Value value, unsigned sample) {
  Table &table = tables[sample];
  auto found = table.find(value);
  if (found == table.end())
    return nullptr;
  if (found->second.data || !found->second.shape ||
      !countElements(*found->second.shape, kMaxElements))
    return found->second.data;
  return materialize(value, table);
}

HostArrayRef SampleEvaluation::constant(Value value) const {
  HostArrayRef first = tables[0].lookup(value).data;
  for (unsigned i = 1; first && i < points.size(); ++i) {
    HostArrayRef other = tables[i].lookup(value).data;
    if (!other || (other != first && !first->equals(*other)))
      return nullptr;
  }
  return first;
}
