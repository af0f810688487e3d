#include "runtime/server/GrammarFields.h"

#include "runtime/decode/grammar/Grammar.h"

namespace llmrt::server {
namespace {

using GrammarResult = Result<std::shared_ptr<const Grammar>>;

void set(Fields &fields, std::string_view name, const Served &served, GenerationRequest &request,
         const GrammarResult &grammar) {
  // Whatever is wrong with it, the client wrote it.
  if (!grammar)
    return fields.fail(badRequest("'" + fields.path(name) + "': " + grammar.status().message(),
                                  fields.path(name)));
  if (request.grammar)
    return fields.fail(name, "is given beside another field that says what form the answer has");
  Result<std::shared_ptr<const VocabularyTrie>> trie = served.model->vocabularyTrie();
  if (!trie)
    return fields.fail(fromStatus(trie.status(), fields.path(name)));
  request.grammar = *grammar;
  request.vocabularyTrie = *trie;
}

/// A schema, as an object or as its text.
GrammarResult fromSchema(JsonValue schema) {
  if (schema.isString())
    return Grammar::fromJsonSchema(schema.asString());
  LLMRT_ASSIGN_OR_RETURN(Json json, toJson(schema));
  return Grammar::fromJsonSchema(dump(json));
}

GrammarResult fromText(JsonValue text, GrammarResult (*make)(std::string_view)) {
  if (!text.isString())
    return invalidArgument(std::string("must be a string, not ") + text.typeName());
  return make(text.asString());
}

/// One of several texts, as a regular expression.
GrammarResult fromChoice(JsonValue list) {
  if (!list.isArray() || list.size() == 0)
    return invalidArgument("must be an array of texts");
  std::string regex;
  for (JsonValue element : list.elements()) {
    if (!element.isString())
      return invalidArgument(std::string("must be an array of texts, and holds ") +
                             element.typeName());
    regex += regex.empty() ? "" : "|";
    for (char c : element.asString()) {
      if (std::string_view("\\^$.|?*+()[]{}/-").find(c) != std::string_view::npos)
        regex += '\\';
      regex += c;
    }
  }
  return Grammar::fromRegex("(" + regex + ")");
}

/// {"type": "text" | "json_object" | "json_schema"}; \p schema is where the last one has its
/// schema.
void readFormat(Fields &fields, std::string_view name, JsonValue format, JsonValue schema,
                const Served &served, GenerationRequest &request) {
  JsonValue type = format.isObject() ? format["type"] : JsonValue();
  if (!type.isString())
    return fields.fail(name, "must be an object with a type");
  if (type.asString() == "text")
    return;
  if (type.asString() == "json_object")
    return set(fields, name, served, request, Grammar::anyJsonObject());
  if (type.asString() != "json_schema")
    return fields.fail(name, "may have the types 'text', 'json_object' and 'json_schema'");
  if (!schema.isObject())
    return fields.fail(name, "of type 'json_schema' needs a schema, an object");
  set(fields, name, served, request, fromSchema(schema));
}

void readStructured(Fields &fields, const Served &served, GenerationRequest &request) {
  JsonValue value = fields.value("structured_outputs");
  if (!value)
    return;
  if (!value.isObject())
    return fields.fail("structured_outputs", "must be an object");
  Fields inner(value, "structured_outputs.");
  if (JsonValue schema = inner.value("json"))
    set(inner, "json", served, request, fromSchema(schema));
  if (JsonValue regex = inner.value("regex"))
    set(inner, "regex", served, request, fromText(regex, Grammar::fromRegex));
  if (JsonValue choice = inner.value("choice"))
    set(inner, "choice", served, request, fromChoice(choice));
  if (JsonValue grammar = inner.value("grammar"))
    set(inner, "grammar", served, request, fromText(grammar, Grammar::fromGbnf));
  if (inner.boolean("json_object").value_or(false))
    set(inner, "json_object", served, request, Grammar::anyJsonObject());
  std::vector<std::string> unread = inner.unread();
  if (inner.ok() && !unread.empty())
    inner.fail(badRequest("'" + unread[0] + "' is not supported", unread[0]));
  if (inner.error())
    fields.fail(*inner.error());
}

} // namespace

void readGrammar(Fields &fields, const Served &served, GenerationRequest &request) {
  if (JsonValue format = fields.value("response_format")) {
    JsonValue inner = format.isObject() ? format["json_schema"] : JsonValue();
    readFormat(fields, "response_format", format, inner.isObject() ? inner["schema"] : JsonValue(),
               served, request);
  }
  for (const char *name : {"guided_json", "json_schema"})
    if (JsonValue schema = fields.value(name))
      set(fields, name, served, request, fromSchema(schema));
  if (JsonValue regex = fields.value("guided_regex"))
    set(fields, "guided_regex", served, request, fromText(regex, Grammar::fromRegex));
  if (JsonValue choice = fields.value("guided_choice"))
    set(fields, "guided_choice", served, request, fromChoice(choice));
  for (const char *name : {"guided_grammar", "grammar"})
    if (JsonValue grammar = fields.value(name);
        grammar && !(grammar.isString() && grammar.asString().empty()))
      set(fields, name, served, request, fromText(grammar, Grammar::fromGbnf));
  readStructured(fields, served, request);
}

void readTextFormat(Fields &fields, const Served &served, GenerationRequest &request) {
  JsonValue text = fields.value("text");
  if (!text)
    return;
  if (!text.isObject())
    return fields.fail("text", std::string("must be an object, not ") + text.typeName());
  Fields inner(text, "text.");
  if (JsonValue format = inner.value("format"))
    readFormat(inner, "format", format, format.isObject() ? format["schema"] : JsonValue(), served,
               request);
  if (inner.error())
    fields.fail(*inner.error());
}

std::optional<ApiError> forceCall(const Json &tools, const ToolChoice &choice, const Served &served,
                                  GenerationRequest &request) {
  Json calls = Json::array(), definitions = Json::object();
  for (const Json &tool : tools) {
    const Json &function = tool["function"];
    if (choice.mode == ToolChoice::Mode::Named && function["name"] != choice.name)
      continue;
    Json arguments = function.value("parameters", Json());
    if (!arguments.is_object() || arguments.empty())
      arguments = {{"type", "object"}};
    // References are from the root of the schema that they stand in.
    if (arguments.value("$defs", Json()).is_object()) {
      definitions.update(arguments["$defs"]);
      arguments.erase("$defs");
    }
    calls.push_back(
        {{"type", "object"},
         {"properties", {{"name", {{"const", function["name"]}}}, {"arguments", arguments}}},
         {"required", Json::array({"name", "arguments"})},
         {"additionalProperties", false}});
  }
  Json schema = calls.size() == 1 ? calls[0] : Json{{"anyOf", calls}};
  if (!definitions.empty())
    schema["$defs"] = std::move(definitions);
  if (request.grammar)
    return badRequest(
        "'tool_choice' forces a call, and another field says what form the answer has",
        "tool_choice");
  GrammarResult grammar = Grammar::fromJsonSchema(dump(schema));
  if (!grammar)
    return badRequest("'tools': " + grammar.status().message(), "tools");
  Result<std::shared_ptr<const VocabularyTrie>> trie = served.model->vocabularyTrie();
  if (!trie)
    return fromStatus(trie.status(), "tool_choice");
  request.grammar = *grammar;
  request.vocabularyTrie = *trie;
  return std::nullopt;
}

} // namespace llmrt::server
