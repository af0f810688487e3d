#include "tools/common/CommandFlags.h"

namespace llmc::tools {

std::shared_ptr<std::string> addPlan(CLI::App &command, const char *what) {
  auto path = std::make_shared<std::string>();
  command.add_option("plan", *path, what)->required()->type_name("PLAN");
  return path;
}

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

void addSpeculationFlag(CLI::App &command, std::string &config) {
  command
      .add_option("--speculative-config", config,
                  "guess tokens and verify them together; the text stays the same. "
                  "{\"method\": \"ngram\"} (the text's own words), \"suffix\", or {\"model\": "
                  "\"draft.plan\"}; num_speculative_tokens, prompt_lookup_min and _max as in vLLM; "
                  "\"adaptive\": false; "
                  "\"tree\": true; \"acceptance\": \"classical\"")
      ->type_name("JSON")
      ->group("Machine");
}

void addDeviceFlag(CLI::App &command, std::string &device) {
  command
      .add_option("--device", device,
                  "cpu, cuda, or cuda:N among the GPUs that CUDA_VISIBLE_DEVICES leaves; default: "
                  "what the plan's code is for, a GPU rather than the CPU")
      ->type_name("DEVICE")
      ->group("Machine");
}

} // namespace llmc::tools
