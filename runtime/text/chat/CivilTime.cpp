#include "runtime/text/chat/CivilTime.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <sys/time.h>

namespace llmrt {

static constexpr std::array<const char *, 7> dayNames = {
    "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
static constexpr std::array<const char *, 12> monthNames = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};

static bool isLeap(int year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

CivilTime CivilTime::localNow() {
  timeval now{};
  gettimeofday(&now, nullptr);
  std::tm local{};
  localtime_r(&now.tv_sec, &local);
  return {local.tm_year + 1900,
          local.tm_mon + 1,
          local.tm_mday,
          local.tm_hour,
          local.tm_min,
          local.tm_sec,
          static_cast<int>(now.tv_usec)};
}

int CivilTime::dayOfYear() const {
  static constexpr std::array<int, 12> before = {0,   31,  59,  90,  120, 151,
                                                 181, 212, 243, 273, 304, 334};
  return before[static_cast<size_t>(std::clamp(month, 1, 12) - 1)] + day +
         (month > 2 && isLeap(year));
}

/// Days from 0001-01-01 (a Monday) to the first of January of \p year.
static long daysBefore(int year) {
  long y = year - 1;
  return y * 365 + y / 4 - y / 100 + y / 400;
}

int CivilTime::weekday() const {
  return static_cast<int>((daysBefore(year) + dayOfYear()) % 7 + 7) % 7;
}

/// The week of ISO 8601 and the year it belongs to.
static std::pair<int, int> isoWeek(const CivilTime &t) {
  const int monday0 = (t.weekday() + 6) % 7; // 0 for Monday
  int week = (t.dayOfYear() - 1 - monday0 + 10) / 7;
  auto weeksIn = [](int year) {
    CivilTime first{year, 1, 1};
    return first.weekday() == 4 || (first.weekday() == 3 && isLeap(year)) ? 53 : 52;
  };
  if (week < 1)
    return {weeksIn(t.year - 1), t.year - 1};
  if (week > weeksIn(t.year))
    return {1, t.year + 1};
  return {week, t.year};
}

namespace {

/// One conversion: its flags and width as written.
struct Conversion {
  char pad = 0; ///< '-', '_', '0' or 0 for the usual one
  bool upper = false, swap = false;
  int width = 0;

  std::string number(long value, int digits, char usual = '0') const {
    std::string text = std::to_string(value < 0 ? -value : value);
    const char fill = pad == '_' ? ' ' : pad == '0' ? '0' : usual;
    const size_t to = pad == '-' ? 0 : static_cast<size_t>(std::max(digits, width));
    if (text.size() < to)
      text.insert(0, to - text.size(), fill);
    return (value < 0 ? "-" : "") + text;
  }

  std::string words(std::string text, bool swapIsLower = false) const {
    const bool lower = swap && swapIsLower;
    for (char &c : text) {
      if (lower)
        c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
      else if (upper || swap)
        c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
    }
    if (text.size() < static_cast<size_t>(width))
      text.insert(0, static_cast<size_t>(width) - text.size(), pad == '0' ? '0' : ' ');
    return text;
  }
};

/// The text of conversion \p kind, or false if there is none of that letter.
bool convert(const CivilTime &t, char kind, const Conversion &c, std::string &out) {
  const int hour12 = t.hour % 12 == 0 ? 12 : t.hour % 12;
  const auto day = static_cast<size_t>(t.weekday());
  const auto month = static_cast<size_t>(std::clamp(t.month, 1, 12) - 1);
  auto composed = [&](const char *pattern) { out = c.words(t.format(pattern)); };
  switch (kind) {
  case 'a':
    out = c.words(std::string(dayNames[day], 3));
    break;
  case 'A':
    out = c.words(dayNames[day]);
    break;
  case 'b':
  case 'h':
    out = c.words(std::string(monthNames[month], 3));
    break;
  case 'B':
    out = c.words(monthNames[month]);
    break;
  case 'c':
    composed("%a %b %e %H:%M:%S %Y");
    break;
  case 'C':
    out = c.number(t.year / 100, 2);
    break;
  case 'd':
    out = c.number(t.day, 2);
    break;
  case 'D':
  case 'x':
    composed("%m/%d/%y");
    break;
  case 'e':
    out = c.number(t.day, 2, ' ');
    break;
  case 'f': {
    std::string digits = std::to_string(t.microsecond);
    out = std::string(digits.size() < 6 ? 6 - digits.size() : 0, '0') + digits;
    break;
  }
  case 'F':
    composed("%Y-%m-%d");
    break;
  case 'g':
    out = c.number(isoWeek(t).second % 100, 2);
    break;
  case 'G':
    out = c.number(isoWeek(t).second, 1);
    break;
  case 'H':
    out = c.number(t.hour, 2);
    break;
  case 'I':
    out = c.number(hour12, 2);
    break;
  case 'j':
    out = c.number(t.dayOfYear(), 3);
    break;
  case 'k':
    out = c.number(t.hour, 2, ' ');
    break;
  case 'l':
    out = c.number(hour12, 2, ' ');
    break;
  case 'm':
    out = c.number(t.month, 2);
    break;
  case 'M':
    out = c.number(t.minute, 2);
    break;
  case 'n':
    out = "\n";
    break;
  case 'p':
    out = c.words(t.hour < 12 ? "AM" : "PM", true);
    break;
  case 'P':
    out = c.words(t.hour < 12 ? "am" : "pm");
    break;
  case 'r':
    composed("%I:%M:%S %p");
    break;
  case 'R':
    composed("%H:%M");
    break;
  case 'S':
    out = c.number(t.second, 2);
    break;
  case 't':
    out = "\t";
    break;
  case 'T':
  case 'X':
    composed("%H:%M:%S");
    break;
  case 'u':
    out = c.number(t.weekday() == 0 ? 7 : t.weekday(), 1);
    break;
  case 'U':
    out = c.number((t.dayOfYear() + 6 - t.weekday()) / 7, 2);
    break;
  case 'V':
    out = c.number(isoWeek(t).first, 2);
    break;
  case 'w':
    out = c.number(t.weekday(), 1);
    break;
  case 'W':
    out = c.number((t.dayOfYear() + 6 - (t.weekday() + 6) % 7) / 7, 2);
    break;
  case 'y':
    out = c.number(t.year % 100, 2);
    break;
  case 'Y':
    out = c.number(t.year, 1);
    break;
  case 'z':
  case 'Z':
    out.clear();
    break;
  case '%':
    out = "%";
    break;
  default:
    return false;
  }
  return true;
}

} // namespace

std::string CivilTime::format(std::string_view pattern, size_t maxBytes) const {
  std::string out;
  for (size_t i = 0; i < pattern.size() && out.size() < maxBytes; ++i) {
    if (pattern[i] != '%') {
      out += pattern[i];
      continue;
    }
    size_t p = i + 1;
    Conversion c;
    for (; p < pattern.size(); ++p) {
      if (pattern[p] == '-' || pattern[p] == '_' || pattern[p] == '0')
        c.pad = pattern[p];
      else if (pattern[p] == '^')
        c.upper = true;
      else if (pattern[p] == '#')
        c.swap = true;
      else
        break;
    }
    for (; p < pattern.size() && pattern[p] >= '0' && pattern[p] <= '9' && c.width < 1000; ++p)
      c.width = c.width * 10 + (pattern[p] - '0');
    std::string piece;
    if (p < pattern.size() && convert(*this, pattern[p], c, piece)) {
      out += piece;
      i = p;
    } else {
      out += '%'; // kept as it stands
    }
  }
  out.resize(std::min(out.size(), maxBytes));
  return out;
}

} // namespace llmrt
