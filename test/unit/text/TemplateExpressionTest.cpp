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

} // namespace llmrt::test
