//===- TemplateTimeTest.cpp - strftime_now and dates ------------------------------------------===//
#include "test/unit/text/TemplateFiles.h"

#include <ctime>

namespace llmrt::test {
namespace {

std::string at(const CivilTime &now, const std::string &source) {
  RenderOptions options;
  options.now = now;
  return renderText(source, nlohmann::ordered_json::object(), options);
}

// Case C01.
TEST(TemplateTime, StrftimeNowSeesTheGivenClock) {
  const CivilTime clock{2025, 3, 9, 14, 5};
  EXPECT_EQ(at(clock, "{{ strftime_now('%d %b %Y') }}"), "09 Mar 2025");
  EXPECT_EQ(at(clock, "{% if strftime_now is defined %}{{ strftime_now('%Y-%m-%d') }}{% else %}x"
                      "{% endif %}"),
            "2025-03-09");
  EXPECT_EQ(at(clock, "{{ strftime_now('%Q') }}"), "%Q");
  EXPECT_EQ(at(clock, "{{ strftime_now('%') }}|{{ strftime_now('%-') }}"), "%|%-");
  EXPECT_EQ(at(clock, "{{ strftime_now('%d' * 5000)|length }}"), "10000");
  EXPECT_EQ(at(clock, "{{ strftime_now('%c' * 5000)|length }}"), std::to_string(24 * 5000));
}

// Every conversion on every day of some years, against the C library's in the C locale.
TEST(TemplateTime, EqualsTheCLibrary) {
  const char *pattern =
      "%a %A %b %B %c %C %d %D %e %F %g %G %h %H %I %j %k %l %m %M %n %p %P %r %R "
      "%S %t %T %u %U %V %w %W %x %X %y %Y %% %-d %_m %^a %#p %-I %3d";
  for (int year : {1999, 2000, 2020, 2024, 2025, 2026, 2100}) {
    std::tm tm{};
    tm.tm_year = year - 1900;
    tm.tm_mday = 1;
    for (int day = 0; day < 366; ++day) {
      tm.tm_hour = day % 24;
      tm.tm_min = day % 60;
      tm.tm_sec = day % 59;
      ASSERT_NE(timegm(&tm), -1);
      char want[1024];
      ASSERT_GT(std::strftime(want, sizeof want, pattern, &tm), 0u);
      CivilTime t{tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec};
      ASSERT_EQ(t.format(pattern), want);
      ++tm.tm_mday;
    }
  }
}

TEST(TemplateTime, LocalTimeIsUsedWithoutAClock) {
  const int year = CivilTime::localNow().year;
  EXPECT_GE(year, 2024);
  EXPECT_EQ(renderText("{{ strftime_now('%Y') }}").substr(0, 2), std::to_string(year).substr(0, 2));
}

} // namespace
} // namespace llmrt::test
