#include "runtime/server/Api.h"

#include "runtime/server/ChatRequest.h"
#include "runtime/server/MessagesEndpoint.h"
#include "runtime/server/ResponsesEndpoint.h"
#include "runtime/server/StaticFiles.h"

#include <algorithm>

namespace llmrt::server {
namespace {

/// Equal in a time that does not tell where they differ.
bool equalSecret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() != b.size();
  for (size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^
                  static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
  return difference == 0;
}

Json modelJson(const Served &served, const std::string &name) {
  return {{"id", name},         {"object", "model"},     {"created", served.created},
          {"owned_by", "llmc"}, {"root", served.name()}, {"max_model_len", served.maxContext}};
}

ApiError modelNotFound(const Served &served, const std::string &name) {
  return {404,
          "the model '" + name.substr(0, 200) + "' does not exist; served here: '" + served.name() +
              "'",
          "invalid_request_error",
          "model",
          "model_not_found",
          0};
}

HttpResponse json(const Json &value) { return {200, "application/json", dump(value)}; }

} // namespace

const Api::Route Api::routes[] = {
    {"GET", "/health", &Api::health, true},
    {"GET", "/v1/models", &Api::models},
    {"GET", "/v1/models/", &Api::models},
    {"GET", "/version", &Api::version},
    {"GET", "/metrics", &Api::metrics},
    {"GET", "/plan", &Api::plan},
    {"GET", "/", &Api::page, true},
    {"GET", "/openapi.json", &Api::openApi, true},
    {"POST", "/v1/completions", nullptr, false, prepareCompletion},
    {"POST", "/v1/chat/completions", nullptr, false, prepareChat},
    {"POST", "/v1/responses", nullptr, false, prepareResponse},
    {"POST", "/v1/messages", nullptr, false, prepareMessages},
    {"POST", "/v1/embeddings", nullptr, false, nullptr, embeddings},
    {"POST", "/tokenize", nullptr, false, nullptr, tokenize},
    {"POST", "/detokenize", nullptr, false, nullptr, detokenize},
    {"POST", "/apply-template", nullptr, false, nullptr, applyTemplate},
};

Api::Api(const ServerOptions &options, Log &log) : options_(options), log_(log), workers_(2) {}

Api::~Api() { stop(); }

void Api::serve(std::unique_ptr<Served> served) {
  served_ = std::move(served);
  ready_.store(served_.get());
}

void Api::stop() {
  workers_.join();
  // The engine's thread ends here; the rest stays, for whoever still holds it.
  if (served_)
    served_->engine->stop();
}

uint32_t Api::inFlight() const {
  Served *served = ready_.load();
  return preparing_.load() + (served ? served->engine->inFlight() : 0);
}

const Api::Route *Api::find(const HttpRequest &request, bool &otherMethod) const {
  std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  otherMethod = false;
  for (const Route &route : routes) {
    bool below = route.path.size() > 1 && route.path.ends_with('/');
    if (below ? !(request.path.starts_with(route.path) && request.path.size() > route.path.size())
              : request.path != route.path)
      continue;
    if (route.method == method)
      return &route;
    otherMethod = true;
  }
  return nullptr;
}

bool Api::hasKey(const HttpRequest &request) const {
  std::string_view given = request.apiKey;
  constexpr std::string_view bearer = "Bearer ";
  if (request.authorization.starts_with(bearer))
    given = std::string_view(request.authorization).substr(bearer.size());
  bool found = false;
  for (const std::string &key : options_.apiKeys)
    found |= equalSecret(given, key);
  return found;
}

std::optional<ApiError> Api::checkHead(const HttpRequest &request) {
  if (request.method == "OPTIONS") // a browser's question, which carries no key
    return std::nullopt;
  bool otherMethod = false;
  const Route *route = find(request, otherMethod);
  if (!options_.apiKeys.empty() && !(route && route->open) && !hasKey(request))
    return ApiError{401,
                    request.authorization.empty() && request.apiKey.empty()
                        ? "an API key is needed: Authorization: Bearer KEY"
                        : "the API key is wrong",
                    "invalid_request_error",
                    "",
                    "invalid_api_key",
                    0};
  if (route)
    return std::nullopt;
  if (otherMethod)
    return ApiError{405,
                    request.method.substr(0, 20) + " is not allowed for " +
                        request.path.substr(0, 100),
                    "invalid_request_error",
                    "",
                    "method_not_allowed",
                    0};
  return ApiError{404,
                  "there is no " + request.path.substr(0, 100) + " here",
                  "invalid_request_error",
                  "",
                  "not_found",
                  0};
}

void Api::handle(std::shared_ptr<Exchange> exchange) {
  const HttpRequest &request = exchange->request();
  if (request.method == "OPTIONS") {
    HttpResponse response{204, "", ""};
    if (!request.origin.empty())
      response.headers = {
          {"Access-Control-Allow-Methods", "GET, POST, OPTIONS"},
          {"Access-Control-Allow-Headers", "Authorization, Content-Type, X-Api-Key, X-Request-Id"},
          {"Access-Control-Max-Age", "600"}};
    return exchange->respond(std::move(response));
  }
  bool otherMethod = false;
  const Route *route = find(request, otherMethod);
  log_.debug("request",
             {{"request_id", request.id}, {"method", request.method}, {"path", request.path}});
  if (route->handler)
    (this->*route->handler)(std::move(exchange));
  else
    work(std::move(exchange), *route);
}

void Api::health(std::shared_ptr<Exchange> exchange) {
  Served *served = ready_.load();
  std::string failure = served ? served->engine->failure() : "";
  const char *state = !served                   ? "loading"
                      : served->engine->stuck() ? "stuck"
                      : !failure.empty()        ? "failing"
                      : draining_.load()        ? "draining"
                                                : "ok";
  Json body = {{"status", state}};
  if (!failure.empty())
    body["message"] = failure;
  bool well = std::string_view(state) == "ok";
  exchange->respond(HttpResponse{well ? 200 : 503, "application/json", dump(body)});
}

Served *Api::ready(Exchange &exchange) {
  Served *served = ready_.load();
  if (!served)
    exchange.respond(ApiError{503, "the model is being loaded", "server_error", "", "loading", 2});
  else if (draining_.load())
    exchange.respond(drainingError());
  else
    return served;
  return nullptr;
}

void Api::models(std::shared_ptr<Exchange> exchange) {
  Served *served = ready(*exchange);
  if (!served)
    return;
  constexpr std::string_view prefix = "/v1/models/";
  const std::string &path = exchange->request().path;
  if (path.starts_with(prefix)) {
    std::string name = path.substr(prefix.size());
    if (std::find(served->names.begin(), served->names.end(), name) == served->names.end())
      return exchange->respond(modelNotFound(*served, name));
    return exchange->respond(json(modelJson(*served, name)));
  }
  Json list = {{"object", "list"}, {"data", Json::array()}};
  for (const std::string &name : served->names)
    list["data"].push_back(modelJson(*served, name));
  exchange->respond(json(list));
}

void Api::version(std::shared_ptr<Exchange> exchange) {
  exchange->respond(json({{"version", LLMRT_SERVER_VERSION}}));
}

void Api::metrics(std::shared_ptr<Exchange> exchange) {
  Served *served = ready_.load();
  if (!served)
    return exchange->respond(
        ApiError{503, "the model is being loaded", "server_error", "", "loading", 2});
  exchange->respond(HttpResponse{
      200, "text/plain; version=0.0.4; charset=utf-8",
      served->metrics->text(served->engine->metrics(), connections_ ? connections_() : 0)});
}

void Api::logUnknown(const HttpRequest &request, const std::vector<std::string> &fields) {
  for (size_t i = 0; i < std::min<size_t>(fields.size(), 8); ++i)
    log_.warning(
        "unknown field",
        {{"request_id", request.id}, {"path", request.path}, {"field", fields[i].substr(0, 100)}});
}

void Api::plan(std::shared_ptr<Exchange> exchange) {
  if (Served *served = ready(*exchange))
    exchange->respond(json(planJson(*served)));
}

void Api::page(std::shared_ptr<Exchange> exchange) {
  exchange->respond(HttpResponse{
      200,
      "text/html; charset=utf-8",
      std::string(pageHtml()),
      {{"Content-Security-Policy", "default-src 'none'; script-src 'unsafe-inline'; style-src "
                                   "'unsafe-inline'; connect-src 'self'; img-src data:"}}});
}

void Api::openApi(std::shared_ptr<Exchange> exchange) {
  exchange->respond(HttpResponse{200, "application/json", std::string(openApiJson())});
}

namespace {

ApiError queueFull(const Served &served) {
  served.metrics->rejected.Increment();
  return {429,          "the queue is full; try again later", "rate_limit_error", "",
          "queue_full", served.engine->retryAfter()};
}

} // namespace

void Api::work(std::shared_ptr<Exchange> exchange, const Route &route) {
  Served *served = ready(*exchange);
  if (!served)
    return;
  // A place first: reading a request costs time and memory as well.
  auto ticket = std::make_shared<EngineLoop::Ticket>(served->engine->reserve(1));
  if (!*ticket)
    return exchange->respond(queueFull(*served));
  preparing_.fetch_add(1);
  workers_.post([this, served, exchange, &route, ticket] {
    try {
      workOn(*served, exchange, route, std::move(*ticket));
    } catch (const std::exception &error) { // no memory, above all
      exchange->respond(serverError(std::string("unexpected: ") + error.what()));
    }
    preparing_.fetch_sub(1);
  });
}

void Api::workOn(Served &served, const std::shared_ptr<Exchange> &exchange, const Route &route,
                 EngineLoop::Ticket ticket) {
  std::string body = exchange->takeBody();
  Result<JsonDocument> document = JsonDocument::parse(body);
  if (!document)
    return exchange->respond(badRequest("the body is " + document.status().message()));
  if (!document->root().isObject())
    return exchange->respond(badRequest(std::string("the body must be a JSON object, not ") +
                                        document->root().typeName()));
  if (route.compute) {
    Computed computed = route.compute(document->root(), served);
    if (auto *error = std::get_if<ApiError>(&computed))
      return exchange->respond(*error);
    return exchange->respond(json(std::get<Json>(computed)));
  }
  std::variant<PreparedRequest, ApiError> prepared = route.prepare(document->root(), served);
  if (auto *error = std::get_if<ApiError>(&prepared))
    return exchange->respond(*error);
  auto &request = std::get<PreparedRequest>(prepared);
  logUnknown(exchange->request(), request.unknown);
  uint64_t sequences = request.generation.sequences();
  if (sequences > served.engine->capacity())
    return exchange->respond(badRequest("the request asks for " + std::to_string(sequences) +
                                            " answers at once; the server takes " +
                                            std::to_string(served.engine->capacity()),
                                        "n"));
  if (sequences > 1) {
    ticket.release();
    ticket = served.engine->reserve(static_cast<uint32_t>(sequences));
    if (!ticket)
      return exchange->respond(queueFull(served));
  }
  std::make_shared<Generation>(*served.generations, exchange, std::move(request.generation),
                               std::move(request.answer), std::move(ticket))
      ->start();
}

} // namespace llmrt::server
