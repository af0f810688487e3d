//===- CivilTime.h - a date and a time of day, without a zone ------------------===//
#ifndef LLMRT_TEXT_CHAT_CIVILTIME_H
#define LLMRT_TEXT_CHAT_CIVILTIME_H

#include <string>
#include <string_view>

namespace llmrt {

struct CivilTime {
  int year = 1970;
  int month = 1; ///< 1..12
  int day = 1;   ///< 1..31
  int hour = 0, minute = 0, second = 0, microsecond = 0;

  /// The machine's local time.
  static CivilTime localNow();
  /// 0 for Sunday .. 6 for Saturday (proleptic Gregorian calendar).
  int weekday() const;
  /// 1 for the first of January.
  int dayOfYear() const;

  /// datetime.strftime of Python in the C locale, for a time without a zone (%z and %Z are
  /// empty). Glibc's flags `-_0^#` and a field width are known; an unknown conversion is kept as
  /// it stands. At most \p maxBytes are produced, the rest is cut.
  std::string format(std::string_view pattern, size_t maxBytes = 1 << 20) const;
};

} // namespace llmrt

#endif // LLMRT_TEXT_CHAT_CIVILTIME_H
