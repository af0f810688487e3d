#include "tools/common/Serve.h"
#include "tools/common/CountAllocations.h"

#include "runtime/engine/DeviceEngine.h"
#include "runtime/engine/SetSpeculation.h"
#include "runtime/server/Server.h"

#include <fstream>
#include <iostream>

namespace llmc::tools {

using namespace llmrt;
using llmrt::server::LoadedModel;

namespace {

/// One key a line; empty lines and those that begin with # are none.
Status readKeys(const std::string &path, std::vector<std::string> &keys) {
  std::ifstream file(path);
  if (!file)
    return ioError(path + ": can't be read");
  size_t before = keys.size();
  for (std::string line; std::getline(file, line);) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (!line.empty() && line[0] != '#')
      keys.push_back(line);
  }
  return keys.size() > before ? Status::ok() : invalidFile(path + ": holds no key");
}

Result<LoadedModel> load(const std::string &path, const PlanResolver &resolve,
                         const ServeOptions &options) {
  LLMRT_ASSIGN_OR_RETURN(std::string plan, resolve(path));
  LoadedModel loaded;
  LLMRT_ASSIGN_OR_RETURN(loaded.model, Model::open(plan));
  EngineOptions engine;
  LLMRT_ASSIGN_OR_RETURN(engine.device, parseDevice(options.device));
  engine.threads = options.threads;
  engine.maxBatchedTokens = options.maxBatchedTokens;
  engine.maxSequences = options.maxSequences;
  engine.blockTokens = options.blockSize;
  engine.kvTokens = options.kvTokens;
  engine.prefixCaching = options.prefixCaching;
  engine.swapTokens = options.swapTokens;
  engine.preemption = options.preemption == "swap"        ? PreemptionMode::Swap
                      : options.preemption == "recompute" ? PreemptionMode::Recompute
                                                          : PreemptionMode::Auto;
  if (!options.speculativeConfig.empty())
    LLMRT_RETURN_IF_ERROR(setSpeculation(*loaded.model, options.speculativeConfig, engine));
  engine.allocationCount = allocationsOfThisThread;
  LLMRT_ASSIGN_OR_RETURN(engine.sampledVocabulary, loaded.model->sampledVocabulary());
  LLMRT_ASSIGN_OR_RETURN(loaded.engine, createEngine(loaded.model->plan(), engine));
  const EngineLimits &limits = loaded.engine->limits();
  loaded.description = deviceName(*loaded.engine) + ", " + std::to_string(limits.maxSequences) +
                       " sequences, KV pool of " +
                       std::to_string(limits.kvBlocks * limits.blockTokens) + " tokens";
  return loaded;
}

Status runServer(const std::string &path, const PlanResolver &resolve, ServeOptions &options) {
  if (!options.apiKeyFile.empty())
    LLMRT_RETURN_IF_ERROR(readKeys(options.apiKeyFile, options.server.apiKeys));
  for (const std::string &key : options.server.apiKeys)
    if (key.empty())
      return invalidArgument("an API key is empty");
  options.server.vllmMetricNames = options.metricsCompat == "vllm";
  server::Log log(std::cerr, server::logLevel(options.server.logLevel), options.server.jsonLog);
  return server::Server::run(options.server, log, [&] { return load(path, resolve, options); });
}

} // namespace

CLI::App *addServeCommand(CLI::App &app, PlanResolver resolve, int &status) {
  CLI::App *serve = app.add_subcommand("serve", "answer requests over HTTP, as OpenAI's API does");
  serve->footer("The log goes to stderr. SIGTERM ends it when all running requests are answered, a "
                "second one at once.\n\n"
                "  serve m.plan --port 8000 --api-key SECRET\n"
                "  curl http://127.0.0.1:8000/v1/models -H 'Authorization: Bearer SECRET'");
  auto path = std::make_shared<std::string>();
  serve->add_option("plan", *path, "the model, compiled")->required()->type_name("PLAN");
  auto o = std::make_shared<ServeOptions>();
  auto &s = o->server;
  auto count = CLI::Range(int64_t(1), int64_t(1) << 40);

  serve->add_option("--host", s.host, "the address to listen on; 0.0.0.0: all")
      ->type_name("ADDRESS")
      ->capture_default_str()
      ->group("Network");
  serve->add_option("--port", s.port, "0: a free one, which the log names")
      ->type_name("N")
      ->capture_default_str()
      ->group("Network");
  serve->add_option("--api-key", s.apiKeys, "a key that requests must show; may be given again")
      ->type_name("KEY")
      ->allow_extra_args(false)
      ->group("Network");
  serve->add_option("--api-key-file", o->apiKeyFile, "keys, one a line")
      ->type_name("FILE")
      ->group("Network");
  auto *certificate = serve->add_option("--ssl-certfile", s.tlsCertificate, "certificates for TLS")
                          ->type_name("FILE.pem")
                          ->group("Network");
  auto *key = serve->add_option("--ssl-keyfile", s.tlsKey, "the private key of the certificate")
                  ->type_name("FILE.pem")
                  ->needs(certificate)
                  ->group("Network");
  certificate->needs(key);
  serve
      ->add_option("--allowed-origins", s.allowedOrigins,
                   "origins of web pages that may ask (CORS), or *; default: none")
      ->delimiter(',')
      ->type_name("ORIGIN,...")
      ->group("Network");
  serve->add_option("--io-threads", s.ioThreads, "threads for the network")
      ->check(CLI::Range(1, 64))
      ->type_name("N")
      ->capture_default_str()
      ->group("Network");

  serve
      ->add_option("--served-model-name,--alias", s.servedNames,
                   "names of the model, the first its own; requests for others get 404. Default: "
                   "the plan's name, and requests may use any")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->group("Model");
  serve->add_option("--tool-call-parser", s.toolCallParser, "how the model writes tool calls")
      ->check(CLI::IsMember({"auto", "none", "hermes", "qwen", "llama", "llama3_json", "mistral"}))
      ->type_name("FORM")
      ->capture_default_str()
      ->group("Model");
  serve->add_option("--reasoning-parser", s.reasoningParser, "how it marks its reasoning")
      ->check(CLI::IsMember({"auto", "none", "think", "deepseek_r1", "qwen3"}))
      ->type_name("FORM")
      ->capture_default_str()
      ->group("Model");

  serve->add_option("--max-num-seqs,--parallel", o->maxSequences, "sequences that run at a time")
      ->check(count)
      ->type_name("N")
      ->capture_default_str()
      ->group("Limits");
  serve
      ->add_option("--max-num-queued-reqs", s.maxQueuedRequests,
                   "requests that wait while all sequences are busy; more get 429")
      ->type_name("N")
      ->capture_default_str()
      ->group("Limits");
  serve->add_option("--max-connections", s.maxConnections, "open connections")
      ->check(count)
      ->type_name("N")
      ->capture_default_str()
      ->group("Limits");
  serve->add_option("--max-request-bytes", s.maxBodyBytes, "size of a request's body")
      ->check(count)
      ->type_name("BYTES")
      ->capture_default_str()
      ->group("Limits");
  serve->add_option("--max-header-bytes", s.maxHeaderBytes, "size of a request's header")
      ->check(CLI::Range(256, 1 << 20))
      ->type_name("BYTES")
      ->capture_default_str()
      ->group("Limits");
  auto seconds = [&](const char *flag, unsigned &value, const char *what, int low = 1) {
    serve->add_option(flag, value, what)
        ->check(CLI::Range(low, 1 << 20))
        ->type_name("SECONDS")
        ->capture_default_str()
        ->group("Limits");
  };
  seconds("--request-timeout", s.requestTimeout, "for a request to arrive");
  seconds("--timeout-keep-alive", s.keepAliveTimeout, "for the next request on a connection");
  seconds("--write-timeout", s.writeTimeout, "for a client that takes nothing of its answer");
  seconds("--ping-interval", s.pingInterval, "between comments on a stream that is silent");
  seconds("--step-timeout", s.stepTimeout, "for a step, before /health says that it is stuck");
  seconds("--shutdown-timeout", s.drainTimeout, "for running requests after SIGTERM; 0: no limit",
          0);

  serve->add_option("--metrics-compat", o->metricsCompat, "'vllm': its prefix in /metrics")
      ->check(CLI::IsMember({"llmc", "vllm"}))
      ->type_name("NAME")
      ->group("Log");
  serve->add_flag("--log-json", s.jsonLog, "log lines of JSON")->group("Log");
  serve->add_option("--log-level", s.logLevel, "the least that is logged")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->type_name("LEVEL")
      ->capture_default_str()
      ->group("Log");

  addDeviceFlag(*serve, o->device);
  addMachineFlags(*serve, o->threads);
  addStepFlags(*serve, o->maxBatchedTokens, o->blockSize);
  serve
      ->add_option("--kv-cache-tokens", o->kvTokens,
                   "tokens of the KV cache; default: what the sequences can need, within half of "
                   "the memory that is free")
      ->check(CLI::PositiveNumber)
      ->type_name("N")
      ->group("Machine");
  serve
      ->add_flag("--enable-prefix-caching,!--no-enable-prefix-caching", o->prefixCaching,
                 "keep the KV of texts that later requests may begin with; on by default")
      ->group("Machine");
  serve
      ->add_option("--swap-tokens", o->swapTokens,
                   "tokens of KV that preempted requests may keep in host memory")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N")
      ->capture_default_str()
      ->group("Machine");
  serve
      ->add_option("--speculative-config", o->speculativeConfig,
                   "guess tokens ahead; the text stays the same. {\"method\": \"ngram\"}, "
                   "{\"method\": \"suffix\"} or {\"model\": \"draft.plan\"}; "
                   "num_speculative_tokens and the rest as in vLLM")
      ->type_name("JSON")
      ->group("Machine");
  serve
      ->add_option("--preemption-mode", o->preemption,
                   "what a request does that must give up its KV memory")
      ->check(CLI::IsMember({"auto", "recompute", "swap"}))
      ->type_name("MODE")
      ->capture_default_str()
      ->group("Machine");
  serve->callback([=, &status] {
    Status served = runServer(*path, resolve, *o);
    if (!served)
      std::cerr << "error: " << served.message() << std::endl;
    status = served ? 0 : 1;
  });
  return serve;
}

} // namespace llmc::tools
