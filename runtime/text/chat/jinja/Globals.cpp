#include "runtime/text/chat/jinja/Globals.h"

#include "runtime/text/chat/jinja/Evaluator.h"
#include "runtime/text/chat/jinja/Iterate.h"
#include "runtime/text/chat/jinja/ValueText.h"

namespace llmrt::jinja {

namespace {

Value range(Evaluator &ev, const Value &, Args &args) {
  args.bind(ev.session, {"start", "stop", "step"}, 1);
  auto number = [&](size_t i, std::optional<Int> fallback) {
    Int v = args.given(i) ? args.integer(ev.session, i) : args.integer(ev.session, i, fallback);
    if (v > INT64_MAX || v < -INT64_MAX)
      ev.session.fail("the numbers of range() must fit in 64 bits");
    return v;
  };
  Int start = number(0, std::nullopt), stop = 0;
  if (args.given(1))
    stop = number(1, std::nullopt);
  else
    std::swap(start, stop);
  const Int step = number(2, Int(1));
  if (step == 0)
    ev.session.fail("the step of range() can't be 0");
  Range *r = ev.session.make<Range>(start, stop, step);
  if (r->size() > maxRange)
    ev.session.fail("range() is too long: " + formatInt(r->size()) + " numbers, at most " +
                    std::to_string(maxRange) + " are allowed");
  return Value::object(r);
}

/// dict(mapping or pairs, name=value, ...)
Dict *makeDict(Evaluator &ev, Args &args) {
  Dict *dict = ev.session.make<Dict>();
  if (args.positional.size() > 1)
    ev.session.fail(std::string(args.function) + "() takes at most one positional argument");
  if (!args.positional.empty()) {
    const Value &from = args.positional[0];
    if (from.is(Kind::Dict)) {
      for (const auto &[key, value] : from.as<Dict>().entries)
        dict->set(ev.session, key, value);
    } else {
      NextFn next = iterate(ev.session, from);
      Value item;
      while (next(item)) {
        std::vector<Value> pair = collect(ev.session, item);
        if (pair.size() != 2)
          ev.session.fail(std::string(args.function) + "() needs pairs of a key and a value");
        dict->set(ev.session, pair[0], pair[1]);
      }
    }
  }
  for (const auto &[name, value] : args.keyword)
    dict->set(ev.session, ev.session.makeString(name), value);
  return dict;
}

Value dict(Evaluator &ev, const Value &, Args &args) { return Value::object(makeDict(ev, args)); }

Value makeNamespace(Evaluator &ev, const Value &, Args &args) {
  return Value::object(ev.session.make<Namespace>(makeDict(ev, args)));
}

Value cycler(Evaluator &ev, const Value &, Args &args) {
  if (args.positional.empty() || !args.keyword.empty())
    ev.session.fail("cycler() needs values to cycle through");
  Cycler *c = ev.session.make<Cycler>();
  ev.session.charge(args.positional.size() * sizeof(Value));
  c->items = args.positional;
  return Value::object(c);
}

Value joiner(Evaluator &ev, const Value &, Args &args) {
  args.bind(ev.session, {"sep"});
  return Value::object(
      ev.session.make<Joiner>(args.given(0) ? args.at(0) : ev.session.makeString(", ")));
}

Value raiseException(Evaluator &ev, const Value &, Args &args) {
  args.bind(ev.session, {"message"}, 1);
  ev.session.fail(strOf(ev.session, args.at(0)));
}

Value strftimeNow(Evaluator &ev, const Value &, Args &args) {
  args.bind(ev.session, {"format"}, 1);
  const std::string &pattern = args.text(ev.session, 0);
  ev.session.stepBytes(pattern.size() * 64);
  return ev.session.makeString(ev.now.format(pattern));
}

} // namespace

void defineGlobals(Evaluator &evaluator) {
  static constexpr std::pair<const char *, Function::Body> functions[] = {
      {"range", range},
      {"dict", dict},
      {"cycler", cycler},
      {"joiner", joiner},
      {"namespace", makeNamespace},
      {"raise_exception", raiseException},
      {"strftime_now", strftimeNow}};
  for (const auto &[name, body] : functions)
    evaluator.define(name, Value::object(evaluator.session.makeUncharged<Function>(name, body)));
}

} // namespace llmrt::jinja
