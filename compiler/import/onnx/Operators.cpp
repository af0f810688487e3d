//===- Operators.cpp - the table of ONNX operators ----------------------------===//
#include "compiler/import/onnx/Operators.h"

using namespace llmc::onnx;
using llvm::StringRef;

static std::string key(StringRef domain, StringRef name) { return (domain + ":" + name).str(); }

void OperatorTable::add(StringRef domain, StringRef name, Operator row) {
  auto &rows = table[key(domain, name)];
  rows.insert(
      llvm::upper_bound(rows, row,
                        [](const Operator &a, const Operator &b) { return a.since < b.since; }),
      row);
  domains.insert(domain);
}

llvm::ArrayRef<Operator> OperatorTable::rows(StringRef domain, StringRef name) const {
  auto found = table.find(key(domain, name));
  return found == table.end() ? llvm::ArrayRef<Operator>() : found->second;
}

StringRef OperatorTable::nearest(StringRef domain, StringRef name) const {
  StringRef best;
  unsigned distance = std::max<size_t>(name.size() / 3, 1) + 1;
  for (const auto &entry : table) {
    auto [entryDomain, entryName] = entry.getKey().split(':');
    unsigned d = name.edit_distance(entryName, /*AllowReplacements=*/true, distance);
    if (entryDomain == domain &&
        (d < distance || (d == distance && !best.empty() && entryName < best))) {
      best = entryName;
      distance = d;
    }
  }
  return best;
}

const OperatorTable &OperatorTable::get() {
  static const OperatorTable table = [] {
    OperatorTable all;
    addMathOps(all);
    addActivationOps(all);
    addConstantOps(all);
    addShapeOps(all);
    addIndexOps(all);
    addReduceOps(all);
    addNormOps(all);
    addAttentionOps(all);
    addQuantOps(all);
    addContribOps(all);
    addControlOps(all);
    addScanOps(all);
    addSequenceOps(all);
    addSpatialOps(all);
    addResizeOps(all);
    addSignalOps(all);
    addRecurrentOps(all);
    addLossOps(all);
    addWindowOps(all);
    addLinearAttentionOps(all);
    addFeatureOps(all);
    addMixtureOps(all);
    return all;
  }();
  return table;
}
