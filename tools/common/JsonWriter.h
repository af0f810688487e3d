//===- JsonWriter.h - prints a JSON document piece by piece -------------------===//
//
//   JsonWriter j(out);
//   j.object([&] { j.key("tokens").value(3); j.key("ids").array([&] { j.value(1); }); });
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TOOLS_COMMON_JSONWRITER_H
#define LLMC_TOOLS_COMMON_JSONWRITER_H

#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <ostream>
#include <string>
#include <string_view>

namespace llmc::tools {

class JsonWriter {
public:
  explicit JsonWriter(std::ostream &out) : out_(out) {}

  template <typename Body> void object(Body &&body) { nest('{', '}', body); }
  template <typename Body> void array(Body &&body) { nest('[', ']', body); }
  /// The name of the next value of the object that is open.
  JsonWriter &key(std::string_view name) {
    separate();
    quote(name);
    out_ << ": ";
    afterKey_ = true;
    return *this;
  }
  void value(std::string_view text) {
    separate();
    quote(text);
  }
  void value(const char *text) { value(std::string_view(text)); }
  void value(bool b) {
    separate();
    out_ << (b ? "true" : "false");
  }
  template <std::integral T> void value(T number) {
    separate();
    out_ << std::to_string(number);
  }
  /// JSON has no infinity and no NaN: they become null.
  void value(double number) {
    separate();
    char text[32];
    std::snprintf(text, sizeof text, "%.10g", number);
    out_ << (std::isfinite(number) ? text : "null");
  }

private:
  template <typename Body> void nest(char open, char close, Body &&body) {
    separate();
    out_ << open;
    ++depth_;
    first_ = true;
    body();
    --depth_;
    if (!first_)
      newLine();
    out_ << close;
    first_ = false;
    if (depth_ == 0)
      out_ << '\n';
  }
  void separate() {
    if (afterKey_) {
      afterKey_ = false;
      return;
    }
    if (depth_ == 0)
      return;
    if (!first_)
      out_ << ',';
    first_ = false;
    newLine();
  }
  void newLine() { out_ << '\n' << std::string(static_cast<size_t>(depth_) * 2, ' '); }
  /// \p text is UTF-8; only what JSON can't hold as it is becomes an escape.
  void quote(std::string_view text) {
    out_ << '"';
    for (char c : text) {
      if (c == '"' || c == '\\')
        out_ << '\\' << c;
      else if (static_cast<unsigned char>(c) < 0x20) {
        char escape[8];
        std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
        out_ << escape;
      } else
        out_ << c;
    }
    out_ << '"';
  }

  std::ostream &out_;
  int depth_ = 0;
  bool first_ = true, afterKey_ = false;
};

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_JSONWRITER_H
