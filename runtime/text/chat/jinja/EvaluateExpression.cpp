#include "runtime/text/chat/jinja/Attributes.h"
#include "runtime/text/chat/jinja/Compare.h"
#include "runtime/text/chat/jinja/Evaluator.h"
#include "runtime/text/chat/jinja/Operators.h"
#include "runtime/text/chat/jinja/ValueText.h"

namespace llmrt::jinja {

Value Evaluator::evaluate(const Expr &expr) {
  session.step();
  if (expr.kind == ExprKind::Constant)
    return static_cast<const ConstantExpr &>(expr).value;
  if (expr.kind == ExprKind::Name)
    return evaluateName(static_cast<const NameExpr &>(expr));
  Session::Depth depth(session);
  return evaluateComposite(expr);
}

bool Evaluator::isTrueExpr(const Expr &expr) { return isTrue(session, evaluate(expr)); }

Value Evaluator::evaluateComposite(const Expr &expr) {
  switch (expr.kind) {
  case ExprKind::Constant:
  case ExprKind::Name:
    break;
  case ExprKind::Sequence:
    return evaluateSequence(static_cast<const SequenceExpr &>(expr));
  case ExprKind::Mapping:
    return evaluateMapping(static_cast<const MappingExpr &>(expr));
  case ExprKind::Attribute: {
    const auto &node = static_cast<const AttributeExpr &>(expr);
    Value object = evaluate(*node.object);
    session.line = node.line;
    return attributeOf(session, object, node.name, node.key);
  }
  case ExprKind::Item: {
    const auto &node = static_cast<const ItemExpr &>(expr);
    Value object = evaluate(*node.object);
    Value key = evaluate(*node.key);
    session.line = node.line;
    return itemOf(session, object, key);
  }
  case ExprKind::Slice:
    return evaluateSlice(static_cast<const SliceExpr &>(expr));
  case ExprKind::Call:
    return evaluateCall(static_cast<const CallExpr &>(expr));
  case ExprKind::Filter:
    return evaluateFilter(static_cast<const FilterExpr &>(expr), nullptr);
  case ExprKind::Test:
    return evaluateTest(static_cast<const TestExpr &>(expr));
  case ExprKind::Unary: {
    const auto &node = static_cast<const UnaryExpr &>(expr);
    Value operand = evaluate(*node.operand);
    session.line = node.line;
    return applySign(session, node.negate, operand);
  }
  case ExprKind::Binary: {
    const auto &node = static_cast<const BinaryExpr &>(expr);
    Value left = evaluate(*node.left);
    Value right = evaluate(*node.right);
    session.line = node.line;
    return applyBinary(session, node.op, left, right);
  }
  case ExprKind::Concat:
    return evaluateConcat(static_cast<const ConcatExpr &>(expr));
  case ExprKind::Compare:
    return evaluateCompare(static_cast<const CompareExpr &>(expr));
  case ExprKind::And: {
    const auto &node = static_cast<const LogicExpr &>(expr);
    Value left = evaluate(*node.left);
    return isTrue(session, left) ? evaluate(*node.right) : left;
  }
  case ExprKind::Or: {
    const auto &node = static_cast<const LogicExpr &>(expr);
    Value left = evaluate(*node.left);
    return isTrue(session, left) ? left : evaluate(*node.right);
  }
  case ExprKind::Not:
    return Value::boolean(!isTrueExpr(*static_cast<const NotExpr &>(expr).operand));
  case ExprKind::Conditional:
    return evaluateConditional(static_cast<const ConditionalExpr &>(expr));
  }
  return Value();
}

Value Evaluator::evaluateName(const NameExpr &expr) {
  if (const Value *local = scope_->find(session, expr.name))
    return *local;
  if (const std::optional<Value> &given = context_[expr.name])
    return *given;
  return session.undefinedVariable(program_.names[expr.name]);
}

Value Evaluator::evaluateSequence(const SequenceExpr &expr) {
  std::vector<Value> items;
  items.reserve(expr.items.size());
  for (const Expr *item : expr.items)
    items.push_back(evaluate(*item));
  return session.makeList(std::move(items), expr.tuple ? Kind::Tuple : Kind::List);
}

Value Evaluator::evaluateMapping(const MappingExpr &expr) {
  Dict *dict = session.make<Dict>();
  for (const auto &[key, value] : expr.items) {
    Value k = evaluate(*key);
    Value v = evaluate(*value);
    session.line = expr.line;
    dict->set(session, k, std::move(v));
  }
  return Value::object(dict);
}

Value Evaluator::evaluateSlice(const SliceExpr &expr) {
  Value object = evaluate(*expr.object);
  auto part = [&](const Expr *e) { return e ? evaluate(*e) : Value::none(); };
  Value start = part(expr.start), stop = part(expr.stop), step = part(expr.step);
  session.line = expr.line;
  return sliceOf(session, object, start, stop, step);
}

Value Evaluator::evaluateConcat(const ConcatExpr &expr) {
  TextBuilder out(session);
  for (const Expr *part : expr.parts)
    appendStr(out, session, evaluate(*part));
  return out.value();
}

Value Evaluator::evaluateCompare(const CompareExpr &expr) {
  Value left = evaluate(*expr.first);
  for (const auto &[op, operand] : expr.rest) {
    Value right = evaluate(*operand);
    session.line = expr.line;
    if (!applyCompare(session, op, left, right))
      return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Evaluator::evaluateConditional(const ConditionalExpr &expr) {
  if (isTrueExpr(*expr.condition))
    return evaluate(*expr.then);
  if (expr.otherwise)
    return evaluate(*expr.otherwise);
  return session.undefinedHint("the inline 'if' on line " + std::to_string(expr.line) +
                               " was false and has no 'else'");
}

} // namespace llmrt::jinja
