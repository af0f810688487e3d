//===- ImportFixture.h - imports a model and keeps what it said ------------------===//
#ifndef LLMC_TEST_IMPORTFIXTURE_H
#define LLMC_TEST_IMPORTFIXTURE_H

#include "dialects/llm/LlmDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "test/unit/compiler/common/TempFolder.h"

#include <gtest/gtest.h>

namespace llmc::test {

class ImportFixture : public ::testing::Test {
protected:
  ImportFixture() {
    context.loadDialect<llm::LlmDialect, mlir::func::FuncDialect>();
    context.getDiagEngine().registerHandler([this](mlir::Diagnostic &diagnostic) {
      std::string &to =
          diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error ? errors : remarks;
      to += diagnostic.str() + "\n";
      return mlir::success();
    });
  }

  static std::string printed(mlir::ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream out(text);
    module.print(out);
    return text;
  }
  template <typename Op> static size_t count(mlir::ModuleOp module) {
    size_t n = 0;
    module.walk([&](Op) { ++n; });
    return n;
  }
  static void expectHas(const std::string &text, const std::string &part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }

  mlir::MLIRContext context;
  TempFolder folder;
  std::string errors, remarks;
};

} // namespace llmc::test

#endif // LLMC_TEST_IMPORTFIXTURE_H
