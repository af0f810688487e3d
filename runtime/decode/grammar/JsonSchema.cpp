// JSON schema (draft 2020-12) to a grammar of the JSON texts that it accepts. Properties come in
// the schema's order, which models write well and which keeps the grammar small.
#include "runtime/decode/grammar/IntegerRange.h"
#include "runtime/decode/grammar/JsonGrammar.h"
#include "runtime/decode/grammar/Regex.h"
#include "runtime/text/Json.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

namespace llmrt {
namespace {

using Expr = GrammarBuilder::Expr;

constexpr int maxNesting = 100;
constexpr int64_t maxCount = 10000;

/// They describe and don't restrict.
constexpr std::array annotations = {
    "title",   "description", "default",     "examples", "$schema",   "$id",       "$comment",
    "$anchor", "$defs",       "definitions", "readOnly", "writeOnly", "deprecated"};

class SchemaCompiler : private JsonGrammar {
public:
  explicit SchemaCompiler(GrammarBuilder &builder) : JsonGrammar(builder) {}

  Status compile(const JsonValue &schema) {
    schema_ = schema;
    LLMRT_ASSIGN_OR_RETURN(Expr body, value(schema, "#", 0));
    b_.define(root(), body);
    return Status::ok();
  }
  void compileAnyObject() { b_.define(root(), b_.call(anyRule(JsonType::Object))); }

private:
  Status fail(const std::string &path, const std::string &why,
              StatusCode code = StatusCode::InvalidArgument) const {
    return Status(code, "JSON schema, " + path + ": " + why);
  }
  // --- keywords -------------------------------------------------------------------------------

  /// Every key must be one of \p known or an annotation.
  Status checkKeys(const JsonValue &schema, const std::string &path,
                   std::initializer_list<std::string_view> known, std::string_view what) {
    for (JsonMember m : schema.members())
      if (std::find(known.begin(), known.end(), m.key) == known.end() &&
          std::find(annotations.begin(), annotations.end(), m.key) == annotations.end())
        return fail(path, "'" + std::string(m.key) + "' is not supported for " + std::string(what),
                    StatusCode::Unsupported);
    return Status::ok();
  }
  Status count(const JsonValue &schema, const std::string &path, const char *key, int64_t &value) {
    JsonValue given = schema[key];
    if (!given)
      return Status::ok();
    std::optional<int64_t> number =
        given.type() == JsonType::Number ? given.asInteger() : std::nullopt;
    if (!number || *number < 0 || *number > maxCount)
      return fail(path,
                  std::string(key) + " must be an integer from 0 to " + std::to_string(maxCount));
    value = *number;
    return Status::ok();
  }
  Status counts(const JsonValue &schema, const std::string &path, const char *leastKey,
                const char *mostKey, int64_t &least, int64_t &most) {
    LLMRT_RETURN_IF_ERROR(count(schema, path, leastKey, least));
    LLMRT_RETURN_IF_ERROR(count(schema, path, mostKey, most));
    if (most >= 0 && most < least)
      return fail(path, std::string(leastKey) + " is above " + mostKey);
    return Status::ok();
  }

  Result<Expr> value(const JsonValue &schema, const std::string &path, int depth) {
    if (depth > maxNesting)
      return fail(path, "nested deeper than " + std::to_string(maxNesting));
    if (schema.isBool()) {
      if (!schema.asBool())
        return fail(path, "false accepts nothing");
      return anyValue();
    }
    if (!schema.isObject())
      return fail(path, std::string("a schema is an object or true, not ") + schema.typeName());
    if (schema["$ref"])
      return reference(schema, path);
    if (JsonValue constant = schema["const"]) {
      LLMRT_RETURN_IF_ERROR(checkKeys(schema, path, {"const", "type"}, "a constant"));
      return text(writtenJson(constant));
    }
    if (JsonValue values = schema["enum"]) {
      LLMRT_RETURN_IF_ERROR(checkKeys(schema, path, {"enum", "type"}, "an enum"));
      if (!values.isArray() || values.size() == 0)
        return fail(path, "enum must be a list of at least one value");
      std::vector<Expr> parts;
      for (JsonValue v : values.elements())
        parts.push_back(text(writtenJson(v)));
      return b_.either(std::move(parts));
    }
    for (const char *key : {"anyOf", "oneOf", "allOf"})
      if (JsonValue list = schema[key])
        return choice(schema, list, key, path, depth);
    JsonValue type = schema["type"];
    if (type.isArray()) {
      std::vector<Expr> parts;
      for (JsonValue t : type.elements()) {
        LLMRT_ASSIGN_OR_RETURN(Expr part, typed(schema, t, path, depth, true));
        parts.push_back(part);
      }
      if (parts.empty())
        return fail(path, "type must name at least one type");
      return b_.either(std::move(parts));
    }
    return typed(schema, type, path, depth, false);
  }

  Result<Expr> choice(const JsonValue &schema, const JsonValue &list, const char *key,
                      const std::string &path, int depth) {
    LLMRT_RETURN_IF_ERROR(checkKeys(schema, path, {key, "type"}, std::string("use beside ") + key));
    if (!list.isArray() || list.size() == 0)
      return fail(path, std::string(key) + " must be a list of at least one schema");
    if (std::string_view(key) == "allOf" && list.size() > 1)
      return fail(path, "allOf of more than one schema is not supported; merge them",
                  StatusCode::Unsupported);
    std::vector<Expr> parts;
    for (JsonValue v : list.elements()) {
      LLMRT_ASSIGN_OR_RETURN(
          Expr part, value(v, path + "/" + key + "/" + std::to_string(parts.size()), depth + 1));
      parts.push_back(part);
    }
    return b_.either(std::move(parts));
  }

  Result<Expr> reference(const JsonValue &schema, const std::string &path) {
    LLMRT_RETURN_IF_ERROR(checkKeys(schema, path, {"$ref"}, "use beside $ref"));
    JsonValue given = schema["$ref"];
    std::string target(given.isString() ? given.asString() : "");
    if (!target.starts_with("#") || (target.size() > 1 && target[1] != '/'))
      return fail(path, "$ref must be '#' or '#/...', a place in the same schema");
    auto [place, isNew] = references_.try_emplace(target, 0);
    if (!isNew)
      return b_.call(place->second);
    JsonValue found = schema_;
    for (size_t at = 1; at < target.size();) {
      size_t end = std::min(target.find('/', at + 1), target.size());
      std::string key;
      for (size_t i = at + 1; i < end; ++i)
        if (target[i] == '~' && i + 1 < end)
          key += target[++i] == '0' ? '~' : '/';
        else
          key += target[i];
      found = found.isObject() ? found[key] : JsonValue();
      at = end;
    }
    if (!found)
      return fail(path, "$ref '" + target + "' leads nowhere");
    uint32_t rule = place->second = b_.addRule(target);
    // References nest no deeper than the schema does: each is compiled once.
    if (++openReferences_ > maxNesting)
      return fail(path, "references nested deeper than " + std::to_string(maxNesting));
    LLMRT_ASSIGN_OR_RETURN(Expr body, value(found, target, 0));
    --openReferences_;
    b_.define(rule, body);
    return b_.call(rule);
  }

  Result<Expr> typed(const JsonValue &schema, const JsonValue &type, const std::string &path,
                     int depth, bool several) {
    std::string_view name = type.isString() ? type.asString() : "";
    if (type && !type.isString())
      return fail(path, "type must be a name");
    if (!type)
      name = schema["properties"] || schema["additionalProperties"] || schema["required"] ? "object"
             : schema["items"] || schema["prefixItems"]                                   ? "array"
             : schema["pattern"] || schema["format"]                                      ? "string"
                                                                                          : "";
    if (name == "object")
      return object(schema, path, depth, several);
    if (name == "array")
      return array(schema, path, depth, several);
    if (name == "string")
      return stringOf(schema, path, several);
    if (name == "integer" || name == "number")
      return numeric(schema, path, name == "integer", several);
    if (!several)
      LLMRT_RETURN_IF_ERROR(checkKeys(schema, path, {"type"}, name.empty() ? "any value" : name));
    if (name == "boolean")
      return b_.either({text("true"), text("false")});
    if (name == "null")
      return text("null");
    if (!type)
      return anyValue();
    return fail(path, "'" + std::string(name) +
                          "' is no type; there are object, array, string, number, integer, "
                          "boolean and null");
  }

  Result<Expr> numeric(const JsonValue &schema, const std::string &path, bool isInteger,
                       bool several) {
    if (!several)
      LLMRT_RETURN_IF_ERROR(checkKeys(
          schema, path, {"type", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
          "numbers"));
    std::optional<int64_t> least, most;
    for (const char *key : {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"}) {
      JsonValue given = schema[key];
      if (!given)
        continue;
      if (!isInteger)
        return fail(path, std::string(key) + " is supported for integers only",
                    StatusCode::Unsupported);
      std::optional<int64_t> bound =
          given.type() == JsonType::Number ? given.asInteger() : std::nullopt;
      if (!bound || *bound > integerLimit || *bound < -integerLimit)
        return fail(path, std::string(key) + " must be an integer of up to 16 digits");
      bool exclusive = std::string_view(key).starts_with("exclusive");
      if (std::string_view(key).ends_with("inimum"))
        least = std::max(least.value_or(-integerLimit), *bound + exclusive);
      else
        most = std::min(most.value_or(integerLimit), *bound - exclusive);
    }
    if (!isInteger)
      return number();
    if (!least && !most)
      return integer();
    int64_t low = least.value_or(-integerLimit), high = most.value_or(integerLimit);
    if (low > high)
      return fail(path, "no integer lies between the limits");
    return integerRange(b_, low, high);
  }

  Result<Expr> stringOf(const JsonValue &schema, const std::string &path, bool several) {
    if (!several)
      LLMRT_RETURN_IF_ERROR(checkKeys(
          schema, path, {"type", "minLength", "maxLength", "pattern", "format"}, "strings"));
    JsonValue pattern = schema["pattern"], format = schema["format"];
    if ((pattern || format) && (schema["minLength"] || schema["maxLength"]))
      return fail(path, "a length beside pattern or format is not supported",
                  StatusCode::Unsupported);
    if (pattern || format) {
      std::string regex;
      if (pattern && !pattern.isString())
        return fail(path, "pattern must be a text");
      if (pattern) {
        regex = pattern.asString();
      } else {
        regex = jsonStringFormat(format.isString() ? format.asString() : "");
        if (regex.empty())
          return fail(path,
                      "this format is not supported; there are date, time, date-time, uuid, ipv4 "
                      "and email",
                      StatusCode::Unsupported);
      }
      RegexOptions options;
      options.insideJsonString = options.search = true;
      Result<Expr> inner = parseRegex(regex, b_, options);
      if (!inner)
        return fail(path, inner.status().message(), inner.status().code());
      return b_.sequence({text("\""), *inner, text("\"")});
    }
    int64_t least = 0, most = GrammarBuilder::unlimited;
    LLMRT_RETURN_IF_ERROR(counts(schema, path, "minLength", "maxLength", least, most));
    return string(least, most);
  }

  Result<Expr> array(const JsonValue &schema, const std::string &path, int depth, bool several) {
    if (!several)
      LLMRT_RETURN_IF_ERROR(checkKeys(
          schema, path, {"type", "items", "prefixItems", "minItems", "maxItems"}, "arrays"));
    int64_t least = 0, most = GrammarBuilder::unlimited;
    LLMRT_RETURN_IF_ERROR(counts(schema, path, "minItems", "maxItems", least, most));
    JsonValue items = schema["items"], prefix = schema["prefixItems"];
    bool closed = items.isBool() && !items.asBool();
    Expr element = 0;
    if (!closed) {
      LLMRT_ASSIGN_OR_RETURN(element,
                             items ? value(items, path + "/items", depth + 1) : anyValue());
    }
    if (!prefix) {
      if (closed && least > 0)
        return fail(path, "no items are allowed, and minItems asks for some");
      return listOf(element, least, closed ? 0 : most);
    }
    if (!prefix.isArray() || prefix.size() == 0)
      return fail(path, "prefixItems must be a list of at least one schema");
    // All of the prefix, then the others.
    std::vector<Expr> parts = {text("["), ws()};
    int64_t n = 0;
    for (JsonValue v : prefix.elements()) {
      if (n > 0)
        parts.insert(parts.end(), {text(","), ws()});
      LLMRT_ASSIGN_OR_RETURN(Expr part,
                             value(v, path + "/prefixItems/" + std::to_string(n), depth + 1));
      parts.push_back(part);
      ++n;
    }
    if (most >= 0 && most < n)
      return fail(path, "maxItems is below the number of prefixItems", StatusCode::Unsupported);
    if (closed && least > n)
      return fail(path, "no items beyond the prefix are allowed, and minItems asks for some");
    if (!closed)
      parts.push_back(b_.repeat(b_.sequence({text(","), ws(), element}),
                                std::max<int64_t>(least - n, 0), most < 0 ? most : most - n));
    parts.insert(parts.end(), {ws(), text("]")});
    return b_.sequence(std::move(parts));
  }

  Result<Expr> object(const JsonValue &schema, const std::string &path, int depth, bool several) {
    if (!several)
      LLMRT_RETURN_IF_ERROR(checkKeys(
          schema, path, {"type", "properties", "required", "additionalProperties"}, "objects"));
    struct Property {
      Expr content;
      bool required;
    };
    std::vector<Property> properties;
    std::vector<std::string> names, required;
    if (JsonValue list = schema["required"]) {
      if (!list.isArray())
        return fail(path, "required must be a list of names");
      for (JsonValue v : list.elements()) {
        if (!v.isString())
          return fail(path, "required must be a list of names");
        required.emplace_back(v.asString());
      }
    }
    if (JsonValue list = schema["properties"]) {
      if (!list.isObject())
        return fail(path, "properties must be an object");
      for (JsonMember m : list.members()) {
        std::string name(m.key);
        LLMRT_ASSIGN_OR_RETURN(Expr content,
                               value(m.value, path + "/properties/" + name, depth + 1));
        bool isRequired = std::find(required.begin(), required.end(), name) != required.end();
        names.push_back(name);
        properties.push_back({member(text(jsonString(name)), content), isRequired});
      }
    }
    JsonValue additional = schema["additionalProperties"];
    // Where properties are listed, a model is held to them unless the schema asks for others.
    bool open = additional ? !(additional.isBool() && !additional.asBool()) : properties.empty();
    for (const std::string &name : required)
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        LLMRT_ASSIGN_OR_RETURN(Expr content, additional.isObject()
                                                 ? value(additional, path, depth + 1)
                                                 : Result<Expr>(anyValue()));
        names.push_back(name);
        properties.push_back({member(text(jsonString(name)), content), true});
      }
    Expr other = 0;
    if (open) {
      LLMRT_ASSIGN_OR_RETURN(Expr content,
                             additional && additional.isObject()
                                 ? value(additional, path + "/additionalProperties", depth + 1)
                                 : Result<Expr>(anyValue()));
      Expr key = names.empty() ? string() : b_.sequence({text("\""), otherThan(names), text("\"")});
      other = member(key, content);
    }
    auto comma = [&](Expr e) { return b_.sequence({text(","), ws(), e}); };
    // after: what may follow once a member was written; first: while none was.
    Expr after = open ? b_.repeat(comma(other), 0) : b_.empty();
    Expr first = open ? b_.optional(b_.sequence({other, after})) : b_.empty();
    for (size_t i = properties.size(); i-- > 0;) {
      const Property &p = properties[i];
      uint32_t rest = b_.addRule(path + " after " + names[i]);
      b_.define(rest, after);
      Expr here = b_.sequence({p.content, b_.call(rest)});
      first = p.required ? here : b_.either({here, first});
      after =
          p.required ? comma(here) : b_.sequence({b_.optional(comma(p.content)), b_.call(rest)});
    }
    return b_.sequence({text("{"), ws(), first, ws(), text("}")});
  }

  JsonValue schema_;
  std::map<std::string, uint32_t> references_;
  int openReferences_ = 0;
};

Result<std::shared_ptr<const Grammar>> built(GrammarBuilder &builder) {
  Result<std::shared_ptr<const Grammar>> made = builder.build();
  return made ? made : made.status().withContext("JSON schema");
}

} // namespace

Result<std::shared_ptr<const Grammar>> Grammar::fromJsonSchema(std::string_view schema) {
  Result<JsonDocument> document = JsonDocument::parse(schema);
  if (!document)
    return document.status().withContext("JSON schema");
  GrammarBuilder builder;
  LLMRT_RETURN_IF_ERROR(SchemaCompiler(builder).compile(document->root()));
  return built(builder);
}

Result<std::shared_ptr<const Grammar>> Grammar::anyJsonObject() {
  GrammarBuilder builder;
  SchemaCompiler(builder).compileAnyObject();
  return built(builder);
}

} // namespace llmrt
