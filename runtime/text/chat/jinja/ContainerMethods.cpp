//===- ContainerMethods.cpp - methods of lists, mappings, loops and cyclers -----------===//
#include "runtime/text/chat/jinja/Compare.h"
#include "runtime/text/chat/jinja/Evaluator.h"
#include "runtime/text/chat/jinja/Iterate.h"
#include "runtime/text/chat/jinja/Loop.h"
#include "runtime/text/chat/jinja/Methods.h"

namespace llmrt::jinja {

namespace {

Value listCount(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {"value"}, 1);
  Int found = 0;
  for (const Value &item : self.as<List>().items)
    found += item.identical(args.at(0)) || equals(ev.session, item, args.at(0));
  return Value::integer(found);
}

Value listIndex(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {"value", "start", "stop"}, 1);
  const auto &items = self.as<List>().items;
  const Int length = static_cast<Int>(items.size());
  auto bound = [&](size_t i, Int fallback) {
    Int v = args.integer(ev.session, i, fallback);
    return v < 0 ? std::max(v + length, Int(0)) : std::min(v, length);
  };
  const Int stop = bound(2, length);
  for (Int i = bound(1, 0); i < stop; ++i)
    if (equals(ev.session, items[static_cast<size_t>(i)], args.at(0)))
      return Value::integer(i);
  ev.session.fail("the value looked for is not in the list");
}

Value listCopy(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {});
  ev.session.step(self.as<List>().items.size());
  ev.session.checkRoom(self.as<List>().items.size() * sizeof(Value));
  return ev.session.makeList(self.as<List>().items);
}

template <View::What What> Value view(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {});
  return Value::object(ev.session.make<View>(&self.as<Dict>(), What));
}

Value dictGet(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {"key", "default"}, 1);
  if (const Value *v = self.as<Dict>().find(ev.session, args.at(0)))
    return *v;
  return args.given(1) ? args.at(1) : Value::none();
}

Value dictCopy(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {});
  Dict *copy = ev.session.make<Dict>();
  for (const auto &[key, value] : self.as<Dict>().entries)
    copy->set(ev.session, key, value);
  copy->text = self.as<Dict>().text;
  return Value::object(copy);
}

Value loopCycle(Evaluator &ev, const Value &self, Args &args) {
  if (args.positional.empty() || !args.keyword.empty())
    ev.session.fail("loop.cycle() needs values to cycle through");
  Int i = std::max(self.as<Loop>().index0(), Int(0)) % static_cast<Int>(args.positional.size());
  return args.positional[static_cast<size_t>(i)];
}

Value loopChanged(Evaluator &ev, const Value &self, Args &args) {
  if (!args.keyword.empty())
    ev.session.fail("loop.changed() takes no named arguments");
  return Value::boolean(self.as<Loop>().changed(ev.session, args.positional));
}

Value cyclerNext(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {});
  Cycler &cycler = self.as<Cycler>();
  Value v = cycler.items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size();
  return v;
}

Value cyclerReset(Evaluator &ev, const Value &self, Args &args) {
  args.bind(ev.session, {});
  self.as<Cycler>().position = 0;
  return Value::none();
}

} // namespace

Function::Body findListMethod(std::string_view name) {
  return name == "count"   ? listCount
         : name == "index" ? listIndex
         : name == "copy"  ? listCopy
                           : nullptr;
}

Function::Body findDictMethod(std::string_view name) {
  return name == "get"      ? dictGet
         : name == "items"  ? view<View::What::Items>
         : name == "keys"   ? view<View::What::Keys>
         : name == "values" ? view<View::What::Values>
         : name == "copy"   ? dictCopy
                            : nullptr;
}

Function::Body findLoopMethod(std::string_view name) {
  return name == "cycle" ? loopCycle : name == "changed" ? loopChanged : nullptr;
}

Function::Body findCyclerMethod(std::string_view name) {
  return name == "next" ? cyclerNext : name == "reset" ? cyclerReset : nullptr;
}

} // namespace llmrt::jinja
