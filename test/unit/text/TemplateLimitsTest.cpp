//===- TemplateLimitsTest.cpp - hostile templates
//----------------------------------------------===//
#include "test/unit/text/TemplateFiles.h"

#include <ctime>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace llmrt::test {

using Json = nlohmann::ordered_json;

namespace {

/// Under a sanitizer, or built to be emulated (test/aarch64).
constexpr bool slow =
#if defined(LLMC_TESTS_EMULATED)
    true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
    true;
#else
    false;
#endif
#else
    false;
#endif

std::string repeat(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i)
    out += text;
  return out;
}

/// Renders, and fails the test unless that ends in an error within a second.
std::string failure(const std::string &source, const Json &context = Json::object()) {
  SCOPED_TRACE(source.substr(0, 200));
  const std::clock_t start = std::clock(); // of this process: others may keep the machine busy
  std::string text = renderText(source, context);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, slow ? 20.0 : 1.0);
  EXPECT_TRUE(text.starts_with("error: ")) << text.substr(0, 200);
  return text;
}

// A template reaches nothing of the host, changes nothing and loads nothing (case C06).
TEST(TemplateLimits, Sandbox_invalid) {
  const Json context = {{"messages", Json::array({{{"role", "user"}, {"content", "x"}}})}};
  for (const char *source :
       {"{{ ''.__class__.__mro__[1].__subclasses__() }}", "{{ ''['__class__'] }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}", "{{ messages.append(1) }}",
        "{{ messages[0].update({'role': 'system'}) }}", "{{ messages.sort() }}",
        "{{ messages[0].pop('role') }}", "{% include '/etc/passwd' %}",
        "{% import '/etc/passwd' as x %}", "{% from '/etc/passwd' import x %}",
        "{% extends '/etc/passwd' %}", "{{ raise_exception.__globals__ }}",
        "{{ '{0.__class__}'.format(1) }}", "{{ ''|attr('__class__') }}",
        "{{ messages|map(attribute='__class__')|list }}", "{{ open('/etc/passwd') }}",
        "{{ self.__init__ }}", "{{ namespace.__init__ }}", "{% set messages.x = 1 %}"})
    failure(source, context);
}

// Case C07: what never ends, or grows without bound.
TEST(TemplateLimits, Endless_invalid) {
  for (const char *source :
       {"{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% for x in range(1000000) %}{% endfor %}",
        "{% set ns = namespace(s='x') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% "
        "endfor %}",
        "{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% "
        "endfor %}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% macro f(x) %}{% call f(x) %}{% endcall %}{% endmacro %}{{ f(1) }}",
        "{{ 'x' * 10 ** 12 }}",
        "{{ [1] * 10 ** 9 }}",
        "{{ '%999999999d' % 1 }}",
        "{{ '{:>999999999}'.format(1) }}",
        "{{ 'x'.center(10 ** 15) }}",
        "{{ 'x'|indent(10 ** 12) }}",
        "{{ 'x'.ljust(2 ** 62) }}",
        "{{ '\\t'.expandtabs(10 ** 10) }}",
        "{{ '%.*f' % (10 ** 9, 1.5) }}",
        "{{ ('a' * 1000000).replace('', 'b' * 1000) }}",
        "{{ [1]|batch(10 ** 10, 0)|list }}",
        "{{ [1]|slice(10 ** 10)|list }}",
        "{{ 'a,' * 10000000 }}",
        "{% set s = 'a' * 5000000 %}{% for i in range(99999) %}{% if s ~ i == s %}{% endif %}{% "
        "endfor %}",
        "{% set s = 'a' * 5000000 %}{% for i in range(99999) %}{{ s.upper()|length }}{% endfor %}",
        "{% set s = 'a' * 5000000 %}{% for i in range(99999) %}{{ s.rfind('b') }}{% endfor %}",
        "{% set s = 'a' * 5000000 %}{% for i in range(99999) %}{{ s.count('ab') }}{% endfor %}",
        "{% set s = 'a' * 1000000 ~ 'b' %}{{ ('a' * 3000000).rfind('b' ~ s) }}"
        "{% for i in range(99999) %}{{ s in s }}{{ s.split('b') }}{% endfor %}",
        "{% set s = ' ' * 5000000 %}{% for i in range(99999) %}{{ s.strip() }}{{ s|trim }}{% "
        "endfor %}",
        "{% set d = namespace(d={}) %}{% for i in range(99999) %}{% set d.d = dict(d.d, **{'k' ~ "
        "i: i}) %}{% endfor %}",
        "{% for i in range(99999) %}{{ range(99999)|sum }}{% endfor %}",
        "{% for i in range(99999) %}{{ range(99999)|list|sort }}{% endfor %}",
        "{% for i in range(99999) %}{{ 99999 in range(99999)|map('int') }}{% endfor %}",
        "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
        "{% set c = cycler(1) %}{% for i in range(99999) %}{{ dict(a=c, b='x' * 1000)|string }}{% "
        "endfor %}"})
    failure(source);
}

// Values that hold each other, or nest without end, can neither be printed nor break anything.
TEST(TemplateLimits, DeepValues_invalid) {
  const std::string ring = "{% set ns = namespace() %}{% set ns.me = [ns] %}";
  failure(ring + "{{ ns }}");
  failure(ring + "{{ ns.me|tojson }}");
  const std::string chain =
      "{% set ns = namespace(v=1, w=1) %}{% for i in range(20000) %}{% set ns.v = [ns.v] %}"
      "{% set ns.w = [ns.w] %}{% endfor %}";
  failure(chain + "{{ ns.v }}");
  failure(chain + "{{ ns.v|tojson }}");
  failure(chain + "{{ ns.v == ns.w }}");
  failure(chain + "{{ ns.v < ns.w }}");
  failure("{% set ns = namespace(v=(1,)) %}{% for i in range(20000) %}{% set ns.v = (ns.v,) %}"
          "{% endfor %}{{ {ns.v: 1} }}");
  failure(
      "{% set ns = namespace(v=[1]) %}{% for i in range(20000) %}{% set ns.v = ns.v|map('int') %}"
      "{% endfor %}{{ ns.v|list }}");
  EXPECT_EQ(renderText(chain + "ok"), "ok"); // and all of it can be dropped
  EXPECT_EQ(renderText(ring + "ok"), "ok");
}

TEST(TemplateLimits, DeepSource_invalid) {
  const int deep = 100000;
  for (std::string_view open :
       {"(", "[", "{1:", "-", "not ", "x(", "x[", "1 if 1 else ", "x|f(", "'' ~ ("})
    failure("{{ " + repeat(open, deep));
  failure("{{ " + repeat("(", deep) + "1" + repeat(")", deep) + " }}");
  failure(repeat("{% if 1 %}", deep) + repeat("{% endif %}", deep));
  failure(repeat("{% for a in [1] %}", deep));
  failure("{{ 1" + repeat(" + 1", deep) + " }}");
  failure("{{ x" + repeat(".a", deep) + " }}");
  failure("{{ 1" + repeat("|abs", deep) + " }}");
  failure("{% set " + repeat("(", deep) + " %}");
  failure(std::string(2'000'000, 'x')); // too long
  failure("{{ " + std::string(1000, '9') + " }}");
}

// The JSON of a request can nest as deep as it is long.
TEST(TemplateLimits, DeepContext_invalid) {
  const int deep = 100000;
  const std::string nested = repeat("[", deep) + repeat("]", deep);
  Result<ChatTemplate> parsed = ChatTemplate::parse("{{ messages }}{{ x }}");
  ASSERT_TRUE(parsed);
  const Json context = Json::parse("{\"x\": " + nested + "}");
  EXPECT_EQ(parsed->render(context).status().code(), StatusCode::ResourceExhausted);
  for (std::string content : {nested, "[{\"type\": " + nested + "}]",
                              repeat("{\"a\":", deep) + "1" + repeat("}", deep)}) {
    const Json messages = Json::parse(R"([{"role": "user", "content": )" + content + "}]");
    EXPECT_EQ(textOf(applyChatTemplate(*parsed, messages)),
              "error: messages must not nest more than 100 levels deep");
  }
  Json call =
      Json::parse(R"([{"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}])");
  call[0]["tool_calls"][0]["function"]["arguments"] = "{\"a\": " + nested + "}";
  EXPECT_EQ(applyChatTemplate(*parsed, call).status().code(), StatusCode::ResourceExhausted);
}

// What a limit leaves room for.
TEST(TemplateLimits, LongConversations) {
  Json messages = Json::array();
  for (int i = 0; i < 4000; ++i)
    messages.push_back(
        {{"role", i % 2 ? "assistant" : "user"}, {"content", std::string(1000, 'x')}});
  const std::string source = readTemplateFile("Qwen-Qwen3-0.6B.jinja");
  Result<ChatTemplate> parsed = ChatTemplate::parse(source);
  ASSERT_TRUE(parsed);
  std::string text = textOf(applyChatTemplate(*parsed, messages));
  EXPECT_GT(text.size(), 4'000'000u) << text.substr(0, 200);
  // One message of the size of a large file, printed and trimmed.
  Json large = {{{"role", "user"}, {"content", std::string(20'000'000, 'y')}}};
  text = textOf(applyChatTemplate(*parsed, large));
  EXPECT_GT(text.size(), 20'000'000u) << text.substr(0, 200);
}

TEST(TemplateLimits, LimitsAreNamed) {
  RenderOptions few;
  few.limits.steps = 1000;
  EXPECT_EQ(renderText("\n{% for i in range(999) %}{{ i }}{% endfor %}", Json::object(), few),
            "error: chat template: line 2: the template runs too long (more than 1000 steps)");
  RenderOptions little;
  little.limits.outputBytes = 1 << 20;
  EXPECT_EQ(
      renderText("{% for i in range(999) %}{{ 'x' * 10000 }}{% endfor %}", Json::object(), little),
      "error: chat template: line 1: the template prints more than 1 MiB");
  Result<ChatTemplate> parsed = ChatTemplate::parse("{{ 'x' * 10 ** 12 }}");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->render(Json::object()).status().code(), StatusCode::ResourceExhausted);
}

// Case C07 again: no more than 64 MiB. A process of its own has a peak of its own.
TEST(TemplateLimits, MemoryStaysBounded) {
  if (slow)
    GTEST_SKIP() << "a sanitizer multiplies memory";
  for (const char *source :
       {"{% set ns = namespace(s='x') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% "
        "endfor %}",
        "{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% "
        "endfor %}",
        "{% for i in range(99999) %}{% set x = range(1000)|list %}{% endfor %}",
        "{% for i in range(99999) %}{% macro m() %}{% endmacro %}{% set y = [m] * 1000 %}{% endfor "
        "%}",
        "{% macro m(n) %}{{ 'x' * 10000000 }}{{ m(n) }}{% endmacro %}{{ m(1) }}",
        "{% for i in range(99999) %}{{ 'x' * 100000 }}{% endfor %}",
        "{% set x %}{% for i in range(99999) %}{{ 'x' * 100000 }}{% endfor %}{% endset %}"}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      rusage before{}, after{};
      getrusage(RUSAGE_SELF, &before);
      const bool failed = renderText(source).starts_with("error: ");
      getrusage(RUSAGE_SELF, &after);
      _exit(failed && after.ru_maxrss - before.ru_maxrss < 64 * 1024 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << source;
  }
}

} // namespace
} // namespace llmrt::test
