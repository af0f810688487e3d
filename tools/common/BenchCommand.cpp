#include "tools/common/Bench.h"
#include "tools/common/BenchBatching.h"
#include "tools/common/BenchServe.h"
#include "tools/common/BenchSpeculation.h"
#include "tools/common/CommandFlags.h"

namespace llmc::tools {

namespace {

void addLoadFlags(CLI::App &bench, BenchServeOptions &o) {
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
                                   "against static batches, which keep their rows until the "
                                   "longest answer is done (as in Orca, OSDI 2022, section 3), "
                                   "and against such as drop finished rows. Prompts of 16 to 64 "
                                   "tokens; one answer in N of -n tokens (default 256), the others "
                                   "of 8 to 24")
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

} // namespace

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
                   "longer ones, 1 for decoding, 3 for comparisons")
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

} // namespace llmc::tools
