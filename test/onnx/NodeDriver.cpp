//===- NodeDriver.cpp - compiles and runs one ONNX model after another ---------===//
//
// Reads requests from standard input, a line each: MODEL PLAN INPUTS OUTPUTS, separated by tabs.
// Compiles MODEL to PLAN for this machine's level, runs it with the values of the file INPUTS,
// writes the results to OUTPUTS and answers with a line: "ok", "compile MESSAGE" or "run MESSAGE",
// and the milliseconds that compiling took in front of it. One process for many tests: starting
// one for each would take longer than the tests.
//
// A file of values: u32 count; for each: u32 length and bytes of its name, then the value: i32
// kind, i32 type; a tensor: u32 rank, i64 dims, u64 length and bytes of the elements; a sequence:
// u32 count and the values.
//
//===----------------------------------------------------------------------===//
#include "compiler/driver/GraphCompiler.h"
#include "compiler/import/onnx/Import.h"
#include "dialects/llm/LlmDialect.h"
#include "runtime/device/cpu/GraphExecutor.h"

#include <chrono>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>

using namespace llmrt;

namespace {

class Reader {
public:
  explicit Reader(std::string bytes) : bytes(std::move(bytes)) {}
  template <typename T> T number() {
    T value{};
    std::string_view piece = take(sizeof(T));
    if (piece.size() == sizeof(T))
      std::memcpy(&value, piece.data(), sizeof(T));
    return value;
  }
  std::string_view take(size_t n) {
    std::string_view piece = std::string_view(bytes).substr(std::min(at, bytes.size()), n);
    at += n;
    return piece;
  }
  GraphValue value() {
    GraphValue v;
    v.kind = number<int32_t>();
    v.type = number<int32_t>();
    if (v.kind == LLMRT_TENSOR) {
      v.dims.resize(number<uint32_t>());
      for (int64_t &dim : v.dims)
        dim = number<int64_t>();
      std::string_view data = take(number<uint64_t>());
      v.data.assign(data.begin(), data.end());
    } else if (v.kind == LLMRT_SEQUENCE) {
      v.items.resize(number<uint32_t>());
      for (GraphValue &item : v.items)
        item = value();
    }
    return v;
  }

private:
  std::string bytes;
  size_t at = 0;
};

template <typename T> void put(std::string &to, T value) {
  to.append(reinterpret_cast<const char *>(&value), sizeof(T));
}
void put(std::string &to, const GraphValue &v) {
  put(to, v.kind);
  put(to, v.type);
  if (v.kind == LLMRT_TENSOR) {
    put(to, static_cast<uint32_t>(v.dims.size()));
    for (int64_t dim : v.dims)
      put(to, dim);
    put(to, static_cast<uint64_t>(v.data.size()));
    to.append(v.data.begin(), v.data.end());
  } else if (v.kind == LLMRT_SEQUENCE) {
    put(to, static_cast<uint32_t>(v.items.size()));
    for (const GraphValue &item : v.items)
      put(to, item);
  }
}

std::string oneLine(std::string text) {
  for (char &c : text)
    if (c == '\n' || c == '\t')
      c = ' ';
  return text;
}

/// Compiles as `llmc compile -O0` does, for this machine's level alone.
Status compile(const std::string &model, const std::string &output) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  std::string messages;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
      messages += (messages.empty() ? "" : "; ") + diagnostic.str();
    return mlir::success();
  });
  context.loadDialect<llmc::llm::LlmDialect>();
  mlir::OwningOpRef<mlir::ModuleOp> module = llmc::importOnnx(model, &context);
  if (!module)
    return invalidFile(messages);
  llmc::prepareGraph(*module, model);
  std::string folder = model.substr(0, model.rfind('/'));
  std::vector<std::string> names;
  for (mlir::Attribute name : (*module)->getAttrOfType<mlir::ArrayAttr>(llmc::llm::kFilesAttr))
    names.push_back(mlir::cast<mlir::StringAttr>(name).str());
  LLMRT_ASSIGN_OR_RETURN(llmc::ModelFiles files, llmc::ModelFiles::open(folder, names));
  auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
  llmc::GraphTables tables(main);
  llmc::PlanExtras extras;
  for (llmc::CpuLevel level : llmc::allCpuLevels()) {
    if (llmc::cpuLevelName(level) != llvm::StringRef(cpuLevelName(machineCpuLevel())))
      continue;
    auto object = llmc::emitGraphObject(main, tables, level, 0);
    if (mlir::failed(object))
      return invalidFile(messages);
    extras.code.push_back({llmc::cpuLevelName(level).str(), std::move(*object)});
  }
  extras.provenance.compiler = "llmc";
  llmc::Progress progress(/*quiet=*/true);
  return llmc::writeGraphPlan(*module, tables, files, extras, output, progress);
}

/// The answer to one request, without the time.
std::string serve(const std::vector<std::string> &request, double &milliseconds) {
  auto start = std::chrono::steady_clock::now();
  Status compiled = compile(request[0], request[1]);
  milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (!compiled)
    return "compile " + oneLine(compiled.message());
  auto plan = Plan::open(request[1]);
  if (!plan)
    return "run " + oneLine(plan.status().message());
  auto executor = GraphExecutor::create(*plan);
  if (!executor)
    return "run " + oneLine(executor.status().message());
  std::stringstream text;
  text << std::ifstream(request[2], std::ios::binary).rdbuf();
  Reader reader(text.str());
  std::vector<NamedGraphValue> inputs(reader.number<uint32_t>());
  for (NamedGraphValue &input : inputs) {
    input.name = reader.take(reader.number<uint32_t>());
    input.value = reader.value();
  }
  auto outputs = (*executor)->run(inputs);
  if (!outputs)
    return "run " + oneLine(outputs.status().message());
  std::string bytes;
  put(bytes, static_cast<uint32_t>(outputs->size()));
  for (const NamedGraphValue &output : *outputs) {
    put(bytes, static_cast<uint32_t>(output.name.size()));
    bytes += output.name;
    put(bytes, output.value);
  }
  std::ofstream(request[3], std::ios::binary) << bytes;
  return "ok";
}

} // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::vector<std::string> request;
    std::stringstream parts(line);
    for (std::string part; std::getline(parts, part, '\t');)
      request.push_back(part);
    if (request.size() != 4) {
      std::cout << "0 run a request has four parts" << std::endl;
      continue;
    }
    double milliseconds = 0;
    std::string answer = serve(request, milliseconds);
    std::cout << milliseconds << ' ' << answer << std::endl;
  }
}
