#include "runtime/text/chat/jinja/Iterate.h"

#include "runtime/text/chat/jinja/Loop.h"
#include "runtime/text/chat/jinja/Unicode.h"

namespace llmrt::jinja {

bool isIterable(const Value &v) {
  switch (v.kind()) {
  case Kind::Undefined:
  case Kind::String:
  case Kind::List:
  case Kind::Tuple:
  case Kind::Dict:
  case Kind::Range:
  case Kind::View:
  case Kind::Generator:
  case Kind::Loop:
    return true;
  default:
    return false;
  }
}

static Value viewItem(Session &session, const View &view, size_t i) {
  const auto &[key, value] = view.dict->entries[i];
  switch (view.what) {
  case View::What::Keys:
    return key;
  case View::What::Values:
    return value;
  case View::What::Items:
    break;
  }
  return session.makePair(key, value);
}

NextFn iterate(Session &session, const Value &v) {
  switch (v.kind()) {
  case Kind::Undefined:
    return [](Value &) { return false; };
  case Kind::String:
    return [&session, s = v.strRef(), at = size_t(0)](Value &out) mutable {
      session.step();
      if (at >= s->text.size())
        return false;
      unsigned size = decodeAt(s->text, at).size;
      out = session.makeString(
          std::string_view(s->text).substr(at, size)); // never HTML, as in Python
      at += size;
      return true;
    };
  case Kind::List:
  case Kind::Tuple:
    return [&session, list = &v.as<List>(), i = size_t(0)](Value &out) mutable {
      session.step();
      if (i >= list->items.size())
        return false;
      out = list->items[i++];
      return true;
    };
  case Kind::Dict:
    return [&session, dict = &v.as<Dict>(), i = size_t(0)](Value &out) mutable {
      session.step();
      if (i >= dict->entries.size())
        return false;
      out = dict->entries[i++].first;
      return true;
    };
  case Kind::View:
    return [&session, view = &v.as<View>(), i = size_t(0)](Value &out) mutable {
      session.step();
      if (i >= view->dict->entries.size())
        return false;
      out = viewItem(session, *view, i++);
      return true;
    };
  case Kind::Range:
    return [&session, range = &v.as<Range>(), i = Int(0)](Value &out) mutable {
      session.step();
      if (i >= range->size())
        return false;
      out = Value::integer(range->start + i++ * range->step);
      return true;
    };
  case Kind::Generator:
    return [&session, generator = &v.as<Generator>()](Value &out) {
      Session::Depth depth(session); // a generator may draw from another, and so on
      session.step();
      return generator->next(out);
    };
  case Kind::Loop:
    return [&session, loop = &v.as<Loop>()](Value &out) {
      Value item;
      if (!loop->advance(item))
        return false;
      out = session.makePair(item, Value::object(loop));
      return true;
    };
  default:
    session.fail(std::string("'") + typeName(v) + "' object is not iterable");
  }
}

std::vector<Value> collect(Session &session, const Value &v) {
  std::vector<Value> items;
  NextFn next = iterate(session, v);
  Value item;
  while (next(item)) {
    session.step();
    session.push(items, std::move(item));
  }
  return items;
}

Int lengthOf(Session &session, const Value &v) {
  switch (v.kind()) {
  case Kind::Undefined:
    return 0;
  case Kind::String:
    return static_cast<Int>(v.str().length);
  case Kind::List:
  case Kind::Tuple:
    return static_cast<Int>(v.as<List>().items.size());
  case Kind::Dict:
    return static_cast<Int>(v.as<Dict>().entries.size());
  case Kind::View:
    return static_cast<Int>(v.as<View>().dict->entries.size());
  case Kind::Range:
    return v.as<Range>().size();
  case Kind::Loop:
    return v.as<Loop>().length(session);
  default:
    return -1;
  }
}

Value itemAt(Session &session, const Value &sequence, Int i) {
  switch (sequence.kind()) {
  case Kind::List:
  case Kind::Tuple:
    return sequence.as<List>().items[static_cast<size_t>(i)];
  case Kind::Range: {
    const Range &r = sequence.as<Range>();
    return Value::integer(r.start + i * r.step);
  }
  default: {
    const Str &s = sequence.str();
    size_t begin = static_cast<size_t>(i);
    if (!s.ascii()) {
      session.stepBytes(s.text.size());
      begin = byteOffset(s.text, begin);
    }
    return session.makeString(std::string_view(s.text).substr(begin, decodeAt(s.text, begin).size),
                              s.markup);
  }
  }
}

} // namespace llmrt::jinja
