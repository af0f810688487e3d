//===- Diagnostics.cpp - MLIR's diagnostics as one message -------------------------------===//

#include "compiler/driver/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace llmc;

DiagnosticCollector::DiagnosticCollector(MLIRContext *context, std::string model)
    : model_(std::move(model)), handler_(context, [this](Diagnostic &diagnostic) {
        std::lock_guard lock(mutex_);
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
          errors_.push_back(format(diagnostic));
        else if (diagnostic.getSeverity() != DiagnosticSeverity::Note)
          remarks_.push_back(format(diagnostic));
        return success();
      }) {}

/// The name of the node that a location leads to; empty when it has none.
static std::string nodeName(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName().str();
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (std::string name = nodeName(part); !name.empty())
        return name;
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return nodeName(call.getCallee());
  return "";
}

std::string DiagnosticCollector::format(Diagnostic &diagnostic) {
  std::string text = diagnostic.str();
  // Importers name file and node themselves.
  if (StringRef(text).starts_with(model_))
    return text;
  std::string place = model_;
  if (auto file = dyn_cast<FileLineColLoc>(diagnostic.getLocation()))
    place = (file.getFilename().getValue() + ":" + Twine(file.getLine()) + ":" +
             Twine(file.getColumn()))
                .str();
  else if (std::string node = nodeName(diagnostic.getLocation()); !node.empty())
    place += ": node '" + node + "'";
  std::string result = place + ": " + text;
  for (Diagnostic &note : diagnostic.getNotes())
    // A printed operation helps a developer, not a user.
    if (std::string extra = note.str(); extra.find("see current operation") == std::string::npos)
      result += "; " + extra;
  return result;
}

std::string DiagnosticCollector::error(StringRef fallback) {
  std::lock_guard lock(mutex_);
  return errors_.empty() ? model_ + ": " + fallback.str() : errors_.front();
}

std::vector<std::string> DiagnosticCollector::takeRemarks() {
  std::lock_guard lock(mutex_);
  return std::exchange(remarks_, {});
}
