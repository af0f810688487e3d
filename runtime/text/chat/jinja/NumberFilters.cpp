//===- NumberFilters.cpp - filters that make numbers, and default values ---------------===//
#include "runtime/text/chat/jinja/Attributes.h"
#include "runtime/text/chat/jinja/Compare.h"
#include "runtime/text/chat/jinja/Evaluator.h"
#include "runtime/text/chat/jinja/Filters.h"
#include "runtime/text/chat/jinja/Iterate.h"
#include "runtime/text/chat/jinja/Methods.h"
#include "runtime/text/chat/jinja/NumberFormat.h"
#include "runtime/text/chat/jinja/Operators.h"
#include "runtime/text/chat/jinja/ValueText.h"

#include <cmath>

namespace llmrt::jinja {

namespace {

const Value &needNumber(Evaluator &ev, const Value &input, const Args &args) {
  if (input.isUndefined())
    ev.session.failUndefined(input);
  if (!input.isNumber())
    ev.session.fail(std::string(args.function) + "() needs a number, not a " + typeName(input));
  return input;
}

Value absolute(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {});
  if (needNumber(ev, input, args).is(Kind::Float))
    return Value::real(std::fabs(input.asDouble()));
  return Value::integer(input.asInt() < 0 ? -input.asInt() : input.asInt());
}

Value fallback(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {"default_value", "boolean"});
  if (input.isUndefined() || (args.flag(ev.session, 1, false) && !isTrue(ev.session, input)))
    return args.given(0) ? args.at(0) : ev.session.makeString("");
  return input;
}

std::optional<double> toDouble(Evaluator &ev, const Value &v) {
  if (v.isNumber())
    return v.asDouble();
  if (v.isUndefined())
    ev.session.failUndefined(v);
  return v.isString() ? parseFloat(v.text()) : std::nullopt;
}

Value toInt(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {"default", "base"});
  const Value byDefault = args.given(0) ? args.at(0) : Value::integer(0);
  if (input.isIntegral())
    return Value::integer(input.asInt());
  if (input.isString()) {
    const Int base = args.integer(ev.session, 1, Int(10));
    bool overflow = false;
    if (base == 0 || (base >= 2 && base <= 36))
      if (std::optional<Int> i = parseInt(input.text(), static_cast<int>(base), overflow)) {
        if (overflow)
          ev.session.fail("the number is too large");
        return Value::integer(*i);
      }
  }
  std::optional<double> d = toDouble(ev, input);
  if (!d || std::isnan(*d) || std::isinf(*d))
    return byDefault;
  if (std::fabs(*d) >= 0x1p126)
    ev.session.fail("the number is too large");
  return Value::integer(static_cast<Int>(*d));
}

Value toFloat(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {"default"});
  if (std::optional<double> d = toDouble(ev, input))
    return Value::real(*d);
  return args.given(0) ? args.at(0) : Value::real(0);
}

/// round(i, -digits) of a whole number: to the even one of two that are as near.
Value roundInteger(Evaluator &ev, Int i, Int digits) {
  if (digits >= 0)
    return Value::integer(i);
  if (digits < -37)
    return Value::integer(0);
  Int unit =
      applyBinary(ev.session, Operator::Power, Value::integer(10), Value::integer(-digits)).asInt();
  Int down = floorDivide(i, unit), rest = i - down * unit;
  if (rest * 2 > unit || (rest * 2 == unit && (down & 1)))
    ++down;
  return applyBinary(ev.session, Operator::Multiply, Value::integer(down), Value::integer(unit));
}

Value roundFloat(Evaluator &ev, double d, Int digits) {
  if (std::isnan(d) || std::isinf(d) || d == 0 || digits > 320)
    return Value::real(d);
  if (digits < -310)
    return Value::real(std::copysign(0.0, d));
  if (digits >= 0) // from the exact decimal digits, as CPython
    return Value::real(*parseFloat(formatDouble(ev.session, d, 'f', digits)));
  double unit = std::pow(10.0, static_cast<double>(-digits));
  double scaled = d / unit;
  return Value::real(std::nearbyint(scaled) * unit);
}

Value round(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {"precision", "method"});
  const std::string method = args.given(1) ? args.text(ev.session, 1) : "common";
  if (method != "common" && method != "ceil" && method != "floor")
    ev.session.fail("the method of round() must be common, ceil or floor");
  needNumber(ev, input, args);
  const Int digits = args.integer(ev.session, 0, Int(0));
  if (method == "common")
    return input.isIntegral() ? roundInteger(ev, input.asInt(), digits)
                              : roundFloat(ev, input.asDouble(), digits);
  Value unit = applyBinary(ev.session, Operator::Power, Value::integer(10), Value::integer(digits));
  Value scaled = applyBinary(ev.session, Operator::Multiply, input, unit);
  if (scaled.is(Kind::Float)) {
    double d = method == "ceil" ? std::ceil(scaled.asDouble()) : std::floor(scaled.asDouble());
    if (!(std::fabs(d) < 0x1p126))
      ev.session.fail("the number is too large");
    scaled = Value::integer(static_cast<Int>(d));
  }
  return applyBinary(ev.session, Operator::Divide, scaled, unit);
}

Value fileSize(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {"binary"});
  std::optional<double> bytes = toDouble(ev, input);
  if (!bytes)
    ev.session.fail("filesizeformat() needs a number");
  const bool binary = args.flag(ev.session, 0, false);
  const double base = binary ? 1024 : 1000;
  if (*bytes == 1)
    return ev.session.makeString("1 Byte");
  if (*bytes < base) {
    if (!(*bytes > -0x1p126))
      ev.session.fail("the number is too small");
    return ev.session.makeString(formatInt(static_cast<Int>(*bytes)) + " Bytes");
  }
  double unit = base;
  const char *letters = "kMGTPEZY";
  size_t i = 0;
  for (; i < 8; ++i) {
    unit *= base;
    if (*bytes < unit || i == 7)
      break;
  }
  std::string prefix(1, letters[i]);
  if (binary)
    prefix = (i == 0 ? "K" : prefix) + "i";
  return ev.session.makeString(formatDouble(ev.session, base * *bytes / unit, 'f', 1) + " " +
                               prefix + "B");
}

Value sum(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {"attribute", "start"});
  Value total = args.given(1) ? args.at(1) : Value::integer(0);
  if (total.isString())
    ev.session.fail("sum() can't add strings; use join()");
  NextFn next = iterate(ev.session, input);
  Value item;
  while (next(item)) {
    if (args.given(0))
      item = followPath(ev.session, item, args.at(0));
    total = applyBinary(ev.session, Operator::Add, total, item);
  }
  return total;
}

Value length(Evaluator &ev, const Value &input, Args &args) {
  args.bind(ev.session, {});
  Int n = lengthOf(ev.session, input);
  if (n < 0)
    ev.session.fail(std::string("a ") + typeName(input) + " has no length");
  return Value::integer(n);
}

constexpr FilterEntry table[] = {
    {"abs", absolute},
    {"count", length},
    {"d", fallback},
    {"default", fallback},
    {"filesizeformat", fileSize},
    {"float", toFloat},
    {"int", toInt},
    {"length", length},
    {"round", round},
    {"sum", sum},
};
static_assert(isSortedByName(table));

} // namespace

std::span<const FilterEntry> numberFilters() { return table; }

} // namespace llmrt::jinja
