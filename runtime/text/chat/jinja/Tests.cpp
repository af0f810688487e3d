#include "runtime/text/chat/jinja/Tests.h"

#include "runtime/text/chat/jinja/Compare.h"
#include "runtime/text/chat/jinja/Evaluator.h"
#include "runtime/text/chat/jinja/Filters.h"
#include "runtime/text/chat/jinja/Iterate.h"
#include "runtime/text/chat/jinja/Methods.h"
#include "runtime/text/chat/jinja/Operators.h"
#include "runtime/text/chat/jinja/StringOps.h"
#include "runtime/text/chat/jinja/ValueText.h"

namespace llmrt::jinja {

namespace {

template <bool (*Is)(const Value &)> bool kindTest(Evaluator &ev, const Value &v, Args &args) {
  args.bind(ev.session, {});
  return Is(v);
}

bool isDefined(const Value &v) { return !v.isUndefined(); }
bool isUndefinedValue(const Value &v) { return v.isUndefined(); }
bool isNone(const Value &v) { return v.isNone(); }
bool isBoolean(const Value &v) { return v.is(Kind::Bool); }
bool isTrueValue(const Value &v) { return v.is(Kind::Bool) && v.asBool(); }
bool isFalseValue(const Value &v) { return v.is(Kind::Bool) && !v.asBool(); }
bool isInteger(const Value &v) { return v.is(Kind::Int); }
bool isFloat(const Value &v) { return v.is(Kind::Float); }
bool isNumberValue(const Value &v) { return v.isNumber(); }
bool isStringValue(const Value &v) { return v.isString(); }
bool isMapping(const Value &v) { return v.is(Kind::Dict); }
bool isEscaped(const Value &v) { return v.isString() && v.str().markup; }
bool isSequence(const Value &v) {
  return v.isString() || v.isSequence() || v.is(Kind::Dict) || v.is(Kind::Range) || v.isUndefined();
}
bool isCallable(const Value &v) {
  return v.is(Kind::Function) || v.is(Kind::Macro) || v.is(Kind::Loop) || v.is(Kind::Joiner) ||
         v.isUndefined();
}

template <bool Upper> bool caseTest(Evaluator &ev, const Value &v, Args &args) {
  args.bind(ev.session, {});
  std::string text = strOf(ev.session, v);
  ev.session.stepBytes(text.size() * 16);
  return hasCase(text, Upper);
}

/// v modulo a number equals \p rest.
bool remainderIs(Evaluator &ev, const Value &v, const Value &by, Int rest) {
  return equals(ev.session, applyBinary(ev.session, Operator::Modulo, v, by), Value::integer(rest));
}
bool odd(Evaluator &ev, const Value &v, Args &args) {
  args.bind(ev.session, {});
  return remainderIs(ev, v, Value::integer(2), 1);
}
bool even(Evaluator &ev, const Value &v, Args &args) {
  args.bind(ev.session, {});
  return remainderIs(ev, v, Value::integer(2), 0);
}
bool divisibleBy(Evaluator &ev, const Value &v, Args &args) {
  args.bind(ev.session, {"num"}, 1);
  return remainderIs(ev, v, args.at(0), 0);
}

template <Operator Op> bool comparison(Evaluator &ev, const Value &v, Args &args) {
  args.bind(ev.session, {"other"}, 1);
  return applyCompare(ev.session, Op, v, args.at(0));
}

bool sameAs(Evaluator &ev, const Value &v, Args &args) {
  args.bind(ev.session, {"other"}, 1);
  return v.identical(args.at(0));
}

bool filterExists(Evaluator &ev, const Value &v, Args &args) {
  args.bind(ev.session, {});
  return v.isString() && findFilter(v.text());
}
bool testExists(Evaluator &ev, const Value &v, Args &args) {
  args.bind(ev.session, {});
  return v.isString() && findTest(v.text());
}

constexpr TestEntry table[] = {
    {"!=", comparison<Operator::NotEqual>},
    {"<", comparison<Operator::Less>},
    {"<=", comparison<Operator::LessEqual>},
    {"==", comparison<Operator::Equal>},
    {">", comparison<Operator::Greater>},
    {">=", comparison<Operator::GreaterEqual>},
    {"boolean", kindTest<isBoolean>},
    {"callable", kindTest<isCallable>},
    {"defined", kindTest<isDefined>},
    {"divisibleby", divisibleBy},
    {"eq", comparison<Operator::Equal>},
    {"equalto", comparison<Operator::Equal>},
    {"escaped", kindTest<isEscaped>},
    {"even", even},
    {"false", kindTest<isFalseValue>},
    {"filter", filterExists},
    {"float", kindTest<isFloat>},
    {"ge", comparison<Operator::GreaterEqual>},
    {"greaterthan", comparison<Operator::Greater>},
    {"gt", comparison<Operator::Greater>},
    {"in", comparison<Operator::In>},
    {"integer", kindTest<isInteger>},
    {"iterable", kindTest<isIterable>},
    {"le", comparison<Operator::LessEqual>},
    {"lessthan", comparison<Operator::Less>},
    {"lower", caseTest<false>},
    {"lt", comparison<Operator::Less>},
    {"mapping", kindTest<isMapping>},
    {"ne", comparison<Operator::NotEqual>},
    {"none", kindTest<isNone>},
    {"number", kindTest<isNumberValue>},
    {"odd", odd},
    {"sameas", sameAs},
    {"sequence", kindTest<isSequence>},
    {"string", kindTest<isStringValue>},
    {"test", testExists},
    {"true", kindTest<isTrueValue>},
    {"undefined", kindTest<isUndefinedValue>},
    {"upper", caseTest<true>},
};
static_assert(isSortedByName(table));

} // namespace

const TestEntry *findTest(std::string_view name) { return findByName(table, name); }

} // namespace llmrt::jinja
