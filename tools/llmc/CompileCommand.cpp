//===- CompileCommand.cpp - `llmc compile` ----------------------------------------------------===//

#include "tools/llmc/CompileCommand.h"
#include "tools/llmc/LoadCompiler.h"

#include <filesystem>
#include <iostream>

using namespace llmc;
namespace fs = std::filesystem;

void tools::addCompileFlags(CLI::App &command, CompileOptions &options) {
  const char *group = "Compilation";
  command
      .add_flag_callback(
          "--int4", [&] { options.quantization = "int4"; },
          "weights in 4 bits, groups of 32 with a scale; an embedding that isn't the head too, "
          "int8")
      ->group(group);
  command
      .add_flag_callback(
          "--int8", [&] { options.quantization = "int8"; },
          "weights in 8 bits, groups of 32 with a scale")
      ->group(group);
  command.add_option("--quantization", options.quantization, "the same by name")
      ->check(CLI::IsMember({"none", "int8", "int4"}))
      ->group(group);
  command
      .add_option("--head", options.head,
                  "head (and embedding that is tied to it) under --int4: int4 with a minimum for "
                  "each group (the default), or int8, which is more exact and makes small models "
                  "slower")
      ->check(CLI::IsMember({"int8", "int4"}))
      ->group(group);
  // `run` has the flag already: a plan that was compiled otherwise is refused.
  if (!command.get_option_no_throw("--activations"))
    command
        .add_option("--activations", options.activations,
                    "how integer weights see their inputs: int8 (fast, the default) or f32")
        ->check(CLI::IsMember({"auto", "f32", "int8"}))
        ->group(group);
  command
      .add_option("--kv-cache-dtype", options.kvCacheDtype,
                  "element of the KV cache (auto: f16); int8 keeps a scale for each head's key and "
                  "value, so a channel far larger than the others costs them their precision: "
                  "measure with eval")
      ->check(CLI::IsMember({"auto", "f32", "f16", "bf16", "int8"}))
      ->group(group);
  command
      .add_option("--max-model-len", options.maxModelLen,
                  "longest sequence in tokens (default: what the model says; a longrope model's "
                  "original context, beyond which its long factors are taken)")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 24))
      ->group(group);
  command
      .add_option("--tokenizer", options.tokenizer,
                  "folder with the tokenizer's files (default: beside the model)")
      ->group(group);
}

/// MODEL's name with .plan, in the working folder.
static std::string defaultOutput(const std::string &model) {
  fs::path path = fs::path(model).lexically_normal();
  if (!path.has_filename())
    path = path.parent_path();
  fs::path stem = path.has_extension() ? path.stem() : path.filename();
  return stem.string() + ".plan";
}

CLI::App *tools::addCompileCommand(CLI::App &app, int &status) {
  CLI::App *command = app.add_subcommand(
      "compile", "compile a model (.onnx, .gguf or a Hugging Face folder) to a plan");
  auto options = std::make_shared<CompileOptions>();
  auto remarks = std::make_shared<bool>(false);
  auto emit = std::make_shared<std::string>();
  command
      ->add_option("MODEL", options->model,
                   ".onnx file, .gguf file or Hugging Face folder; the message for "
                   "one that isn't supported lists what is")
      ->required();
  command->add_option("-o,--output", options->output, "the plan (default: the model's name.plan)");
  command
      ->add_option("-O", options->optLevel,
                   "0: only what a plan needs; 1: cheap fusions; 2: all fusions; 3 (default): and "
                   "the most optimised machine code. Results have the same bits at each")
      ->check(CLI::Range(0, 3));
  addCompileFlags(*command, *options);
  command
      ->add_option("--max-num-batched-tokens", options->maxBatchedTokens,
                   "tokens of the largest step (default 512)")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 16))
      ->group("Compilation");
  command
      ->add_option("--max-num-seqs", options->maxSequences,
                   "sequences of the largest step (default 256)")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 16))
      ->group("Compilation");
  command
      ->add_option("--target", options->targets,
                   "what to carry code for: cpu (the default), cuda:sm_80,sm_90a (any of sm_80, "
                   "sm_86, sm_89, sm_90a, sm_100a, sm_120a; needs NVRTC, no GPU), cuda (all of "
                   "them), or both: cpu,cuda:sm_80")
      ->group("Compilation");
  command
      ->add_option(
          "--cpu-level", options->cpuLevels,
          "levels to carry machine code for (x86-64-v3, x86-64-v4, x86-64-v4-amx, "
          "aarch64-dotprod, aarch64-i8mm), or all of x86-64 or of aarch64 (default: all of "
          "this machine's architecture)")
      ->delimiter(',')
      ->group("Compilation");
  command->add_option("-j,--jobs", options->jobs, "threads (default: all that the process may use)")
      ->check(CLI::Range(1u, 1024u))
      ->group("Compilation");
  command->add_option("--dump-ir", options->dumpDir, "write the IR after each phase to this folder")
      ->group("Looking inside");
  command
      ->add_option("--emit", *emit,
                   "PHASE[=PATH]: stop after a phase and write its IR (import, raise, fuse, "
                   "quantize-weights, select-kv-layout, tile-attention, lower-to-plan); cuda=DIR: "
                   "write the CUDA sources and a manifest")
      ->group("Looking inside");
  command->add_option("--disable-pass", options->disabledPasses, "leave out passes, by name")
      ->delimiter(',')
      ->group("Looking inside");
  command->add_flag("--remarks", *remarks, "print every fast path that was missed, with the reason")
      ->group("Looking inside");
  command->add_flag("-q,--quiet", options->quiet, "no progress");
  command->callback([options, remarks, emit, &status] {
    size_t equals = emit->find('=');
    options->emitPhase = emit->substr(0, equals);
    if (equals != std::string::npos)
      options->emitPath = emit->substr(equals + 1);
    // The sources of a model for CUDA are those of a compilation for CUDA.
    if (options->emitPhase == "cuda" && options->targets.empty())
      options->targets = {"cuda"};
    if (options->output.empty())
      options->output = defaultOutput(options->model);
    CompileReport report;
    llmrt::Status result = compile(*options, report);
    if (*remarks)
      for (const std::string &remark : report.remarks)
        std::cerr << "remark: " << remark << "\n";
    if (!result) {
      std::cerr << "llmc: " << result.message() << "\n";
      status = 1;
      return;
    }
    if (options->emitPhase.empty() && !options->quiet) {
      std::error_code error;
      double megabytes = static_cast<double>(fs::file_size(options->output, error)) / 1e6;
      char line[64];
      std::snprintf(line, sizeof line, "%.1f MB", megabytes);
      std::cout << options->output << ": " << line << "\n";
    }
  });
  return command;
}
