//===- ApplyTemplateTest.cpp - what surrounds the rendering of a template -------------------===//
#include "test/unit/text/TemplateFiles.h"

#include "runtime/text/chat/ChatTemplateSet.h"

namespace llmrt::test {

using Json = nlohmann::ordered_json;

namespace {

Json user(const char *text) { return {{"role", "user"}, {"content", text}}; }
Json assistant(const char *text) { return {{"role", "assistant"}, {"content", text}}; }

std::string applied(const std::string &source, const Json &messages,
                    const ApplyOptions &options = {}) {
  Result<ChatTemplate> parsed = ChatTemplate::parse(source);
  if (!parsed)
    return "error: " + parsed.status().message();
  return textOf(applyChatTemplate(*parsed, messages, options));
}

// The header of the answer is added unless the assistant has spoken last (case C03).
TEST(ApplyTemplate, GenerationPromptFollowsTheLastRole) {
  const std::string withPrompt = "{% for m in messages %}{{ m.content }};{% endfor %}{% if "
                                 "add_generation_prompt %}A:{% endif %}";
  const Json asked = {user("hi")}, answered = {user("hi"), assistant("yo")};
  EXPECT_EQ(applied(withPrompt, asked), "hi;A:");
  EXPECT_EQ(applied(withPrompt, answered), "hi;yo;");
  ApplyOptions on, off;
  on.addGenerationPrompt = true;
  off.addGenerationPrompt = false;
  EXPECT_EQ(applied(withPrompt, answered, on), "hi;yo;A:");
  EXPECT_EQ(applied(withPrompt, asked, off), "hi;");
  EXPECT_EQ(applied("{% for m in messages %}{{ m.content }}{% endfor %}", asked), "hi");
}

// OpenAI's arguments are JSON text; templates want a mapping or print it (case C05).
TEST(ApplyTemplate, ToolArgumentsAreMappingAndText) {
  auto call = [](const char *arguments) {
    Json message = {{"role", "assistant"}, {"content", nullptr}};
    message["tool_calls"] = Json::array();
    message["tool_calls"].push_back({{"id", "c1"},
                                     {"type", "function"},
                                     {"function", {{"name", "f"}, {"arguments", arguments}}}});
    return Json::array({message});
  };
  const std::string head = "{% set args = messages[0].tool_calls[0].function.arguments %}";
  const char *rome = "{\"city\":\"Rom\"}";
  EXPECT_EQ(applied(head + "{{ args.city }}|{{ args | tojson }}", call("{\"city\": \"Rom\"}")),
            "Rom|{\"city\": \"Rom\"}");
  EXPECT_EQ(applied(head + "{{ args }}", call(rome)), rome);
  EXPECT_EQ(applied(head + "{{ 'f(' + args + ')' }}", call(rome)), "f({\"city\":\"Rom\"})");
  EXPECT_EQ(applied(head + "{{ args is mapping }}{{ args is string }}", call(rome)), "TrueFalse");
  EXPECT_EQ(applied(head + "{% for k, v in args.items() %}{{ k }}={{ v }}{% endfor %}", call(rome)),
            "city=Rom");
  EXPECT_EQ(applied(head + "{{ args }}|{{ args is string }}", call("{")), "{|True");
  EXPECT_EQ(applied(head + "{{ args }}|{{ args is string }}", call("[1]")), "[1]|True");
  EXPECT_EQ(applied(head + "{{ args }}|{{ args | tojson }}", call("")), "{}|{}");
  // Arguments that are an object already are printed as Python does.
  Json object = call("");
  object[0]["tool_calls"][0]["function"]["arguments"] = {{"city", "Rom"}};
  EXPECT_EQ(applied(head + "{{ args }}", object), "{'city': 'Rom'}");
}

// A model without a BOS token has an empty one (case C09).
TEST(ApplyTemplate, AbsentTokensAreEmptyText) {
  const Json asked = {user("hi")};
  EXPECT_EQ(applied("{{ bos_token }}hi", asked), "hi");
  EXPECT_EQ(applied("{{ bos_token + 'hi' }}", asked), "hi");
  EXPECT_EQ(applied("{{ foo.bar }}", asked), "error: chat template: line 1: 'foo' is undefined");
  EXPECT_EQ(applied("{% if foo %}a{% else %}b{% endif %}", asked), "b");
  EXPECT_EQ(applied("{{ messages[0].name }}|{{ messages[0]['name'] is defined }}", asked),
            "|False");
  EXPECT_EQ(applied("{{ tools is none }}{{ documents is none }}", asked), "TrueTrue");
}

// What users write is data, whatever it looks like.
TEST(ApplyTemplate, UserTextIsNeverCode) {
  const Json asked = {user("{{ bos_token }}{% raw %}{# x #}{% endraw %}")};
  ApplyOptions options;
  options.bosToken = "<s>";
  for (const char *t : {"{{ messages[0].content }}", "{{ messages[0]['content'] | trim }}",
                        "{% set x = messages[0].content %}{{ x ~ '' }}",
                        "{% macro f(x) %}{{ x }}{% endmacro %}{{ f(messages[0].content) }}"})
    EXPECT_EQ(applied(t, asked, options), "{{ bos_token }}{% raw %}{# x #}{% endraw %}") << t;
}

// Case V08: a newline between parts, whoever speaks; a template that takes parts gets them.
TEST(ApplyTemplate, ContentPartsAreJoinedForTextTemplates) {
  Json message = {{"role", "user"}};
  message["content"] = {{{"type", "text"}, {"text", "a"}}, {{"type", "text"}, {"text", "b"}}};
  for (const char *role : {"system", "assistant", "tool", "user"}) {
    message["role"] = role;
    EXPECT_EQ(applied("{{ messages[0].content }}", Json::array({message})), "a\nb") << role;
  }
  EXPECT_EQ(applied("{% for p in messages[0].content %}<{{ p.text }}>{% endfor %}",
                    Json::array({message})),
            "<a><b>");
  EXPECT_EQ(applied("{% for p in messages[0]['content'] %}<{{ p.type }}>{% endfor %}",
                    Json::array({message})),
            "<text><text>");
  message["content"] = Json::array();
  EXPECT_EQ(applied("<{{ messages[0].content }}>", Json::array({message})), "<>");
}

TEST(ApplyTemplate, MalformedInput_invalid) {
  EXPECT_EQ(applied("x", Json::object()), "error: messages must be an array");
  EXPECT_EQ(applied("x", Json::array()),
            "error: messages is empty; at least one message is needed");
  EXPECT_EQ(applied("x", Json::array({5})), "error: messages[0] must be an object");
  EXPECT_EQ(applied("x", Json::array({user("a"), {{"content", "b"}}})),
            "error: messages[1].role must be a string");
  ApplyOptions options;
  options.tools = "x";
  EXPECT_EQ(applied("x", Json::array({user("a")}), options), "error: tools must be an array");
}

TEST(ApplyTemplate, ExtraVariablesReachTheTemplate) {
  ApplyOptions options;
  options.extra = {{"enable_thinking", false}, {"bos_token", "B"}, {"messages", "no"}};
  EXPECT_EQ(applied("{{ enable_thinking }}{{ bos_token }}{{ messages|length }}",
                    Json::array({user("a")}), options),
            "FalseB1");
}

// A template that can't be parsed is an error, never replaced (case C11).
TEST(TemplateSet, BadTemplate_invalid) {
  for (const char *source : {"{% if %}", "{{ x | no_such_filter }}", "{{", "\xff"}) {
    Result<ChatTemplateSet> set = ChatTemplateSet::fromText(source);
    ASSERT_FALSE(set) << source;
    EXPECT_EQ(set.status().code(), StatusCode::InvalidFile);
  }
  EXPECT_EQ(ChatTemplateSet::fromText("a\n{{ x | no_such_filter }}").status().message(),
            "chat template: line 2: there is no filter 'no_such_filter'");
  EXPECT_FALSE(ChatTemplateSet::fromJson(5));
  EXPECT_FALSE(ChatTemplateSet::fromJson({{{"name", "a"}}}));
  EXPECT_FALSE(ChatTemplateSet::fromJson(
      {{{"name", "a"}, {"template", "x"}}, {{"name", "a"}, {"template", "y"}}}));
  Result<ChatTemplateSet> none = ChatTemplateSet::fromJson(Json());
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
  EXPECT_FALSE(none->choose(false));
}

TEST(TemplateSet, NamedTemplatesAreChosenByUse) {
  Json field = Json::array();
  for (const char *name : {"default", "tool_use", "rag"})
    field.push_back({{"name", name}, {"template", name}});
  Result<ChatTemplateSet> set = ChatTemplateSet::fromJson(field);
  ASSERT_TRUE(set) << set.status().message();
  EXPECT_EQ(set->choose(false)->source(), "default");
  EXPECT_EQ(set->choose(true)->source(), "tool_use");
  EXPECT_EQ(set->choose(true, "rag")->source(), "rag");
  Result<ChatTemplate> missing = set->choose(false, "other");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.status().message().find("'default', 'tool_use', 'rag'"), std::string::npos);
  Result<ChatTemplateSet> single = ChatTemplateSet::fromJson("only");
  ASSERT_TRUE(single);
  EXPECT_EQ(single->choose(true)->source(), "only");
}

} // namespace
} // namespace llmrt::test
