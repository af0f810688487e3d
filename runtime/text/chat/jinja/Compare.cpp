#include "runtime/text/chat/jinja/Compare.h"

#include "runtime/text/chat/jinja/Iterate.h"
#include "runtime/text/chat/jinja/Loop.h"
#include "runtime/text/chat/jinja/Unicode.h"

#include <cmath>

namespace llmrt::jinja {

bool isTrue(Session &session, const Value &v) {
  switch (v.kind()) {
  case Kind::Undefined:
  case Kind::None:
    return false;
  case Kind::Bool:
    return v.asBool();
  case Kind::Int:
    return v.asInt() != 0;
  case Kind::Float:
    return v.asDouble() != 0;
  case Kind::String:
    return !v.text().empty();
  case Kind::List:
  case Kind::Tuple:
    return !v.as<List>().items.empty();
  case Kind::Dict:
    return !v.as<Dict>().entries.empty();
  case Kind::View:
    return !v.as<View>().dict->entries.empty();
  case Kind::Range:
    return v.as<Range>().size() != 0;
  case Kind::Loop:
    return v.as<Loop>().length(session) != 0;
  default:
    return true;
  }
}

/// -1, 0, 1; 2 when one of them is not a number. Exact for integers against doubles.
static int compareNumbers(const Value &a, const Value &b) {
  if (a.isIntegral() && b.isIntegral())
    return a.asInt() < b.asInt() ? -1 : a.asInt() > b.asInt();
  if (a.is(Kind::Float) && b.is(Kind::Float)) {
    double x = a.asDouble(), y = b.asDouble();
    return std::isnan(x) || std::isnan(y) ? 2 : x < y ? -1 : x > y;
  }
  if (a.isIntegral()) {
    int c = compareNumbers(b, a);
    return c == 2 ? 2 : -c;
  }
  double x = a.asDouble();
  if (std::isnan(x))
    return 2;
  if (std::fabs(x) >= 0x1p126)
    return x < 0 ? -1 : 1;
  Int whole = static_cast<Int>(x);
  if (whole != b.asInt())
    return whole < b.asInt() ? -1 : 1;
  double part = x - static_cast<double>(whole);
  return part < 0 ? -1 : part > 0;
}

static bool sameDicts(Session &session, const Dict &a, const Dict &b) {
  if (a.entries.size() != b.entries.size())
    return false;
  for (const auto &[key, value] : a.entries) {
    const Value *other = b.find(session, key);
    if (!other || !equals(session, value, *other))
      return false;
  }
  return true;
}

bool equals(Session &session, const Value &a, const Value &b) {
  session.step();
  if (a.isNumber() && b.isNumber())
    return compareNumbers(a, b) == 0;
  if (a.kind() != b.kind())
    return false;
  switch (a.kind()) {
  case Kind::Undefined:
  case Kind::None:
    return true;
  case Kind::String:
    if (a.strRef() == b.strRef())
      return true;
    if (a.text().size() != b.text().size())
      return false;
    session.stepBytes(a.text().size());
    return a.text() == b.text();
  case Kind::List:
  case Kind::Tuple: {
    const auto &x = a.as<List>().items, &y = b.as<List>().items;
    if (&x == &y)
      return true;
    if (x.size() != y.size())
      return false;
    Session::Depth depth(session);
    for (size_t i = 0; i < x.size(); ++i)
      if (!equals(session, x[i], y[i]))
        return false;
    return true;
  }
  case Kind::Dict: {
    Session::Depth depth(session);
    return a.objectPtr() == b.objectPtr() || sameDicts(session, a.as<Dict>(), b.as<Dict>());
  }
  case Kind::Range: {
    const Range &x = a.as<Range>(), &y = b.as<Range>();
    if (x.size() != y.size())
      return false;
    return x.size() == 0 || (x.start == y.start && (x.size() == 1 || x.step == y.step));
  }
  default:
    return a.objectPtr() == b.objectPtr();
  }
}

bool lessThan(Session &session, const Value &a, const Value &b, const char *symbol) {
  session.step();
  if (a.isNumber() && b.isNumber())
    return compareNumbers(a, b) == -1;
  if (a.isString() && b.isString()) {
    session.stepBytes(std::min(a.text().size(), b.text().size()));
    return a.text() < b.text(); // the byte order of UTF-8 is that of the code points
  }
  if (a.isSequence() && a.kind() == b.kind()) {
    Session::Depth depth(session);
    const auto &x = a.as<List>().items, &y = b.as<List>().items;
    for (size_t i = 0; i < x.size() && i < y.size(); ++i)
      if (!equals(session, x[i], y[i]))
        return lessThan(session, x[i], y[i], symbol);
    return x.size() < y.size();
  }
  if (a.isUndefined())
    session.failUndefined(a);
  if (b.isUndefined())
    session.failUndefined(b);
  session.fail(std::string("'") + symbol + "' can't compare '" + typeName(a) + "' with '" +
               typeName(b) + "'");
}

size_t hashText(std::string_view text) { return std::hash<std::string_view>()(text); }

size_t hashOf(Session &session, const Value &v) {
  auto mix = [](Int i) {
    auto u = static_cast<unsigned __int128>(i);
    return std::hash<uint64_t>()(static_cast<uint64_t>(u ^ (u >> 64)) * 0x9E3779B97F4A7C15ull);
  };
  switch (v.kind()) {
  case Kind::Undefined:
    return 1;
  case Kind::None:
    return 2;
  case Kind::Bool:
  case Kind::Int:
    return mix(v.asInt());
  case Kind::Float: {
    double d = v.asDouble();
    if (std::fabs(d) < 0x1p126 && d == std::trunc(d))
      return mix(static_cast<Int>(d)); // equal numbers hash alike
    return std::hash<double>()(d);
  }
  case Kind::String:
    session.stepBytes(v.text().size());
    return hashText(v.text());
  case Kind::Tuple: {
    Session::Depth depth(session);
    size_t h = 0x345678;
    for (const Value &item : v.as<List>().items)
      h = (h ^ hashOf(session, item)) * 1000003u + 97;
    return h;
  }
  case Kind::List:
  case Kind::Dict:
  case Kind::View:
    session.fail(std::string("a ") + typeName(v) + " can't be a key (unhashable type)");
  default:
    return std::hash<const void *>()(v.objectPtr());
  }
}

bool contains(Session &session, const Value &haystack, const Value &needle) {
  switch (haystack.kind()) {
  case Kind::Undefined:
    return false;
  case Kind::String:
    if (needle.isUndefined())
      session.failUndefined(needle);
    if (!needle.isString())
      session.fail(std::string("'in <string>' needs a string on its left side, not ") +
                   typeName(needle));
    session.stepBytes(haystack.text().size());
    return findText(haystack.text(), needle.text()) != std::string_view::npos;
  case Kind::Dict:
    return haystack.as<Dict>().find(session, needle) != nullptr;
  case Kind::View:
    if (haystack.as<View>().what == View::What::Keys)
      return haystack.as<View>().dict->find(session, needle) != nullptr;
    break;
  case Kind::Range:
    if (needle.isIntegral()) {
      const Range &r = haystack.as<Range>();
      if (needle.asInt() > INT64_MAX || needle.asInt() < INT64_MIN)
        return false; // ranges are made of 64-bit numbers
      Int offset = needle.asInt() - r.start;
      return offset % r.step == 0 && offset / r.step >= 0 && offset / r.step < r.size();
    }
    break;
  default:
    break;
  }
  NextFn next = iterate(session, haystack);
  Value item;
  while (next(item)) {
    session.step();
    if (item.identical(needle) || equals(session, item, needle))
      return true;
  }
  return false;
}

void sortStable(Session &session, std::vector<Value> &items,
                const std::function<bool(const Value &, const Value &)> &less) {
  const size_t n = items.size();
  session.checkRoom(n * sizeof(Value));
  std::vector<Value> other(n);
  for (size_t width = 1; width < n; width *= 2) {
    for (size_t begin = 0; begin < n; begin += 2 * width) {
      size_t middle = std::min(begin + width, n), end = std::min(begin + 2 * width, n);
      size_t left = begin, right = middle;
      for (size_t out = begin; out < end; ++out) {
        session.step();
        bool takeRight = left == middle || (right < end && less(items[right], items[left]));
        other[out] = items[takeRight ? right++ : left++];
      }
    }
    items.swap(other);
  }
}

//===----------------------------------------------------------------------===//
// Dict
//===----------------------------------------------------------------------===//

static constexpr size_t linearEntries = 8;

long Dict::indexOf(Session &session, const Value &key, size_t hash) const {
  if (index_.empty()) {
    for (size_t i = 0; i < entries.size(); ++i)
      if (equals(session, entries[i].first, key))
        return static_cast<long>(i);
    return -1;
  }
  auto [begin, end] = index_.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (equals(session, entries[it->second].first, key))
      return it->second;
  return -1;
}

const Value *Dict::find(Session &session, const Value &key) const {
  long i = indexOf(session, key, hashOf(session, key));
  return i < 0 ? nullptr : &entries[static_cast<size_t>(i)].second;
}

const Value *Dict::find(std::string_view key) const {
  auto matches = [&](size_t i) {
    return entries[i].first.isString() && entries[i].first.text() == key;
  };
  if (index_.empty()) {
    for (size_t i = 0; i < entries.size(); ++i)
      if (matches(i))
        return &entries[i].second;
    return nullptr;
  }
  auto [begin, end] = index_.equal_range(hashText(key));
  for (auto it = begin; it != end; ++it)
    if (matches(it->second))
      return &entries[it->second].second;
  return nullptr;
}

void Dict::set(Session &session, const Value &key, Value value) {
  size_t hash = hashOf(session, key);
  long i = indexOf(session, key, hash);
  if (i >= 0) {
    entries[static_cast<size_t>(i)].second = std::move(value);
    return;
  }
  session.charge(2 * sizeof(Value) + 6 * sizeof(void *));
  append(hash, key, std::move(value));
}

void Dict::add(const Value &key, Value value) {
  append(hashText(key.text()), key, std::move(value));
}

void Dict::append(size_t hash, const Value &key, Value value) {
  entries.emplace_back(key, std::move(value));
  hashes_.push_back(hash);
  if (entries.size() <= linearEntries)
    return;
  for (size_t k = index_.size(); k < entries.size(); ++k)
    index_.emplace(hashes_[k], static_cast<uint32_t>(k));
}

} // namespace llmrt::jinja
