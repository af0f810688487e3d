//===- TemplateExpressionTest.cpp - small templates, against Jinja --------------------------===//
#include "test/unit/text/TemplateFiles.h"

namespace llmrt::test {

using Json = nlohmann::ordered_json;

// expressions.json is made by make_template_expressions.py: what Jinja 3.1.6, set up as Hugging
// Face does, makes of operators, filters, tests, methods, statements and white space.
TEST(TemplateExpression, EqualsJinja) {
  const Json golden = readTemplateJson("expressions.json");
  RenderOptions options;
  options.now = CivilTime{2025, 1, 2, 3, 4, 5};
  int failures = 0;
  for (const Json &entry : golden["entries"]) {
    const std::string source = entry["template"];
    Json context = golden["context"];
    const std::string got = renderText(source, context, options);
    const bool same = entry.contains("text") ? got == entry["text"].get<std::string>()
                                             : got.starts_with("error: ");
    if (!same && ++failures <= 40)
      ADD_FAILURE() << "template: " << source << "\nwanted:   " << entry.dump()
                    << "\ngot:      " << got;
  }
  EXPECT_EQ(failures, 0);
  EXPECT_GT(golden["entries"].size(), 1000u);
}

/// Case C04: a newline after a tag goes, and white space before one; signs overrule both.
TEST(TemplateExpression, BlocksAreTrimmedAsHuggingFaceDoes) {
  const Json context = {
      {"messages",
       {{{"role", "user"}, {"content", "hi"}}, {{"role", "assistant"}, {"content", "yo"}}}},
      {"add_generation_prompt", true}};
  EXPECT_EQ(renderText("{% for m in messages %}\n    {% if m.role == 'user' %}\nU:{{ m.content }}\n"
                       "    {%- else %}\nA:{{ m.content }}\n    {% endif %}\n{% endfor %}\n"
                       "{% if add_generation_prompt %}\nA:{% endif %}\n",
                       context),
            "U:hiA:yo\nA:");
  EXPECT_EQ(renderText("a\n  {# c #}\nb\n  {{ 'v' }}\n  c"), "a\nb\n  v\n  c");
  EXPECT_EQ(renderText("x  {%+ if true %} y{% endif +%}\nz"), "x   y\nz");
  EXPECT_EQ(
      renderText("{% for m in messages %}\n  {{- m.content -}}\n  |\n{% endfor %}\nend\n", context),
      "hi|\nyo|\nend");
}

/// Case C08: nothing is escaped for HTML, keys stay in order, numbers are Python's.
TEST(TemplateExpression, ToJsonIsThatOfHuggingFace) {
  const Json context = {{"x", {{"q", "<é & 'b'>"}, {"n", 1.0}, {"t", true}, {"z", nullptr}}},
                        {"e", {{"q", "é"}}},
                        {"order", {{"z", 1}, {"a", 2}, {"m", 3}}},
                        {"numbers", {1.0, 1e20, 1e16, 1e15, 1e-5, 0.1, -0.0, 7}}};
  EXPECT_EQ(renderText("{{ x | tojson }}", context),
            R"({"q": "<é & 'b'>", "n": 1.0, "t": true, "z": null})");
  EXPECT_EQ(renderText("{{ e | tojson(ensure_ascii=True) }}", context), R"({"q": "\u00e9"})");
  EXPECT_EQ(renderText("{{ e | tojson(indent=2) }}", context), "{\n  \"q\": \"é\"\n}");
  EXPECT_EQ(renderText("{{ order | tojson }}", context), R"({"z": 1, "a": 2, "m": 3})");
  EXPECT_EQ(renderText("{{ numbers | tojson }}", context),
            "[1.0, 1e+20, 1e+16, 1000000000000000.0, 1e-05, 0.1, -0.0, 7]");
}

} // namespace llmrt::test
