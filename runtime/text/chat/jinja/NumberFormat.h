//===- NumberFormat.h - numbers and text in a field ---------------------------------===//
//
// What `'%5.2f' % x` and `'{:>5.2f}'.format(x)` have in common: Python's format specification.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_CHAT_JINJA_NUMBERFORMAT_H
#define LLMRT_TEXT_CHAT_JINJA_NUMBERFORMAT_H

#include "runtime/text/chat/jinja/Session.h"

#include <optional>

namespace llmrt::jinja {

/// [[fill]align][sign][#][0][width][grouping][.precision][type]
struct FormatSpec {
  std::string fill = " ";
  char align = 0;  ///< '<', '>', '^', '=', or 0 for the type's own
  char sign = '-'; ///< '+', '-' or ' '
  bool alternate = false;
  Int width = 0;
  char grouping = 0; ///< ',', '_' or 0
  std::optional<Int> precision;
  char type = 0; ///< 0 if not given
};

/// Reads a specification; fails on anything else.
FormatSpec parseFormatSpec(Session &session, std::string_view text);

/// \p value, a number, by a type of "bcdoxXn" or "eEfFgG%".
std::string formatNumber(Session &session, const FormatSpec &spec, const Value &value);
/// Text, cut to the precision and padded to the width.
std::string formatText(Session &session, const FormatSpec &spec, std::string_view text);
/// format(value, spec) for any value.
std::string formatValue(Session &session, const FormatSpec &spec, const Value &value);

/// Pads \p text to \p width code points.
std::string pad(Session &session, std::string_view text, Int width, std::string_view fill,
                char align);

/// A double in the form 'e', 'f' or 'g', as C's printf has it.
std::string formatDouble(Session &session, double value, char type, Int precision);

} // namespace llmrt::jinja

#endif // LLMRT_TEXT_CHAT_JINJA_NUMBERFORMAT_H
