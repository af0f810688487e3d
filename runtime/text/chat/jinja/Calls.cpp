//===- Calls.cpp - calls of functions, methods, macros, filters and tests ------------===//
#include "runtime/text/chat/jinja/Attributes.h"
#include "runtime/text/chat/jinja/Compare.h"
#include "runtime/text/chat/jinja/Evaluator.h"
#include "runtime/text/chat/jinja/Filters.h"
#include "runtime/text/chat/jinja/Iterate.h"
#include "runtime/text/chat/jinja/Loop.h"
#include "runtime/text/chat/jinja/Tests.h"
#include "runtime/text/chat/jinja/ValueText.h"

namespace llmrt::jinja {

void Evaluator::evaluateArguments(const CallArguments &in, Args &out) {
  out.positional.reserve(in.positional.size());
  for (const Expr *e : in.positional)
    out.positional.push_back(evaluate(*e));
  for (const auto &[name, e] : in.keyword)
    out.keyword.emplace_back(name, evaluate(*e));
  if (in.positionalRest) {
    NextFn next = iterate(session, evaluate(*in.positionalRest));
    Value item;
    while (next(item)) {
      session.step();
      session.push(out.positional, std::move(item));
    }
  }
  if (in.keywordRest) {
    Value rest = evaluate(*in.keywordRest);
    if (!rest.is(Kind::Dict))
      session.fail(std::string("the argument after '**' must be a mapping, not ") + typeName(rest));
    for (const auto &[key, value] : rest.as<Dict>().entries) {
      session.step(1 + out.keyword.size() / 8);
      if (!key.isString())
        session.fail("the keys after '**' must be strings");
      for (const auto &[name, other] : out.keyword)
        if (name == key.text())
          session.fail("the argument '" + name + "' is given twice");
      session.charge(sizeof(Value) + sizeof(std::string) + key.text().size());
      out.keyword.emplace_back(key.text(), value);
    }
  }
}

Value Evaluator::evaluateCall(const CallExpr &expr) {
  if (expr.callee->kind == ExprKind::Attribute) {
    // A method that is called on the spot needs no bound object.
    const auto &attribute = static_cast<const AttributeExpr &>(*expr.callee);
    Value object = evaluate(*attribute.object);
    session.line = expr.line;
    if (Function::Body method = findMethod(object, attribute.name)) {
      Args args(attribute.name);
      evaluateArguments(expr.arguments, args);
      session.line = expr.line;
      return method(*this, object, args);
    }
    Value callee = attributeOf(session, object, attribute.name, attribute.key);
    Args args(attribute.name);
    evaluateArguments(expr.arguments, args);
    session.line = expr.line;
    return call(callee, args);
  }
  Value callee = evaluate(*expr.callee);
  Args args("call");
  evaluateArguments(expr.arguments, args);
  session.line = expr.line;
  return call(callee, args);
}

Value Evaluator::call(const Value &callee, Args &args) {
  switch (callee.kind()) {
  case Kind::Undefined:
    session.failUndefined(callee);
  case Kind::Function: {
    const Function &function = callee.as<Function>();
    args.function = function.name;
    return function.body(*this, function.self, args);
  }
  case Kind::Macro:
    return callMacro(callee.as<Macro>(), args);
  case Kind::Loop:
    return callLoop(callee.as<Loop>(), args);
  case Kind::Joiner: {
    args.function = "joiner";
    args.bind(session, {});
    Joiner &joiner = callee.as<Joiner>();
    return std::exchange(joiner.used, true) ? joiner.separator : session.makeString("");
  }
  default:
    session.fail(std::string("a ") + typeName(callee) + " can't be called");
  }
}

Value Evaluator::callMacro(const Macro &macro, Args &args) {
  Session::Depth depth(session);
  const MacroDefinition &d = *macro.definition;
  const size_t count = d.parameters.size();
  auto takeKeyword = [&](std::string_view name) -> std::optional<Value> {
    for (size_t i = 0; i < args.keyword.size(); ++i)
      if (args.keyword[i].first == name) {
        Value v = std::move(args.keyword[i].second);
        args.keyword.erase(args.keyword.begin() + static_cast<long>(i));
        return v;
      }
    return std::nullopt;
  };

  Scope local(macro.closure, false);
  Scope *inner = d.hasClosures ? session.make<Scope>(macro.closure, true) : &local;
  std::vector<std::optional<Value>> given(count);
  bool declaresCaller = false;
  for (size_t i = 0; i < count; ++i) {
    declaresCaller |= d.parameters[i].second == "caller";
    if (i < args.positional.size())
      given[i] = args.positional[i];
    else
      given[i] = takeKeyword(d.parameters[i].second);
  }
  auto define = [&](const char *name, Value value) {
    inner->set(session, program_.nameIds.at(name), std::move(value));
  };
  if (d.usesCaller && !declaresCaller) {
    std::optional<Value> caller = takeKeyword("caller");
    define("caller", caller ? *caller : session.undefinedHint("no caller is defined"));
  }
  if (d.usesKwargs) {
    Dict *rest = session.make<Dict>();
    for (auto &[name, value] : args.keyword)
      rest->set(session, session.makeString(name), value);
    define("kwargs", Value::object(rest));
  } else if (!args.keyword.empty()) {
    session.fail("the macro '" + d.name + "' has no parameter '" + args.keyword[0].first + "'" +
                 (args.keyword[0].first == "caller" ? ": it never uses 'caller'" : ""));
  }
  if (d.usesVarargs) {
    std::vector<Value> rest;
    for (size_t i = count; i < args.positional.size(); ++i)
      rest.push_back(args.positional[i]);
    define("varargs", session.makeList(std::move(rest), Kind::Tuple));
  } else if (args.positional.size() > count) {
    session.fail("the macro '" + d.name + "' takes at most " + std::to_string(count) +
                 " arguments, " + std::to_string(args.positional.size()) + " are given");
  }

  return capture([&] {
    Restore<Scope *> scope(scope_, inner);
    const size_t firstDefault = count - d.defaults.size();
    for (size_t i = 0; i < count; ++i) {
      const auto &[id, name] = d.parameters[i];
      if (given[i])
        inner->set(session, id, *given[i]);
      else if (i >= firstDefault)
        inner->set(session, id, evaluate(*d.defaults[i - firstDefault]));
      else
        inner->set(session, id,
                   session.undefinedHint("the parameter '" + name + "' was not given"));
    }
    execute(d.body);
  });
}

Value Evaluator::callLoop(Loop &loop, Args &args) {
  Session::Depth depth(session);
  args.function = "loop";
  args.bind(session, {"iterable"}, 1);
  if (!loop.statement()->recursive)
    session.fail("only a loop marked 'recursive' can be called");
  if (!loop.running())
    session.fail("the loop that is called is over");
  return capture([&] {
    Restore<Scope *> scope(scope_, loop.outer());
    runLoop(*loop.statement(), args.at(0), loop.outer(), loop.depth0() + 1);
  });
}

Value Evaluator::evaluateFilter(const FilterExpr &expr, const Value *blockText) {
  Session::Depth depth(session);
  Value input;
  if (!expr.input)
    input = *blockText;
  else if (expr.input->kind == ExprKind::Filter) // may lead to a filter without input
    input = evaluateFilter(static_cast<const FilterExpr &>(*expr.input), blockText);
  else
    input = evaluate(*expr.input);
  Args args(expr.name);
  evaluateArguments(expr.arguments, args);
  session.line = expr.line;
  if (!expr.filter)
    session.fail("there is no filter '" + expr.name + "'");
  return expr.filter->body(*this, input, args);
}

Value Evaluator::evaluateTest(const TestExpr &expr) {
  Value input = evaluate(*expr.input);
  Args args(expr.name);
  evaluateArguments(expr.arguments, args);
  session.line = expr.line;
  if (!expr.test)
    session.fail("there is no test '" + expr.name + "'");
  return Value::boolean(expr.test->body(*this, input, args));
}

Value Evaluator::applyFilter(std::string_view name, const Value &input, Args &args) {
  const FilterEntry *filter = findFilter(name);
  if (!filter)
    session.fail("there is no filter '" + std::string(name.substr(0, 100)) + "'");
  return filter->body(*this, input, args);
}

bool Evaluator::applyTest(std::string_view name, const Value &input, Args &args) {
  const TestEntry *test = findTest(name);
  if (!test)
    session.fail("there is no test '" + std::string(name.substr(0, 100)) + "'");
  return test->body(*this, input, args);
}

} // namespace llmrt::jinja
