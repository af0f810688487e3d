//===- CalibrationRun.h - one run of a decoder, to see its inputs ----------------===//
//
// Calibrate.cpp has the walk and the dense operations, CalibrateMixture.cpp those of mixtures of
// experts and latent attention.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CALIBRATE_CALIBRATIONRUN_H
#define LLMC_CALIBRATE_CALIBRATIONRUN_H

#include "compiler/calibrate/Arithmetic.h"
#include "compiler/calibrate/Calibrate.h"
#include "dialects/llm/LlmDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace llmc::calibrate {

/// Rows of w that one thread reads and multiplies at a time.
constexpr uint64_t kRowsATurn = 16;

/// Keys and values of the one sequence.
struct Cache {
  std::vector<float> keys, values;
};

class Run {
public:
  Run(mlir::func::FuncOp step, const CalibrationOptions &options)
      : step(step), options(options), tokens(options.tokens) {}

  llmrt::Result<ColumnImportance> measure();

private:
  using Rows = std::vector<float>;

  llmrt::Status evaluate(mlir::Operation &op);
  llmrt::Status linear(llm::LinearOp op);
  llmrt::Status attention(llm::AttentionOp op);
  llmrt::Status embedding(llm::EmbeddingOp op);
  llmrt::Status angles(llm::RopeAnglesOp op);
  llmrt::Status gatherAngles(llm::RopeGatherOp op);
  llmrt::Status selectAngles(llm::RopeSelectOp op);
  llmrt::Status norm(llm::RmsNormOp op);
  llmrt::Status norm(llm::LayerNormOp op);
  llmrt::Status columns(llm::ColumnsOp op);
  // Mixtures of experts and latent attention (CalibrateMixture.cpp).
  llmrt::Status route(llm::RouteOp op);
  llmrt::Status experts(llm::ExpertLinearOp op);
  llmrt::Status combine(llm::CombineOp op);
  llmrt::Status heads(llm::HeadLinearOp op);
  llmrt::Status appendLatent(llm::LatentAppendOp op);
  void record(llm::LinearOp op);
  /// Notes \p squares, the mean of the squares of each input, for every tensor that \p weight is a
  /// view of.
  void note(mlir::Value weight, const std::vector<float> &squares);
  void releaseOperands(mlir::Operation &op);

  /// All values of a small weight (a norm, a bias, frequencies).
  llmrt::Result<Rows> small(mlir::Value weight) {
    LLMRT_ASSIGN_OR_RETURN(WeightView view, options.readable(weight));
    Rows values(view.rowCount() * view.columnCount());
    LLMRT_RETURN_IF_ERROR(view.readRows(0, view.rowCount(), values.data()));
    return values;
  }
  const Rows &of(mlir::Value value) { return rows[value]; }
  Rows &make(mlir::Value value) {
    auto type = mlir::cast<mlir::RankedTensorType>(value.getType());
    uint64_t size = tokens;
    for (int64_t extent : type.getShape().drop_front())
      size *= extent;
    Rows &result = rows[value];
    result.assign(size, 0.0f);
    return result;
  }
  /// result[i] = f(a[i], b[i]).
  template <typename F> llmrt::Status each(mlir::Value result, mlir::Value a, mlir::Value b, F f) {
    Rows out(of(a).size());
    const Rows &left = of(a), &right = of(b);
    for (size_t i = 0; i != out.size(); ++i)
      out[i] = f(left[i], right[i]);
    rows[result] = std::move(out);
    return llmrt::Status::ok();
  }
  static calibrate::Activation kindOf(llm::Activation kind) {
    static_assert(static_cast<int>(llm::Activation::Sigmoid) ==
                  static_cast<int>(calibrate::Activation::Sigmoid));
    return static_cast<calibrate::Activation>(kind);
  }

  mlir::func::FuncOp step;
  const CalibrationOptions &options;
  uint64_t tokens;
  llvm::DenseMap<mlir::Value, Rows> rows;
  llvm::DenseMap<mlir::Value, std::vector<int32_t>> choices; ///< of routers, [tokens, chosen]
  llvm::DenseMap<mlir::Value, std::shared_ptr<const Cache>> caches;
  llvm::DenseMap<mlir::Value, unsigned> uses;
  ColumnImportance importance;
};

} // namespace llmc::calibrate

#endif // LLMC_CALIBRATE_CALIBRATIONRUN_H
