#include "tools/common/Commands.h"

#include "runtime/engine/SelfTest.h"
#include "tools/common/Bench.h"
#include "tools/common/BenchBatching.h"
#include "tools/common/BenchServe.h"
#include "tools/common/BenchSpeculation.h"
#include "tools/common/Config.h"
#include "tools/common/Eval.h"
#include "tools/common/Explain.h"
#include "tools/common/HelpFormatter.h"
#include "tools/common/Inspect.h"
#include "tools/common/Run.h"
#include "tools/common/Verify.h"

#include <algorithm>
#include <csignal>
#include <iostream>
#include <memory>

namespace llmc::tools {

namespace {

/// Resolves the path, then calls \p run with it; the exit status goes to \p status.
template <typename Run>
void whenCalled(CLI::App &command, std::shared_ptr<std::string> path, PlanResolver resolve,
                int &status, Run run) {
  command.callback([=, &status] {
    llmrt::Result<std::string> plan = resolve(*path);
    if (!plan) {
      std::cerr << "error: " << plan.status().message() << std::endl;
      status = 1;
      return;
    }
    status = run(*plan);
  });
}

std::shared_ptr<std::string> addPlan(CLI::App &command, const char *what) {
  auto path = std::make_shared<std::string>();
  command.add_option("plan", *path, what)->required()->type_name("PLAN");
  return path;
}

} // namespace

void addMachineFlags(CLI::App &command, unsigned &threads) {
  command
      .add_option("-t,--threads", threads,
                  "threads; default: the cores that affinity, the container's quota and "
                  "OMP_NUM_THREADS allow")
      ->check(CLI::Range(1, 1024))
      ->type_name("N")
      ->group("Machine");
}

void addStepFlags(CLI::App &command, int64_t &batchedTokens, int64_t &blockSize) {
  command
      .add_option("--max-num-batched-tokens", batchedTokens,
                  "new tokens a step at most: the chunk of a long prompt; default 512")
      ->check(CLI::PositiveNumber)
      ->type_name("N")
      ->group("Machine");
  command
      .add_option("--block-size", blockSize,
                  "tokens a block of the KV cache, a multiple of 16; default the plan's")
      ->check(CLI::PositiveNumber)
      ->type_name("N")
      ->group("Machine");
}

namespace {

void addSpeculationFlag(CLI::App &command, std::string &config) {
  command
      .add_option("--speculative-config", config,
                  "guess tokens and verify them together; the text stays the same. "
                  "{\"method\": \"ngram\"} (the text's own words), \"suffix\", or {\"model\": "
                  "\"draft.plan\"}; num_speculative_tokens, prompt_lookup_min and _max as in vLLM")
      ->type_name("JSON")
      ->group("Machine");
}

/// Runs the test of a plan that was verified.
int selfTestMain(const std::string &path, std::ostream &out, std::ostream &err) {
  auto plan = llmrt::Plan::open(path);
  llmrt::Status status = plan ? llmrt::checkSelfTest(*plan) : plan.status();
  if (!status) {
    err << "error: " << path << ": " << status.message() << '\n';
    return 1;
  }
  const llmrt::fbs::SelfTest &test = *(*plan)->head().self_test();
  out << "self-test: " << test.prompt()->size() << " prompt tokens, " << test.tokens()->size()
      << " new tokens: ok\n";
  return 0;
}

} // namespace

void addDeviceFlag(CLI::App &command, std::string &device) {
  command
      .add_option("--device", device,
                  "cpu, cuda, or cuda:N among the GPUs that CUDA_VISIBLE_DEVICES leaves; default: "
                  "what the plan's code is for, a GPU rather than the CPU")
      ->type_name("DEVICE")
      ->group("Machine");
}

PlanResolver plansOnly() {
  return [](const std::string &path) -> llmrt::Result<std::string> { return path; };
}

CLI::App *addRunCommand(CLI::App &app, PlanResolver resolve, int &status) {
  CLI::App *run = app.add_subcommand("run", "write text with a model");
  run->footer("The text goes to stdout as it comes, a line with the speeds to stderr.\n"
              "Sampling that is not set follows the model's own recommendation.\n\n"
              "  run m.plan -p \"Once upon a time\" -n 64\n"
              "  run m.plan -p \"What is a compiler?\" --chat --temperature 0.7 --seed 1\n"
              "  run m.plan --prompt-ids 1,2,3 --temperature 0 --json");
  auto path = addPlan(*run, "the model, compiled");
  auto o = std::make_shared<RunOptions>();

  auto *text = run->add_option("-p,--prompt", o->prompt, "the text to go on with")
                   ->type_name("TEXT")
                   ->group("Prompt");
  run->add_option("--prompt-ids", o->promptIds, "token ids instead of a text: 1,2,3")
      ->delimiter(',')
      // An empty text would be read as the number 0.
      ->check([](const std::string &id) { return id.empty() ? "needs at least one id" : ""; })
      ->type_name("IDS")
      ->group("Prompt")
      ->excludes(text);
  run->add_flag("--chat", o->chat, "the text is a user's message to a chat model")->group("Prompt");
  run->add_option("--system", o->system, "with --chat: the system's message")
      ->type_name("TEXT")
      ->group("Prompt");

  run->add_option("-n,--max-tokens,--predict", o->newTokens,
                  "new tokens at most; -1: until the context is full")
      ->check(CLI::Range(int64_t(-1), INT64_MAX))
      ->type_name("N")
      ->capture_default_str()
      ->group("Output");
  run->add_option("--stop", o->stop, "text that ends the output; may be given several times")
      ->type_name("TEXT")
      ->allow_extra_args(false)
      ->group("Output");
  run->add_flag("--ignore-eos", o->ignoreEos, "go on after an end token, which is output like any")
      ->group("Output");
  run->add_option("--logprobs", o->logprobs,
                  "with --json: log-probabilities of each token and of the N likeliest")
      ->check(CLI::Range(0, 20))
      ->type_name("N")
      ->group("Output");
  run->add_option("--logits-out", o->logitsOut,
                  "write the logits of every prompt position: f32 [tokens, vocabulary]")
      ->type_name("FILE.npy")
      ->group("Output");
  run->add_flag("--json", o->json,
                "print one JSON object: ids, text, finish_reason, timings; of a graph: outputs, "
                "timings")
      ->group("Output");
  run->add_option(
         "--input", o->inputs,
         "an input of a graph that is no decoder; a sequence: once for each of its tensors")
      ->type_name("NAME=FILE.npy")
      ->allow_extra_args(false)
      ->group("Graph");
  run->add_option("--output-dir", o->outputDir, "write the graph's outputs to DIR/NAME.npy")
      ->type_name("DIR")
      ->group("Graph");

  run->add_option("--temperature", o->temperature, "0: always the likeliest token")
      ->type_name("T")
      ->group("Sampling");
  run->add_option("--top-k", o->topK, "only the K likeliest tokens; 0: all")
      ->type_name("K")
      ->group("Sampling");
  run->add_option("--top-p", o->topP, "only the likeliest tokens that together reach P")
      ->type_name("P")
      ->group("Sampling");
  run->add_option("--min-p", o->minP, "only tokens at least P times as likely as the likeliest")
      ->type_name("P")
      ->group("Sampling");
  run->add_option("--repetition-penalty,--repeat-penalty", o->repetitionPenalty,
                  "above 1: tokens of prompt and output become less likely")
      ->type_name("R")
      ->group("Sampling");
  run->add_option("--presence-penalty", o->presencePenalty,
                  "taken from the logits of tokens of the output")
      ->type_name("X")
      ->group("Sampling");
  run->add_option("--frequency-penalty", o->frequencyPenalty,
                  "the same for each time they stand there")
      ->type_name("X")
      ->group("Sampling");
  run->add_option("--typical-p,--typical", o->typicalP,
                  "only tokens about as surprising as is expected, up to P together")
      ->type_name("P")
      ->group("Sampling");
  run->add_option("--dry-multiplier", o->dryMultiplier,
                  "above 0: against going on with what stood in the text before (DRY)")
      ->type_name("X")
      ->group("Sampling");
  run->add_option("--dry-base", o->dryBase, "how the DRY penalty grows with the repeat's length")
      ->type_name("X")
      ->group("Sampling");
  run->add_option("--dry-allowed-length", o->dryAllowedLength, "tokens that may repeat for free")
      ->type_name("N")
      ->group("Sampling");
  run->add_option("--xtc-probability", o->xtcProbability,
                  "how often the likeliest tokens but one are left out (XTC)")
      ->type_name("P")
      ->group("Sampling");
  run->add_option("--xtc-threshold", o->xtcThreshold, "from which probability a token is likely")
      ->type_name("P")
      ->group("Sampling");
  run->add_option("--mirostat", o->mirostat, "2: steer the surprise instead of filtering; 0: off")
      ->type_name("MODE")
      ->group("Sampling");
  run->add_option("--mirostat-tau,--mirostat-ent", o->mirostatTau, "the surprise wanted, in bits")
      ->type_name("X")
      ->group("Sampling");
  run->add_option("--mirostat-eta,--mirostat-lr", o->mirostatEta, "how fast it is steered")
      ->type_name("X")
      ->group("Sampling");
  run->add_option("--min-tokens", o->minTokens, "no end token before so many tokens")
      ->type_name("N")
      ->group("Sampling");
  run->add_option("--json-schema", o->jsonSchema,
                  "the answer is JSON that this schema accepts; @FILE reads it from a file")
      ->type_name("JSON")
      ->group("Output");
  run->add_option("--regex", o->regex, "the answer matches this regular expression as a whole")
      ->type_name("REGEX")
      ->group("Output");
  run->add_option("--grammar", o->grammar, "the answer follows this GBNF grammar; or @FILE")
      ->type_name("GBNF")
      ->group("Output");
  addSpeculationFlag(*run, o->speculativeConfig);
  run->add_option("-s,--seed", o->seed, "the same seed gives the same text")
      ->type_name("S")
      ->capture_default_str()
      ->group("Sampling");

  addDeviceFlag(*run, o->device);
  addMachineFlags(*run, o->threads);
  addStepFlags(*run, o->maxBatchedTokens, o->blockSize);
  run->add_option("--activations", o->activations,
                  "refuse a plan that was not compiled with these activations")
      ->check(CLI::IsMember({"f32", "int8"}))
      ->type_name("TYPE")
      ->group("Machine");
  whenCalled(*run, path, std::move(resolve), status,
             [o](const std::string &plan) { return runMain(plan, *o, std::cout, std::cerr); });
  return run;
}

static void addLoadFlags(CLI::App &bench, BenchServeOptions &o) {
  bench
      .add_option("--serve", o.url,
                  "load on a server with OpenAI's API instead: streams of /v1/completions")
      ->type_name("URL")
      ->group("Load on a server");
  bench.add_option("--api-key", o.apiKey, "the server's key")
      ->type_name("KEY")
      ->group("Load on a server");
  bench.add_option("--model", o.model, "the name that requests give; default: none")
      ->type_name("NAME")
      ->group("Load on a server");
  bench.add_option("--num-prompts", o.requests, "requests of each test")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 20))
      ->type_name("N")
      ->capture_default_str()
      ->group("Load on a server");
  bench
      .add_option("--concurrency,--max-concurrency", o.concurrency,
                  "clients at a time, a test each; default 1,8")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096))
      ->type_name("N,...")
      ->group("Load on a server");
  bench
      .add_option("--request-rate", o.rates,
                  "requests a second at random times (Poisson), a test each")
      ->delimiter(',')
      ->check(CLI::Range(0.001, 1e5))
      ->type_name("R,...")
      ->group("Load on a server");
  bench.add_option("--input-len", o.promptLength, "words of a prompt, drawn from LOW:HIGH")
      ->type_name("N|LOW:HIGH")
      ->capture_default_str()
      ->group("Load on a server");
  bench.add_option("--output-len", o.outputLength, "tokens of an answer, drawn from LOW:HIGH")
      ->type_name("N|LOW:HIGH")
      ->capture_default_str()
      ->group("Load on a server");
  bench.add_option("--seed", o.seed, "of prompts, lengths and times")
      ->type_name("S")
      ->capture_default_str()
      ->group("Load on a server");
  bench.add_option("--timeout", o.timeout, "for a request")
      ->check(CLI::Range(1, 86400))
      ->type_name("SECONDS")
      ->capture_default_str()
      ->group("Load on a server");
}

void addComparisonFlags(CLI::App &bench, BenchOptions &o) {
  auto *prompts = bench
                      .add_option("--prompts", o.promptsFile,
                                  "with --speculative-config: answer these prompts with and "
                                  "without it, in turn; lines of {\"name\", \"prompt\"} or "
                                  "{\"name\", \"messages\"}")
                      ->type_name("FILE.jsonl")
                      ->group("Comparisons");
  auto *batching = bench
                       .add_option("--continuous-batching", o.continuousBatching,
                                   "a mix of short and long answers, N at a time: continuous "
                                   "against static batches. Prompts of 16 to 64 tokens; one answer "
                                   "in N of -n tokens (default 512), the others of 8 to 24")
                       ->check(CLI::Range(int64_t(1), int64_t(1) << 16))
                       ->type_name("N")
                       ->group("Comparisons")
                       ->excludes(prompts);
  bench
      .add_option("--prefix-cache", o.prefixTokens,
                  "the time to the first token of a prompt, and of one with the same N tokens at "
                  "its beginning")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 30))
      ->type_name("N")
      ->group("Comparisons")
      ->excludes(prompts)
      ->excludes(batching);
}

CLI::App *addBenchCommand(CLI::App &app, PlanResolver resolve, int &status) {
  CLI::App *bench = app.add_subcommand("bench", "measure a plan's speed");
  bench->footer(
      "Greedy decoding, end tokens ignored, a new pseudo-random prompt for every call.\n\n"
      "  bench m.plan -p 128,512 -n 64 --depth 128 -b 4,8 -t 2\n"
      "  bench m.plan --prompts p.jsonl --speculative-config '{\"method\": \"ngram\"}'\n"
      "  bench m.plan --continuous-batching 8\n"
      "  bench --serve http://127.0.0.1:8000 --concurrency 1,8 --input-len 64:256 --output-len 64");
  auto path = std::make_shared<std::string>();
  bench->add_option("plan", *path, "the model, compiled; not with --serve")->type_name("PLAN");
  auto o = std::make_shared<BenchOptions>();
  auto load = std::make_shared<BenchServeOptions>();
  auto tokens = CLI::Range(int64_t(1), int64_t(1) << 30);
  bench->add_option("-p,--n-prompt", o->prompts, "tokens of the prompts to prefill, a test each")
      ->delimiter(',')
      ->check(tokens)
      ->type_name("N,...")
      ->capture_default_str()
      ->group("Tests");
  auto *newTokens =
      bench->add_option("-n,--n-gen", o->newTokens, "tokens to decode; 0: no decode tests")
          ->check(CLI::Range(int64_t(0), int64_t(1) << 30))
          ->type_name("N")
          ->capture_default_str()
          ->group("Tests");
  bench->add_option("-d,--depth", o->depth, "tokens in the cache before decoding")
      ->check(CLI::Range(int64_t(0), int64_t(1) << 30))
      ->type_name("N")
      ->capture_default_str()
      ->group("Tests");
  bench->add_option("-b,--batches", o->batches, "decode this many sequences at once, a test each")
      ->delimiter(',')
      ->check(CLI::Range(int64_t(1), int64_t(1) << 20))
      ->type_name("N,...")
      ->group("Tests");
  bench
      ->add_option("-r,--repetitions", o->repetitions,
                   "of each test, the median counts; default 3 for prompts up to 128 tokens, 2 for "
                   "longer ones, 1 for decoding")
      ->check(tokens)
      ->type_name("N")
      ->group("Tests");
  addDeviceFlag(*bench, o->device);
  addMachineFlags(*bench, o->threads);
  addStepFlags(*bench, o->maxBatchedTokens, o->blockSize);
  addSpeculationFlag(*bench, o->speculativeConfig);
  bench
      ->add_flag("--measure", o->measure,
                 "measure this machine's limits for the roofline, instead of defaults")
      ->group("Machine");
  bench->add_flag("--json", o->json, "print a JSON object: prefill<N>, decode, batch<B>, load_s")
      ->group("Output");
  addComparisonFlags(*bench, *o);
  addLoadFlags(*bench, *load);
  bench->callback([=, resolve = std::move(resolve), &status] {
    if (path->empty() == load->url.empty()) {
      std::cerr << "error: give a plan, or --serve URL\nSee bench --help." << std::endl;
      status = 2;
      return;
    }
    if (!o->promptsFile.empty() && o->speculativeConfig.empty()) {
      std::cerr << "error: --prompts compares speculation with plain decoding; give "
                   "--speculative-config, too\nSee bench --help."
                << std::endl;
      status = 2;
      return;
    }
    load->json = o->json;
    o->newTokensGiven = newTokens->count() > 0;
    if (!load->url.empty()) {
      status = benchServeMain(*load, std::cout, std::cerr);
      return;
    }
    llmrt::Result<std::string> plan = resolve(*path);
    if (!plan)
      std::cerr << "error: " << plan.status().message() << std::endl;
    auto *main = !o->promptsFile.empty()     ? benchSpeculationMain
                 : o->continuousBatching > 0 ? benchBatchingMain
                 : o->prefixTokens > 0       ? benchPrefixMain
                                             : benchMain;
    status = plan ? main(*plan, *o, std::cout, std::cerr) : 1;
  });
  return bench;
}

CLI::App *addEvalCommand(CLI::App &app, PlanResolver resolve, int &status) {
  CLI::App *eval = app.add_subcommand("eval", "measure how well a plan predicts a text");
  eval->footer("Perplexity, and the Kullback-Leibler divergence (nats a token) from a reference: "
               "what\nquantization costs.\n\n"
               "  eval int4.plan --text book.txt --reference f32.plan");
  auto path = addPlan(*eval, "the model, compiled");
  auto o = std::make_shared<EvalOptions>();
  auto *text = eval->add_option("--text", o->text, "a text file")->type_name("FILE")->group("Text");
  eval->add_option("--tokens-file", o->tokensFile,
                   "token ids instead: a JSON list, or an .npy file of integers")
      ->type_name("FILE")
      ->group("Text")
      ->excludes(text);
  eval->add_option("--max-tokens", o->maxTokens, "of the text at most; default: all")
      ->check(CLI::PositiveNumber)
      ->type_name("N")
      ->group("Text");
  eval->add_option("--context", o->context,
                   "tokens a window, each evaluated on its own; default 512, or the model's "
                   "context if that is less")
      ->check(CLI::Range(int64_t(2), int64_t(1) << 30))
      ->type_name("N")
      ->group("Text");
  eval->add_option("--reference", o->reference, "compare with this plan's distributions")
      ->type_name("PLAN")
      ->group("Reference");
  eval->add_option("--chunk", o->chunk, "tokens a step: so many rows of logits are in memory")
      ->check(CLI::PositiveNumber)
      ->type_name("N")
      ->capture_default_str()
      ->group("Machine");
  addMachineFlags(*eval, o->threads);
  eval->add_flag("--json", o->json, "print one JSON object: perplexity, kl, same_top")
      ->group("Output");
  whenCalled(*eval, path, std::move(resolve), status,
             [o](const std::string &plan) { return evalMain(plan, *o, std::cout, std::cerr); });
  return eval;
}

CLI::App *addExplainCommand(CLI::App &app, PlanResolver resolve, int &status) {
  CLI::App *explain =
      app.add_subcommand("explain", "show, kernel by kernel, where the time of a step goes");
  explain->footer("Each kernel's memory traffic and operations, its time by the roofline, and the "
                  "time it takes.\n\n"
                  "  explain m.plan --context 1024 --tokens 256 -t 2");
  auto path = addPlan(*explain, "the model, compiled");
  auto o = std::make_shared<ExplainOptions>();
  explain
      ->add_option("--context", o->context,
                   "tokens in the cache when a token is decoded; default 512, or what fits")
      ->check(CLI::Range(int64_t(0), int64_t(1) << 30))
      ->type_name("N")
      ->group("Steps");
  explain->add_option("--tokens", o->tokens, "explain a prompt of so many tokens, too")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 30))
      ->type_name("N")
      ->group("Steps");
  addMachineFlags(*explain, o->threads);
  explain
      ->add_flag("--measure", o->measure,
                 "measure this machine's limits for the roofline, instead of defaults")
      ->group("Machine");
  explain
      ->add_option("--gpu", o->gpus,
                   "explain the CUDA kernels for a GPU (a100, h200, rtx4090), which need not be "
                   "there: nothing runs")
      ->delimiter(',')
      ->check(CLI::IsMember({"a100", "h200", "rtx4090"}))
      ->group("Machine");
  explain->add_flag("--json", o->json, "print one JSON object")->group("Output");
  whenCalled(*explain, path, std::move(resolve), status, [o](const std::string &plan) {
    return (o->gpus.empty() ? explainMain : explainCudaMain)(plan, *o, std::cout, std::cerr);
  });
  return explain;
}

CLI::App *addInspectCommand(CLI::App &app, PlanResolver resolve, int &status) {
  CLI::App *inspect = app.add_subcommand("inspect", "show what a plan holds, needs and can reach");
  auto path = addPlan(*inspect, "the plan");
  auto o = std::make_shared<InspectOptions>();
  inspect->add_flag("--json", o->json, "print one JSON object")->group("Output");
  inspect->add_option("--context", o->context, "tokens in the cache when a token is decoded")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N")
      ->capture_default_str()
      ->group("Prediction");
  inspect->add_option("--prompt", o->prompt, "tokens of the prompt")
      ->check(CLI::PositiveNumber)
      ->type_name("N")
      ->capture_default_str()
      ->group("Prediction");
  inspect->add_flag("--measure", o->measure, "measure this machine's limits, instead of defaults")
      ->group("Prediction");
  auto limit = [&](const char *flag, double &value, const char *what) {
    inspect->add_option(flag, value, what)
        ->check(CLI::PositiveNumber)
        ->type_name("X")
        ->group("Prediction");
  };
  limit("--bandwidth", o->bandwidth, "bytes a second that the memory gives");
  limit("--int-operations", o->intOperations, "int8 operations a second");
  limit("--float-operations", o->floatOperations, "f32 operations a second");
  addMachineFlags(*inspect, o->threads);
  whenCalled(*inspect, path, std::move(resolve), status,
             [o](const std::string &plan) { return inspectMain(plan, *o, std::cout, std::cerr); });
  return inspect;
}

CLI::App *addVerifyCommand(CLI::App &app, int &status) {
  CLI::App *verify =
      app.add_subcommand("verify", "check every part of a plan, weights and code too");
  auto path = addPlan(*verify, "the plan");
  verify->footer(
      "A plan holds machine code: --self-test runs it, and is for plans that you trust.");
  auto run = std::make_shared<bool>(false);
  verify->add_flag(
      "--self-test", *run,
      "run the plan on this machine, too: it must get the tokens and the bits of every "
      "logit that the compiler recorded");
  whenCalled(*verify, path, plansOnly(), status, [run](const std::string &plan) {
    const int verified = verifyMain(plan, std::cout, std::cerr);
    return verified || !*run ? verified : selfTestMain(plan, std::cout, std::cerr);
  });
  return verify;
}

void readFlagsFromEnvironment(CLI::App &command) {
  command.add_option("--config", "a YAML file of flags and their values: max-num-seqs: 8")
      ->type_name("FILE.yaml");
  for (CLI::Option *option : command.get_options()) {
    if (option->get_lnames().empty() || option->get_lnames()[0] == "help")
      continue;
    option->envname(environmentName(option->get_lnames()[0]));
  }
}

int runTool(CLI::App &app, int argc, char **argv, int &status) {
  // A file size limit is an error of write(), with a message, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    auto formatter = std::make_shared<HelpFormatter>();
    app.formatter(formatter);
    for (CLI::App *command : app.get_subcommands([](CLI::App *) { return true; }))
      command->formatter(formatter);
    std::vector<std::string> arguments(argv + 1, argv + argc);
    if (llmrt::Status read = addConfiguredFlags(app, arguments); !read) {
      std::cerr << "error: " << read.message() << std::endl;
      return 2;
    }
    std::reverse(arguments.begin(), arguments.end()); // as CLI11 takes them
    app.parse(std::move(arguments));
    return status;
  } catch (const CLI::Success &help) { // --help, --version
    return app.exit(help);
  } catch (const CLI::ParseError &error) {
    std::string program = app.get_name();
    for (const CLI::App *called : app.get_subcommands())
      program += " " + called->get_name();
    std::cerr << "error: " << error.what() << "\nSee " << program << " --help." << std::endl;
    return 2;
  } catch (const std::bad_alloc &) {
    std::cerr << "error: out of memory" << std::endl;
  } catch (const std::exception &error) {
    std::cerr << "error: unexpected: " << error.what() << std::endl;
  }
  return 1;
}

} // namespace llmc::tools
