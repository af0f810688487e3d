//===- BenchServe.h - `llmc bench --serve`: load on a server ----------------===//
//
// Works against every server that has POST /v1/completions with streams, so that different ones are
// measured by the same client.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TOOLS_COMMON_BENCHSERVE_H
#define LLMC_TOOLS_COMMON_BENCHSERVE_H

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace llmc::tools {

/// A length, or lengths drawn evenly from a range.
struct LengthRange {
  int64_t low = 0, high = 0;
};

struct BenchServeOptions {
  std::string url; ///< http://host:port or https://...; empty: no load on a server
  std::string apiKey, model;
  int64_t requests = 64;        ///< of each test
  std::vector<int> concurrency; ///< a test each: so many clients, each with its next request
  std::vector<double> rates;    ///< a test each: requests a second, Poisson arrivals
  std::string promptLength = "128", outputLength = "64"; ///< "N" or "LOW:HIGH", in words and tokens
  uint64_t seed = 1;
  int timeout = 600; ///< seconds a request
  bool json = false;
};

/// Prints a table or JSON to \p out; 1 if a request failed or the server can't be reached, 2 for
/// options that make no sense.
int benchServeMain(const BenchServeOptions &options, std::ostream &out, std::ostream &err);

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_BENCHSERVE_H
