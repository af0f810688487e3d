//===- Table.h - aligned columns for people -----------------------------------===//
#ifndef LLMC_TOOLS_COMMON_TABLE_H
#define LLMC_TOOLS_COMMON_TABLE_H

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

namespace llmc::tools {

/// Rows of text; a column that holds only numbers, with or without a unit, goes to the right.
class Table {
public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  void print(std::ostream &out) const {
    size_t columns = rows_[0].size();
    std::vector<size_t> widths(columns, 0);
    std::vector<bool> numeric(columns, true);
    for (size_t r = 0; r < rows_.size(); ++r)
      for (size_t c = 0; c < columns; ++c) {
        widths[c] = std::max(widths[c], rows_[r][c].size());
        bool number = !rows_[r][c].empty() && rows_[r][c][0] >= '0' && rows_[r][c][0] <= '9';
        if (r != 0 && !number)
          numeric[c] = false;
      }
    for (const auto &row : rows_) {
      std::string line = " ";
      for (size_t c = 0; c < columns; ++c) {
        std::string pad(widths[c] - row[c].size(), ' ');
        line += " " + (numeric[c] ? pad + row[c] : row[c] + pad) + " ";
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out << line << '\n';
    }
  }

private:
  std::vector<std::vector<std::string>> rows_; ///< the first is the header
};

/// "512 B", "74.1 MB", "1.2 GB": powers of ten, as disks and memory bandwidth are sold.
std::string formatBytes(double bytes);

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_TABLE_H
