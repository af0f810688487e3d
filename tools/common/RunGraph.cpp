#include "tools/common/RunGraph.h"

#include "tools/common/NpyTensor.h"

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

namespace llmc::tools {

using namespace llmrt;
using Clock = std::chrono::steady_clock;

namespace {

Result<std::vector<NamedGraphValue>> readInputs(const Plan &plan, const RunGraphOptions &options) {
  std::vector<NamedGraphValue> inputs;
  for (const std::string &text : options.inputs) {
    size_t at = text.find('=');
    if (at == std::string::npos || at == 0)
      return invalidArgument("--input '" + text + "': must be NAME=FILE.npy");
    std::string name = text.substr(0, at);
    const fbs::ValueType *type = nullptr;
    for (const fbs::ValueType *input : *plan.head().main()->inputs())
      if (input->name()->string_view() == name)
        type = input;
    LLMRT_ASSIGN_OR_RETURN(GraphValue value, readNpy(text.substr(at + 1), type ? type->type() : 0));
    bool isSequence = type && (type->kind() == fbs::ValueKind::Sequence || type->of_sequence());
    if (!isSequence) {
      inputs.push_back({name, std::move(value)});
      continue;
    }
    auto found = std::find_if(inputs.begin(), inputs.end(),
                              [&](const NamedGraphValue &input) { return input.name == name; });
    if (found == inputs.end()) {
      inputs.push_back({name, {}});
      found = inputs.end() - 1;
      found->value.kind = LLMRT_SEQUENCE;
      found->value.type = type->type();
    }
    found->value.items.push_back(std::move(value));
  }
  return inputs;
}

/// The name as part of a path: letters, digits and "._-" stay.
std::string fileName(const std::string &name) {
  std::string result;
  for (char c : name)
    result +=
        std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-' ? c : '_';
  return result == "." || result == ".." ? "_" : result;
}

Status writeOutput(const std::string &path, const GraphValue &value) {
  if (value.kind == LLMRT_TENSOR)
    return writeNpy(path + ".npy", value);
  for (size_t i = 0; i < value.items.size(); ++i)
    LLMRT_RETURN_IF_ERROR(writeOutput(path + "." + std::to_string(i), value.items[i]));
  return Status::ok();
}

nlohmann::ordered_json describe(const GraphValue &value) {
  if (value.kind == LLMRT_SEQUENCE) {
    auto items = nlohmann::ordered_json::array();
    for (const GraphValue &item : value.items)
      items.push_back(describe(item));
    return {{"sequence", std::move(items)}};
  }
  if (value.kind == LLMRT_NONE)
    return nullptr;
  return {{"type", graphTypeName(value.type)}, {"shape", value.dims}};
}

std::string describeText(const GraphValue &value) {
  if (value.kind == LLMRT_NONE)
    return "nothing";
  if (value.kind == LLMRT_SEQUENCE)
    return "a sequence of " + std::to_string(value.items.size());
  std::string text = graphTypeName(value.type);
  text += "[";
  for (size_t i = 0; i < value.dims.size(); ++i)
    text += (i ? ", " : "") + std::to_string(value.dims[i]);
  return text + "]";
}

Status run(const std::string &path, const RunGraphOptions &options, std::ostream &out) {
  auto start = Clock::now();
  LLMRT_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, Plan::open(path));
  LLMRT_ASSIGN_OR_RETURN(auto executor, GraphExecutor::create(plan));
  LLMRT_ASSIGN_OR_RETURN(auto inputs, readInputs(*plan, options));
  auto loaded = Clock::now();
  LLMRT_ASSIGN_OR_RETURN(auto outputs, executor->run(inputs));
  auto done = Clock::now();
  if (!options.outputDir.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.outputDir, error);
    if (error)
      return ioError("--output-dir " + options.outputDir + ": " + error.message());
    std::set<std::string> names;
    for (const NamedGraphValue &output : outputs) {
      if (!names.insert(fileName(output.name)).second)
        return invalidArgument("two outputs would be written to '" + fileName(output.name) +
                               ".npy'");
      LLMRT_RETURN_IF_ERROR(
          writeOutput(options.outputDir + "/" + fileName(output.name), output.value));
    }
  }
  auto ms = [](Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
  if (options.json) {
    nlohmann::ordered_json json, list;
    for (const NamedGraphValue &output : outputs)
      list[output.name] = describe(output.value);
    json["outputs"] = std::move(list);
    json["timings"] = {{"load_ms", ms(loaded - start)},
                       {"run_ms", ms(done - loaded)},
                       {"cpu_level", cpuLevelName(executor->level())}};
    out << json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << std::endl;
  } else {
    for (const NamedGraphValue &output : outputs)
      out << output.name << ": " << describeText(output.value) << std::endl;
  }
  return out.good() ? Status::ok() : ioError("writing the output failed");
}

} // namespace

int runGraphMain(const std::string &path, const RunGraphOptions &options, std::ostream &out,
                 std::ostream &err) {
  if (Status status = run(path, options, out); !status) {
    err << "error: " << status.message() << std::endl;
    return 1;
  }
  return 0;
}

} // namespace llmc::tools
