// Regular expressions, GBNF and JSON schema: which texts they take, which tokens a mask lets pass.
#include "runtime/decode/grammar/GrammarMatcher.h"
#include "runtime/decode/grammar/IntegerRange.h"
#include "runtime/support/Mix64.h"

#include <gtest/gtest.h>
#include <string>

using namespace llmrt;

namespace {

using GrammarResult = Result<std::shared_ptr<const Grammar>>;

bool takes(const GrammarResult &grammar, std::string_view text) {
  EXPECT_TRUE(grammar) << grammar.status().message();
  if (!grammar)
    return false;
  GrammarAutomaton automaton(*grammar);
  GrammarAutomaton::State state = automaton.start();
  for (char c : text) {
    if (state == GrammarAutomaton::dead)
      return false;
    state = automaton.next(state, static_cast<uint8_t>(c));
  }
  return state != GrammarAutomaton::dead && automaton.accepts(state);
}

struct Case {
  const char *grammar;
  std::vector<const char *> right, wrong;
};

TEST(Grammar, RegexTakesWholeTexts) {
  const Case cases[] = {
      {"", {""}, {"a"}},
      {"abc", {"abc"}, {"", "ab", "abcd", "xabc"}},
      {"^abc$", {"abc"}, {"abcd"}},
      {"a|bc|", {"a", "bc", ""}, {"b", "abc"}},
      {"a*b+c?", {"b", "aabbc", "abb"}, {"", "a", "c", "bcc"}},
      {"(ab|c){2,3}", {"abab", "cc", "cabc"}, {"ab", "cccc", ""}},
      {"(?:x)(?<name>y)", {"xy"}, {"x"}},
      {"[a-cx-]+", {"abc-x"}, {"d", ""}},
      {"[^0-9]", {"a", "\xc3\xa9", "\xf0\x9f\x98\x80"}, {"5", "\xc3", ""}},
      {"\\d{4}-\\d\\d", {"2024-05"}, {"2024-5", "20240-05"}},
      {"\\w+\\s\\W", {"ab_1 !"}, {"ab1", "ab 1"}},
      {".", {"a", "\xe2\x82\xac"}, {"\n", "", "ab"}},
      {"\\x41\\u00e9\\u{1F600}", {"A\xc3\xa9\xf0\x9f\x98\x80"}, {"A"}},
      {"\\.\\*\\(\\[", {".*(["}, {"a"}},
      {"(a|b)*?abb", {"abb", "aababb"}, {"ab", "abba"}},
      {"a{0}b", {"b"}, {"ab"}},
      {"((a?)*)*", {"", "aaa"}, {"b"}}, // loops over nothing end
      {"[\\u0400-\\u04FF]+", {"\xd0\x96"}, {"a", "\xd0"}},
  };
  for (const Case &c : cases) {
    GrammarResult grammar = Grammar::fromRegex(c.grammar);
    for (const char *text : c.right)
      EXPECT_TRUE(takes(grammar, text)) << c.grammar << " : " << text;
    for (const char *text : c.wrong)
      EXPECT_FALSE(takes(grammar, text)) << c.grammar << " : " << text;
  }
}

TEST(Grammar, RegexErrorsSayWhatAndWhere) {
  const std::pair<const char *, const char *> cases[] = {{"a(b", "'(' without ')'"},
                                                         {"a)", "')' without '(' at position 1"},
                                                         {"[a", "'[' without ']'"},
                                                         {"*a", "nothing to repeat"},
                                                         {"a**", "nothing to repeat"},
                                                         {"a{3,2}", "out of order"},
                                                         {"a{3", "does not end"},
                                                         {"a{20000}", "more than 10000"},
                                                         {"(?=a)", "lookahead"},
                                                         {"(?<!a)", "lookbehind"},
                                                         {"(a)\\1", "backreferences"},
                                                         {"\\bword", "\\b is not supported"},
                                                         {"\\p{L}", "\\p"},
                                                         {"a$b", "ends"},
                                                         {"\\", "backslash at the end"},
                                                         {"[z-a]", "out of order"},
                                                         {"\\q", "unknown escape \\q"},
                                                         {"\xff", "UTF-8"},
                                                         {"((a{999}){999}){99}", "too large"}};
  for (auto [regex, message] : cases) {
    GrammarResult grammar = Grammar::fromRegex(regex);
    ASSERT_FALSE(grammar) << regex;
    EXPECT_NE(grammar.status().message().find(message), std::string::npos)
        << regex << ": " << grammar.status().message();
  }
  EXPECT_FALSE(Grammar::fromRegex(std::string(5000, '(')));
}

TEST(Grammar, Gbnf) {
  GrammarResult sums = Grammar::fromGbnf(R"x(# sums
root  ::= term ("+" term)*   # left to right
term  ::= number | "(" root ")"
number ::= [0-9]+ ("." [0-9]{1,2})?
)x");
  for (const char *text : {"1", "1+2.25", "(1+(2))+33", "((((7))))"})
    EXPECT_TRUE(takes(sums, text)) << text;
  for (const char *text : {"", "1+", "(1", "1.234", "1)", "+1"})
    EXPECT_FALSE(takes(sums, text)) << text;
  GrammarResult lines = Grammar::fromGbnf("root ::= \"a\\n\" |\n  \"\\x62\" [^a-z\\]] |\n (\n"
                                          "\"\\u00e9\"\n)\n| . . .\n");
  for (const char *text : {"a\n", "bX", "\xc3\xa9", "xyz"})
    EXPECT_TRUE(takes(lines, text)) << text;
  for (const char *text : {"a", "bx", "b]", "xy"})
    EXPECT_FALSE(takes(lines, text)) << text;
}

TEST(Grammar, GbnfErrorsNameLineAndRule) {
  const std::pair<const char *, const char *> cases[] = {
      {"", "no rule 'root'"},
      {"root ::= other", "'other' is used and not defined"},
      {"root ::= \"a\"\nroot ::= \"b\"", "line 2: the rule 'root' is defined twice"},
      {"root ::= root \"a\" | \"a\"", "left recursion"},
      {"root ::= a\na ::= b? c\nb ::= \"x\"\nc ::= a", "left recursion"},
      {"root = \"a\"", "'::='"},
      {"root ::= \"a", "closing"},
      {"root ::= [a", "'['"},
      {"root ::= (\"a\"", "'(' without ')'"},
      {"root ::= \"a\"{x}", "needs a number"},
      {"root ::= \"\\q\"", "unknown escape"},
      {"root ::= \"a\" )", "not expected"}};
  for (auto [text, message] : cases) {
    GrammarResult grammar = Grammar::fromGbnf(text);
    ASSERT_FALSE(grammar) << text;
    EXPECT_NE(grammar.status().message().find(message), std::string::npos)
        << text << ": " << grammar.status().message();
  }
}

TEST(Grammar, JsonSchemas) {
  const Case cases[] = {
      {R"({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
           "required": ["name"], "additionalProperties": false})",
       {R"({"name": "x"})", R"({"name":"x","age":5})",
        "{\n  \"name\": \"\\u00e9\\n\",\n  \"age\": -3}"},
       {"{}", R"({"age":5})", R"({"name":5})", R"({"name":"x","age":5.5})", R"({"name":"x",})",
        R"({"name":"x","other":1})", R"({"name":"x","age":05})"}},
      {R"({"properties": {"a": {"type": "null"}, "b": {"type": "null"}, "c": {"type": "null"}}})",
       {"{}", R"({"a":null})", R"({"b":null})", R"({"a":null,"c":null})",
        R"({"a":null,"b":null,"c":null})"},
       {R"({"c":null,"a":null})", R"({"a":null,})", R"({,"a":null})"}},
      {R"({"type": "object", "properties": {"ab": {"type": "boolean"}},
           "additionalProperties": {"type": "integer"}})",
       {"{}", R"({"ab":true})", R"({"x":1})", R"({"ab":false,"abc":2,"a":3,"":4})"},
       {R"({"ab":1})", R"({"x":true})", R"({"x":1,"ab":7})"}},
      {R"({"type": "array", "items": {"enum": ["a", 1, null]}, "minItems": 1, "maxItems": 3})",
       {R"(["a"])", "[1, null]", R"(["a","a",1])"},
       {"[]", "[1,1,1,1]", "[2]", "[1,]"}},
      {R"({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": false})",
       {R"([1,"x"])"},
       {"[1]", R"([1,"x",2])"}},
      {R"({"type": "array", "items": {"type": "boolean"}})",
       {"[]", "[ ]", "[true,false]"},
       {"[1]"}},
      {R"({"type": "integer", "minimum": -12, "exclusiveMaximum": 105})",
       {"-12", "-9", "0", "7", "99", "104"},
       {"-13", "105", "1000", "-0", "007"}},
      {R"({"type": "number"})", {"1", "-0.5", "1e5", "2.5E-3"}, {".5", "1.", "+1", "01", "NaN"}},
      {R"({"type": "string", "minLength": 2, "maxLength": 3})",
       {R"("ab")", R"("a\n\u00e9")", "\"\xe2\x82\xac\xe2\x82\xac\""},
       {R"("a")", R"("abcd")"}},
      {R"({"type": "string"})",
       {R"("")", R"("\"\\\/")", R"("\ud83d\ude00")"},
       {R"("\ud83d")", R"("\x")", "\"\n\"", R"("a)"}},
      {R"({"type": "string", "pattern": "^[a-z]+\"$"})", {R"("ab\"")"}, {R"("ab")", R"("ab"")"}},
      {R"({"type": "string", "pattern": "b"})", {R"("abc")", R"("b")"}, {R"("a")"}},
      {R"({"format": "date"})", {R"("2024-02-30")"}, {R"("2024-13-01")", R"("x2024-01-01")"}},
      {R"({"format": "uuid"})", {R"("123e4567-e89b-12d3-a456-426614174000")"}, {R"("123")"}},
      {R"({"anyOf": [{"type": "string"}, {"type": "null"}]})", {R"("x")", "null"}, {"1"}},
      {R"({"type": ["integer", "null"]})", {"5", "null"}, {"true"}},
      {R"({"const": {"a": [1, "x"]}})", {R"({"a":[1,"x"]})"}, {R"({"a": [1,"x"]})"}},
      {R"({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {
           "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}, "required": ["next"]}}})",
       {R"({"next":null})", R"({"next": {"next": {"next": null}}})"},
       {"{}", R"({"next":1})"}},
      {"true", {"1", R"({"a":[1,{"b":null}]})", R"("x")"}, {"", "x"}},
      {R"({"title": "x", "description": "y"})", {"[1,2]"}, {"]"}},
  };
  for (const Case &c : cases) {
    GrammarResult grammar = Grammar::fromJsonSchema(c.grammar);
    for (const char *text : c.right)
      EXPECT_TRUE(takes(grammar, text)) << c.grammar << " : " << text;
    for (const char *text : c.wrong)
      EXPECT_FALSE(takes(grammar, text)) << c.grammar << " : " << text;
  }
  GrammarResult object = Grammar::anyJsonObject();
  EXPECT_TRUE(takes(object, R"({"a": {"b": [1, 2.5, "x", {}]}})"));
  EXPECT_FALSE(takes(object, "[1]"));
  std::string deep(300, '[');
  EXPECT_TRUE(takes(Grammar::fromJsonSchema("true"), deep + std::string(300, ']')));
}

TEST(Grammar, JsonSchemaErrorsNamePlaceAndKeyword) {
  const std::pair<const char *, const char *> cases[] = {
      {"{", "JSON schema"},
      {"5", "a schema is an object"},
      {"false", "accepts nothing"},
      {R"({"type": "text"})", "'text' is no type"},
      {R"({"type": "string", "minlength": 2})", "'minlength' is not supported for strings"},
      {R"({"type": "object", "properties": {"a": {"type": "number", "multipleOf": 2}}})",
       "#/properties/a: 'multipleOf'"},
      {R"({"type": "array", "uniqueItems": true})", "'uniqueItems'"},
      {R"x({"type": "string", "pattern": "(?=x)"})x", "lookahead"},
      {R"({"type": "string", "format": "hostname"})", "there are date"},
      {R"({"type": "string", "minLength": -1})", "minLength"},
      {R"({"type": "array", "minItems": 5, "maxItems": 2})", "minItems is above maxItems"},
      {R"({"type": "integer", "minimum": 5, "maximum": 4})", "no integer"},
      {R"({"type": "number", "minimum": 5})", "integers only"},
      {R"({"$ref": "#/$defs/none"})", "leads nowhere"},
      {R"({"$ref": "http://x/y"})", "same schema"},
      {R"({"$ref": "#"})", "left recursion"},
      {R"({"enum": []})", "at least one value"},
      {R"({"allOf": [{"type": "string"}, {"type": "null"}]})", "allOf"},
      {R"({"if": {}, "then": {}})", "'if'"},
      {R"({"type": "object", "required": "a"})", "list of names"}};
  for (auto [text, message] : cases) {
    GrammarResult grammar = Grammar::fromJsonSchema(text);
    ASSERT_FALSE(grammar) << text;
    EXPECT_NE(grammar.status().message().find(message), std::string::npos)
        << text << ": " << grammar.status().message();
  }
  std::string nested;
  for (int i = 0; i < 400; ++i)
    nested += R"({"type":"array","items":)";
  EXPECT_FALSE(Grammar::fromJsonSchema(nested + "true" + std::string(400, '}')));
}

TEST(Grammar, IntegerRangesHoldExactlyTheirIntegers) {
  for (uint64_t i = 0; i < 60; ++i) {
    int64_t a = int64_t(mix64(i) % 2400) - 1200, b = int64_t(mix64(i + 1000) % 2400) - 1200;
    int64_t low = std::min(a, b), high = std::max(a, b);
    GrammarBuilder builder;
    builder.define(builder.addRule("root"), integerRange(builder, low, high));
    auto grammar = builder.build();
    for (int64_t n = -1300; n <= 1300; n += n > low - 3 && n < low + 3     ? 1
                                            : n > high - 3 && n < high + 3 ? 1
                                                                           : 7)
      EXPECT_EQ(takes(grammar, std::to_string(n)), n >= low && n <= high)
          << n << " in " << low << " .. " << high;
  }
}

/// Tokens as a byte-level vocabulary has them: all bytes, and longer pieces.
std::shared_ptr<const VocabularyTrie> vocabularyOf(std::vector<std::string> &tokens) {
  tokens.assign(3, ""); // control tokens
  for (int byte = 0; byte < 256; ++byte)
    tokens.push_back(std::string(1, char(byte)));
  for (const char *piece :
       {"{\"", "\":",      "\": ",         "\",", "name",      "na", "tru",     "true", "null",
        "}}",  "123",      "12",           "\\n", "\\u00",     " {", "[[",      "]]",   "], [",
        "a\"", "\xe2\x82", "\xe2\x82\xac", "age", "\"age\": ", ", ", "e\": \"", "12" /* again */})
    tokens.push_back(piece);
  return VocabularyTrie::build(int32_t(tokens.size()), [&](int32_t id) { return tokens[size_t(id)]; });
}

TEST(Grammar, MasksAreThoseOfTryingEveryToken) {
  std::vector<std::string> tokens;
  auto trie = vocabularyOf(tokens);
  const GrammarResult grammars[] = {
      Grammar::fromJsonSchema("true"),
      Grammar::fromJsonSchema(
          R"({"properties": {"name": {"type": "string"}, "age": {"type": "integer"}}})"),
      Grammar::fromRegex("(\\d+, )*\\d{2,5}[\\u20ac\\u0416]?"),
      Grammar::fromGbnf("root ::= \"[\" (root (\", \" root)*)? \"]\"")};
  for (const GrammarResult &grammar : grammars)
    for (uint64_t walk = 0; walk < 12; ++walk) {
      ASSERT_TRUE(grammar);
      GrammarMatcher matcher(*grammar, trie);
      std::string text;
      for (uint64_t i = 0; i < 40; ++i) {
        std::span<const uint64_t> mask = matcher.mask();
        std::vector<int32_t> allowed;
        for (int32_t id = 0; id < int32_t(tokens.size()); ++id) {
          bool inMask = mask[size_t(id) / 64] >> (id % 64) & 1;
          ASSERT_EQ(inMask, matcher.fitting({&id, 1}) == 1) << text << " + " << tokens[size_t(id)];
          if (inMask)
            allowed.push_back(id);
        }
        ASSERT_TRUE(!allowed.empty() || matcher.canEnd()) << text;
        EXPECT_EQ(matcher.mustEnd(), allowed.empty());
        if (allowed.empty())
          break;
        int32_t next = allowed[mix64(walk * 100 + i) % allowed.size()];
        int32_t wrong = 0;
        EXPECT_FALSE(matcher.accept(wrong)) << "a control token";
        ASSERT_TRUE(matcher.accept(next));
        text += tokens[size_t(next)];
      }
    }
}

TEST(Grammar, LongTextsStayBounded) {
  std::vector<std::string> tokens;
  auto trie = vocabularyOf(tokens);
  // Nested ever deeper, every state is new: they are forgotten, and the brackets still match.
  GrammarMatcher matcher(*Grammar::fromJsonSchema("true"), trie);
  for (int i = 0; i < 20000; ++i) {
    ASSERT_TRUE(matcher.accept(3 + '['));
    if (i % 500 == 0)
      (void)matcher.mask();
  }
  for (int i = 0; i < 20000; ++i)
    ASSERT_TRUE(matcher.accept(3 + ']')) << i;
  EXPECT_TRUE(matcher.mustEnd());
  EXPECT_TRUE(matcher.status());
}

TEST(Grammar, FittingStopsAtTheFirstTokenThatIsRefused) {
  std::vector<std::string> tokens;
  auto trie = vocabularyOf(tokens);
  GrammarMatcher matcher(*Grammar::fromRegex("abc+"), trie);
  std::vector<int32_t> draft = {3 + 'a', 3 + 'b', 3 + 'x', 3 + 'c'};
  EXPECT_EQ(matcher.fitting(draft), 2);
  matcher.prepare(draft);
  EXPECT_EQ(matcher.fitting(draft), 2) << "looking ahead changes nothing";
  EXPECT_FALSE(matcher.accept(3 + 'b'));
  EXPECT_TRUE(matcher.accept(3 + 'a'));
}

} // namespace
