//===- GraphExecutor.h - runs a plan's `main` --------------------------------===//
//
// A plan of a graph that is no decoder has one entry, `main`, with inputs and outputs of its own
// (plan.fbs, table Main; GraphAbi.h). Shapes may be dynamic and may depend on data, so the code
// takes its memory from this executor while it runs; all of it is given back at the end of a run,
// also of one that fails.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_DEVICE_CPU_GRAPHEXECUTOR_H
#define LLMRT_DEVICE_CPU_GRAPHEXECUTOR_H

#include "runtime/device/cpu/CodeModule.h"
#include "runtime/device/cpu/CpuLevel.h"
#include "runtime/device/cpu/GraphAbi.h"
#include "runtime/plan/Plan.h"

#include <span>

namespace llmrt {

/// A tensor, or a sequence of them, or an optional that is empty.
struct GraphValue {
  int32_t kind = LLMRT_TENSOR;
  int32_t type = 0; ///< element type, its number in ONNX
  std::vector<int64_t> dims;
  std::vector<uint8_t> data;     ///< row-major; an element of less than 8 bits takes a byte
  std::vector<GraphValue> items; ///< of a sequence
};

struct NamedGraphValue {
  std::string name;
  GraphValue value;
};

/// Bytes of an element in memory; 0 for a number that is no element type.
unsigned graphElementBytes(int32_t type);
/// "float16"; NumPy's name where it has the type.
const char *graphTypeName(int32_t type);

class GraphExecutor {
public:
  /// Loads the code for this machine. Errors: a plan without `main`, no code for this machine.
  static Result<std::unique_ptr<GraphExecutor>> create(std::shared_ptr<const Plan> plan);

  /// Runs once. Inputs go by name; every one that the plan lists must be there, with its element
  /// type, rank and fixed dimensions. A failure of the graph itself (an index out of range, ...)
  /// names the node.
  Result<std::vector<NamedGraphValue>> run(std::span<const NamedGraphValue> inputs);

  const Plan &plan() const { return *plan_; }
  CpuLevel level() const { return level_; }

private:
  GraphExecutor(std::shared_ptr<const Plan> plan, CodeModule code, CpuLevel level,
                LlmrtGraphMain main);
  Status check(std::span<const NamedGraphValue> inputs,
               std::vector<const GraphValue *> &ordered) const;
  Status runError(const LlmrtGraph &graph) const;

  std::shared_ptr<const Plan> plan_;
  CodeModule code_;
  CpuLevel level_;
  LlmrtGraphMain main_;
  std::vector<const void *> weights_;
};

} // namespace llmrt

#endif // LLMRT_DEVICE_CPU_GRAPHEXECUTOR_H
