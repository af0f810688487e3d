#include "runtime/text/chat/ChatTemplate.h"

#include "runtime/text/chat/jinja/Evaluator.h"
#include "runtime/text/chat/jinja/Json.h"
#include "runtime/text/chat/jinja/Parser.h"
#include "runtime/text/chat/jinja/Unicode.h"

#include <new>
#include <nlohmann/json.hpp>

namespace llmrt {

using namespace jinja;

/// Published templates are below 20 KiB.
static constexpr size_t maxSourceBytes = 1 << 20;

Result<ChatTemplate> ChatTemplate::parse(std::string source) {
  if (source.size() > maxSourceBytes)
    return invalidFile("the chat template has " + std::to_string(source.size()) +
                       " bytes; at most " + std::to_string(maxSourceBytes) + " are allowed");
  if (!isValidUtf8(source))
    return invalidFile("the chat template is not valid UTF-8");
  try {
    auto program = std::make_shared<Program>();
    program->source = std::move(source);
    Parser(*program, tokenize(program->source)).run();
    return ChatTemplate(std::move(program));
  } catch (const TemplateError &error) {
    return error.toStatus().withContext("chat template");
  } catch (const std::bad_alloc &) {
    return resourceExhausted("chat template: out of memory");
  }
}

/// The value of a tool call's arguments given as JSON text; see RenderOptions.
static Value argumentsOf(Session &session, const std::string &text) {
  const bool blank = stripSpace(text, true, true).empty();
  nlohmann::ordered_json json = blank ? nlohmann::ordered_json::object()
                                      : nlohmann::ordered_json::parse(text, nullptr, false);
  if (!json.is_object())
    return Value::literal(text);
  Value value = fromJson(session, json);
  value.as<Dict>().text = std::make_shared<const Str>(blank ? "{}" : text, false, nullptr);
  return value;
}

static void parseArguments(Session &session, Value &messages) {
  if (!messages.is(Kind::List))
    return;
  auto member = [](Value &object, std::string_view name) -> Value * {
    return object.is(Kind::Dict) ? const_cast<Value *>(object.as<Dict>().find(name)) : nullptr;
  };
  auto replace = [&](Value *arguments) {
    if (arguments && arguments->isString())
      *arguments = argumentsOf(session, arguments->text());
  };
  for (Value &message : messages.as<List>().items) {
    Value *calls = member(message, "tool_calls");
    if (!calls || !calls->is(Kind::List))
      continue;
    for (Value &call : calls->as<List>().items) {
      replace(member(call, "arguments")); // some clients leave the level of `function` out
      if (Value *function = member(call, "function"))
        replace(member(*function, "arguments"));
    }
  }
}

Result<std::string> ChatTemplate::render(const nlohmann::ordered_json &context,
                                         const RenderOptions &options) const {
  if (!context.is_object())
    return invalidArgument("the context of a chat template must be an object");
  try {
    const CivilTime now = options.now ? *options.now : CivilTime::localNow();
    Session session(options.limits);
    Evaluator evaluator(session, *program_, now,
                        options.limits.outputBytes + 4 * textSize(context));
    for (const auto &[name, json] : context.items()) {
      Value value = fromJson(session, json);
      if (options.parseToolArguments && name == "messages")
        parseArguments(session, value);
      evaluator.define(name, std::move(value));
    }
    return evaluator.run();
  } catch (const TemplateError &error) {
    return error.toStatus().withContext("chat template");
  } catch (const std::bad_alloc &) {
    return resourceExhausted("chat template: out of memory");
  }
}

const std::string &ChatTemplate::source() const { return program_->source; }

bool ChatTemplate::mentions(std::string_view name) const {
  return program_->nameIds.contains(std::string(name));
}

bool ChatTemplate::takesContentParts() const {
  auto isContent = [&](const Expr *e) {
    switch (e->kind) {
    case ExprKind::Attribute:
      return static_cast<const AttributeExpr *>(e)->name == "content";
    case ExprKind::Name:
      return program_->names[static_cast<const NameExpr *>(e)->name] == "content";
    case ExprKind::Item: {
      const Expr *key = static_cast<const ItemExpr *>(e)->key;
      if (key->kind != ExprKind::Constant)
        return false;
      const Value &v = static_cast<const ConstantExpr *>(key)->value;
      return v.isString() && v.text() == "content";
    }
    default:
      return false;
    }
  };
  for (const auto &node : program_->nodes)
    if (auto *loop = dynamic_cast<const ForStmt *>(node.get()); loop && isContent(loop->iterable))
      return true;
  return false;
}

} // namespace llmrt
