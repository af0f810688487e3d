#include "compiler/calibrate/CalibrationRun.h"

#include "llvm/ADT/TypeSwitch.h"

#include <atomic>
#include <cmath>
#include <mutex>
#include <thread>

using namespace mlir;
using namespace llmc;
using namespace llmc::calibrate;
using llmrt::Result;
using llmrt::Status;

Status Run::embedding(llm::EmbeddingOp op) {
  LLMRT_ASSIGN_OR_RETURN(WeightView table, options.readable(op.getTable()));
  Rows &result = make(op.getResult());
  const uint64_t size = table.columnCount();
  if (auto ids = dyn_cast<BlockArgument>(op.getTokens()); ids && ids.getArgNumber() == 1) {
    for (uint64_t t = 0; t != tokens; ++t) { // a table of positions
      const uint64_t place = std::min(t, table.rowCount() - 1);
      LLMRT_RETURN_IF_ERROR(table.readRows(place, place + 1, result.data() + t * size));
    }
    return Status::ok();
  }
  // SplitMix64 (Steele et al., 2014): the same ids everywhere.
  uint64_t state = 1;
  for (uint64_t t = 0; t != tokens; ++t) {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    const uint64_t id = (z ^ z >> 31) % table.rowCount();
    LLMRT_RETURN_IF_ERROR(table.readRows(id, id + 1, result.data() + t * size));
  }
  return Status::ok();
}

void Run::record(llm::LinearOp op) {
  const Rows &x = of(op.getInput());
  const uint64_t size = llm::dim(op.getInput(), 1);
  std::vector<double> sums(size);
  for (size_t i = 0; i != x.size(); ++i)
    sums[i % size] += double(x[i]) * x[i];
  std::vector<float> squares(size);
  for (uint64_t i = 0; i != size; ++i)
    squares[i] = static_cast<float>(sums[i] / double(tokens));
  note(op.getWeight(), squares);
}

void Run::note(Value weight, const std::vector<float> &squares) {
  SmallVector<Value> pending{weight};
  while (!pending.empty()) {
    Operation *source = pending.pop_back_val().getDefiningOp();
    if (auto tensor = dyn_cast<llm::WeightOp>(source))
      importance[tensor.getName().str()] = squares;
    llvm::append_range(pending, source->getOperands());
  }
}

Status Run::linear(llm::LinearOp op) {
  record(op);
  LLMRT_ASSIGN_OR_RETURN(WeightView weight, options.readable(op.getWeight()));
  Rows bias;
  if (op.getBias()) {
    LLMRT_ASSIGN_OR_RETURN(bias, small(op.getBias()));
  }
  Rows &y = make(op.getResult());
  const Rows &x = of(op.getInput());
  const uint64_t count = weight.rowCount(), size = weight.columnCount();
  std::atomic<uint64_t> next = 0;
  std::mutex mutex;
  Status failure;
  const auto work = [&] {
    Rows part(kRowsATurn * size);
    for (uint64_t begin; (begin = next.fetch_add(kRowsATurn)) < count;) {
      const uint64_t end = std::min(count, begin + kRowsATurn);
      if (Status status = weight.readRows(begin, end, part.data()); !status.isOk()) {
        std::lock_guard lock(mutex);
        failure = status;
        next = count;
        return;
      }
      calibrate::multiply(x.data(), tokens, size, part.data(), end - begin, y.data(), count, begin);
    }
  };
  std::vector<std::thread> pool;
  for (unsigned i = 1; i < options.threads; ++i)
    pool.emplace_back(work);
  work();
  for (std::thread &thread : pool)
    thread.join();
  for (size_t i = 0; !bias.empty() && i != y.size(); ++i)
    y[i] += bias[i % count];
  return failure;
}

Status Run::norm(llm::RmsNormOp op) {
  LLMRT_ASSIGN_OR_RETURN(const Rows weight, small(op.getWeight()));
  Rows &y = make(op.getResult());
  const uint64_t size = op.getGroupSize().value_or(llm::dim(op.getInput(), 1));
  calibrate::rmsNorm(of(op.getInput()).data(), y.size() / size, size, weight.data(),
                     static_cast<float>(op.getEps().convertToDouble()),
                     op.getPlusOne() ? 1.0f : 0.0f, y.data());
  return Status::ok();
}

Status Run::norm(llm::LayerNormOp op) {
  LLMRT_ASSIGN_OR_RETURN(const Rows weight, small(op.getWeight()));
  Rows bias;
  if (op.getBias()) {
    LLMRT_ASSIGN_OR_RETURN(bias, small(op.getBias()));
  }
  Rows &y = make(op.getResult());
  calibrate::layerNorm(of(op.getInput()).data(), tokens, llm::dim(op.getInput(), 1), weight.data(),
                       bias.empty() ? nullptr : bias.data(),
                       static_cast<float>(op.getEps().convertToDouble()), y.data());
  return Status::ok();
}

Status Run::angles(llm::RopeAnglesOp op) {
  LLMRT_ASSIGN_OR_RETURN(const Rows frequencies, small(op.getFrequencies()));
  Rows &result = make(op.getResult());
  const float scale = static_cast<float>(op.getScale().convertToDouble());
  const size_t half = frequencies.size();
  for (uint64_t t = 0; t != tokens; ++t)
    for (size_t i = 0; i != half; ++i) {
      const float angle = static_cast<float>(t) * frequencies[i];
      // In double precision and rounded once: the same float from any C library.
      result[2 * t * half + i] = scale * static_cast<float>(std::cos(double(angle)));
      result[(2 * t + 1) * half + i] = scale * static_cast<float>(std::sin(double(angle)));
    }
  return Status::ok();
}

Status Run::gatherAngles(llm::RopeGatherOp op) {
  Rows &result = make(op.getResult());
  const uint64_t half = llm::dim(op.getCos(), 1);
  for (uint64_t part = 0; part != 2; ++part) {
    const Value table = part ? op.getSin() : op.getCos();
    LLMRT_ASSIGN_OR_RETURN(WeightView view, options.readable(table));
    for (uint64_t t = 0; t != tokens; ++t)
      LLMRT_RETURN_IF_ERROR(view.readRows(t, t + 1, result.data() + (2 * t + part) * half));
  }
  return Status::ok();
}

Status Run::selectAngles(llm::RopeSelectOp op) {
  auto model = op->getParentOfType<ModuleOp>()->getAttrOfType<DictionaryAttr>(llm::kModelAttr);
  auto original = model ? model.getAs<IntegerAttr>("rope_original_context") : nullptr;
  const bool isLong = original && tokens > static_cast<uint64_t>(original.getInt());
  make(op.getResult()) = of(isLong ? op.getLongAngles() : op.getShortAngles());
  return Status::ok();
}

Status Run::attention(llm::AttentionOp op) {
  const Cache &cache = *caches[op.getCache()];
  auto type = cast<llm::KvType>(op.getCache().getType());
  calibrate::AttentionShape shape{tokens,
                                  op.getHeads(),
                                  static_cast<uint64_t>(type.getHeads()),
                                  static_cast<uint64_t>(type.getKeySize()),
                                  static_cast<uint64_t>(type.getValueSize()),
                                  op.getWindow().value_or(0),
                                  static_cast<float>(op.getScale().convertToDouble()),
                                  0.0f,
                                  nullptr};
  if (op.getSoftcap())
    shape.softcap = static_cast<float>(op.getSoftcap()->convertToDouble());
  Rows slopes;
  if (op.getAlibi()) {
    LLMRT_ASSIGN_OR_RETURN(slopes, small(op.getAlibi()));
    shape.slopes = slopes.data();
  }
  Rows sinks;
  if (op.getSinks()) {
    LLMRT_ASSIGN_OR_RETURN(sinks, small(op.getSinks()));
    shape.sinks = sinks.data();
  }
  Rows &y = make(op.getResult());
  calibrate::attention(shape, of(op.getQuery()).data(), cache.keys.data(), cache.values.data(),
                       y.data());
  return Status::ok();
}

Status Run::columns(llm::ColumnsOp op) {
  Rows &y = make(op.getResult());
  const Rows &x = of(op.getInput());
  const uint64_t from = llm::dim(op.getInput(), 1), to = llm::dim(op.getResult(), 1);
  for (uint64_t t = 0; t != tokens; ++t)
    std::copy_n(x.data() + t * from + op.getOffset(), to, y.data() + t * to);
  return Status::ok();
}

Status Run::evaluate(Operation &op) {
  return llvm::TypeSwitch<Operation *, Status>(&op)
      .Case<llm::WeightOp, llm::WeightConstantOp, llm::WeightTransposeOp, llm::WeightConcatOp,
            llm::WeightStackOp, llm::WeightInterleaveOp, llm::WeightRowsOp, llm::WeightUnpermuteOp,
            llm::WeightReshapeOp, llm::KvCacheOp>([](auto) { return Status::ok(); })
      .Case([&](llm::EmbeddingOp e) { return embedding(e); })
      .Case([&](llm::LinearOp l) { return linear(l); })
      .Case<llm::RmsNormOp, llm::LayerNormOp>([&](auto n) { return norm(n); })
      .Case([&](llm::RopeAnglesOp r) { return angles(r); })
      .Case([&](llm::RopeGatherOp r) { return gatherAngles(r); })
      .Case([&](llm::RopeSelectOp r) { return selectAngles(r); })
      .Case([&](llm::RopeOp r) {
        Rows &y = make(r.getResult());
        calibrate::rotate(of(r.getInput()).data(), tokens, r.getHeads(),
                          llm::dim(r.getInput(), 1) / r.getHeads(), of(r.getAngles()).data(),
                          r.getRotary() / 2, r.getInterleaved(), y.data());
        return Status::ok();
      })
      .Case([&](llm::KvAppendOp a) {
        caches[a.getResult()] =
            std::make_shared<const Cache>(Cache{of(a.getKeys()), of(a.getValues())});
        return Status::ok();
      })
      .Case([&](llm::AttentionOp a) { return attention(a); })
      .Case([&](llm::RouteOp r) { return route(r); })
      .Case([&](llm::ExpertLinearOp e) { return experts(e); })
      .Case([&](llm::CombineOp c) { return combine(c); })
      .Case([&](llm::HeadLinearOp h) { return heads(h); })
      .Case([&](llm::LatentAppendOp a) { return appendLatent(a); })
      .Case([&](llm::ColumnsOp c) { return columns(c); })
      .Case([&](llm::GatherRowsOp g) {
        Rows copy = of(g.getInput());
        rows[g.getResult()] = std::move(copy);
        return Status::ok();
      })
      .Case([&](llm::GluOp g) {
        return each(g.getResult(), g.getGate(), g.getUp(), [&](float a, float b) {
          return calibrate::activate(kindOf(g.getActivation()), a) * b;
        });
      })
      .Case([&](llm::ActivateOp a) {
        return each(a.getResult(), a.getInput(), a.getInput(), [&](float x, float) {
          return calibrate::activate(kindOf(a.getActivation()), x);
        });
      })
      .Case([&](llm::AddOp a) {
        return each(a.getResult(), a.getLhs(), a.getRhs(), [](float x, float y) { return x + y; });
      })
      .Case([&](llm::MulOp m) {
        return each(m.getResult(), m.getLhs(), m.getRhs(), [](float x, float y) { return x * y; });
      })
      .Case([&](llm::ScaleOp s) {
        const float factor = static_cast<float>(s.getFactor().convertToDouble());
        return each(s.getResult(), s.getInput(), s.getInput(),
                    [factor](float x, float) { return x * factor; });
      })
      .Case([&](llm::SoftcapOp s) {
        const float cap = static_cast<float>(s.getCap().convertToDouble());
        return each(s.getResult(), s.getInput(), s.getInput(),
                    [cap](float x, float) { return calibrate::softcap(x, cap); });
      })
      .Default([](Operation *other) {
        return llmrt::unsupported("a calibration run doesn't know '" +
                                  other->getName().getStringRef().str() + "'");
      });
}

/// Frees what no later operation reads.
void Run::releaseOperands(Operation &op) {
  for (Value operand : op.getOperands())
    if (--uses[operand] == 0) {
      rows.erase(operand);
      choices.erase(operand);
      caches.erase(operand);
    }
}

Result<ColumnImportance> Run::measure() {
  llm::LinearOp last;
  uint64_t all = 0, done = 0;
  for (Operation &op : step.getBody().front()) {
    for (Value operand : op.getOperands())
      ++uses[operand];
    if (auto linear = dyn_cast<llm::LinearOp>(op)) {
      if (linear.getActivation() != llm::Activation::None || linear.getGlu() ||
          linear.getResidual())
        return llmrt::unsupported("a calibration run doesn't know fused projections");
      last = linear;
      ++all;
    }
  }
  for (Operation &op : step.getBody().front()) {
    if (&op == last.getOperation()) {
      record(last); // the head: nothing needs its result
      break;
    }
    LLMRT_RETURN_IF_ERROR(evaluate(op));
    releaseOperands(op);
    if (isa<llm::LinearOp>(op) && options.progress)
      options.progress(++done, all);
  }
  for (const auto &[name, squares] : importance)
    for (float square : squares)
      if (!std::isfinite(square))
        return llmrt::unsupported("the calibration run overflowed before tensor '" + name + "'");
  return std::move(importance);
}

Result<ColumnImportance> llmc::measureImportance(ModuleOp module,
                                                 const CalibrationOptions &options) {
  auto step = module.lookupSymbol<func::FuncOp>(llm::kStepFunction);
  if (!step)
    return llmrt::internalError("no step to calibrate");
  return Run(step, options).measure();
}
