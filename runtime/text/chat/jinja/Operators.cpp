#include "runtime/text/chat/jinja/Operators.h"

#include "runtime/text/chat/jinja/Compare.h"
#include "runtime/text/chat/jinja/PrintfFormat.h"
#include "runtime/text/chat/jinja/ValueText.h"

#include <cmath>

namespace llmrt::jinja {

static const char *symbolOf(Operator op) {
  static constexpr const char *symbols[] = {
      "+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};
  return symbols[static_cast<size_t>(op)];
}

Int floorDivide(Int a, Int b) {
  if (b == -1)
    return -a; // a is never the least Int: arithmetic would have failed before
  Int q = a / b;
  return a % b != 0 && (a % b < 0) != (b < 0) ? q - 1 : q;
}

static double floatModulo(double a, double b) {
  double m = std::fmod(a, b);
  if (m != 0 && (m < 0) != (b < 0))
    m += b;
  else if (m == 0)
    m = std::copysign(0.0, b);
  return m;
}

static Value floatOperation(Session &session, Operator op, double a, double b) {
  if (b == 0 && (op == Operator::Divide || op == Operator::FloorDivide || op == Operator::Modulo))
    session.fail("division by zero");
  switch (op) {
  case Operator::Add:
    return Value::real(a + b);
  case Operator::Subtract:
    return Value::real(a - b);
  case Operator::Multiply:
    return Value::real(a * b);
  case Operator::Divide:
    return Value::real(a / b);
  case Operator::FloorDivide: {
    // As CPython: from the exact remainder, so that the quotient is a whole number.
    double quotient = (a - floatModulo(a, b)) / b;
    double floored = std::floor(quotient);
    if (quotient - floored > 0.5)
      floored += 1;
    return Value::real(quotient == 0 ? std::copysign(0.0, a / b) : floored);
  }
  case Operator::Modulo:
    return Value::real(floatModulo(a, b));
  default: {
    if (a == 0 && b < 0)
      session.fail("0 can't be raised to a negative power");
    double result = std::pow(a, b);
    if (std::isnan(result) && !std::isnan(a) && !std::isnan(b))
      session.fail("a root of a negative number is no real number");
    if (std::isinf(result) && !std::isinf(a) && !std::isinf(b))
      session.fail("the result of '**' is too large");
    return Value::real(result);
  }
  }
}

static Value integerPower(Session &session, Int base, Int exponent) {
  if (exponent < 0)
    return floatOperation(session, Operator::Power, static_cast<double>(base),
                          static_cast<double>(exponent));
  Int result = 1;
  bool overflow = false;
  while (exponent > 0 && !overflow) {
    if (exponent & 1)
      overflow |= __builtin_mul_overflow(result, base, &result);
    exponent >>= 1;
    if (exponent > 0)
      overflow |= __builtin_mul_overflow(base, base, &base);
  }
  if (overflow)
    session.fail("the result of '**' is too large");
  return Value::integer(result);
}

static Value integerOperation(Session &session, Operator op, Int a, Int b) {
  Int result = 0;
  bool overflow = false;
  switch (op) {
  case Operator::Add:
    overflow = __builtin_add_overflow(a, b, &result);
    break;
  case Operator::Subtract:
    overflow = __builtin_sub_overflow(a, b, &result);
    break;
  case Operator::Multiply:
    overflow = __builtin_mul_overflow(a, b, &result);
    break;
  case Operator::Divide:
    return floatOperation(session, op, static_cast<double>(a), static_cast<double>(b));
  case Operator::FloorDivide:
  case Operator::Modulo:
    if (b == 0)
      session.fail("division by zero");
    result = op == Operator::Modulo ? floorModulo(a, b) : floorDivide(a, b);
    break;
  default:
    return integerPower(session, a, b);
  }
  constexpr Int least = Int(1) << 127;
  if (overflow || result == least)
    session.fail(std::string("the result of '") + symbolOf(op) + "' is too large");
  return Value::integer(result);
}

static Value addStrings(Session &session, const Value &left, const Value &right) {
  const Str &a = left.str(), &b = right.str();
  TextBuilder out(session);
  if (a.markup == b.markup)
    return out.append(a.text).append(b.text).value(a.markup);
  // One side is HTML: the other one is made HTML too.
  out.append(a.markup ? a.text : escapeHtml(session, a.text));
  out.append(b.markup ? b.text : escapeHtml(session, b.text));
  return out.value(true);
}

static Value repeatSequence(Session &session, const Value &sequence, Int count) {
  if (sequence.isString()) {
    TextBuilder out(session);
    return out.repeat(sequence.text(), count).value(sequence.str().markup);
  }
  const auto &items = sequence.as<List>().items;
  std::vector<Value> result;
  if (!items.empty())
    for (Int i = 0; i < count; ++i) {
      session.step(items.size());
      session.checkRoom((result.size() + items.size()) * sizeof(Value));
      result.insert(result.end(), items.begin(), items.end());
    }
  return session.makeList(std::move(result), sequence.kind());
}

Value applyBinary(Session &session, Operator op, const Value &left, const Value &right) {
  if (left.isNumber() && right.isNumber()) {
    if (left.isIntegral() && right.isIntegral())
      return integerOperation(session, op, left.asInt(), right.asInt());
    return floatOperation(session, op, left.asDouble(), right.asDouble());
  }
  auto isText = [](const Value &v) {
    return v.isString() || (v.is(Kind::Dict) && v.as<Dict>().text);
  };
  if (op == Operator::Modulo && left.isString())
    return formatPrintf(session, left, right);
  if (left.isUndefined())
    session.failUndefined(left);
  if (right.isUndefined())
    session.failUndefined(right);
  if (op == Operator::Add) {
    if (isText(left) && isText(right) && (left.isString() || right.isString()))
      return addStrings(session, toStr(session, left), toStr(session, right));
    if (left.isSequence() && left.kind() == right.kind()) {
      std::vector<Value> items = left.as<List>().items;
      const auto &more = right.as<List>().items;
      session.step(items.size() + more.size());
      session.checkRoom((items.size() + more.size()) * sizeof(Value));
      items.insert(items.end(), more.begin(), more.end());
      return session.makeList(std::move(items), left.kind());
    }
  }
  if (op == Operator::Multiply) {
    if ((left.isString() || left.isSequence()) && right.isIntegral())
      return repeatSequence(session, left, right.asInt());
    if ((right.isString() || right.isSequence()) && left.isIntegral())
      return repeatSequence(session, right, left.asInt());
  }
  session.fail(std::string("'") + symbolOf(op) + "' can't be used between '" + typeName(left) +
               "' and '" + typeName(right) + "'");
}

bool applyCompare(Session &session, Operator op, const Value &left, const Value &right) {
  switch (op) {
  case Operator::Equal:
    return equals(session, left, right);
  case Operator::NotEqual:
    return !equals(session, left, right);
  case Operator::Less:
    return lessThan(session, left, right);
  case Operator::Greater:
    return lessThan(session, right, left, ">");
  case Operator::LessEqual:
  case Operator::GreaterEqual: {
    const char *symbol = symbolOf(op);
    const Value &small = op == Operator::LessEqual ? left : right;
    const Value &large = op == Operator::LessEqual ? right : left;
    // Not the negation of the opposite: a NaN is neither.
    return lessThan(session, small, large, symbol) || equals(session, small, large);
  }
  case Operator::In:
    return contains(session, right, left);
  default:
    return !contains(session, right, left);
  }
}

Value applySign(Session &session, bool negate, const Value &operand) {
  if (operand.isUndefined())
    session.failUndefined(operand);
  if (!operand.isNumber())
    session.fail(std::string("'") + (negate ? "-" : "+") + "' needs a number, not '" +
                 typeName(operand) + "'");
  if (operand.is(Kind::Float))
    return Value::real(negate ? -operand.asDouble() : operand.asDouble());
  return Value::integer(negate ? -operand.asInt() : operand.asInt());
}

} // namespace llmrt::jinja
