// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_TESTS_NCCL_STOCK_SYMBOLS_H_
#define RAILHEAD_TESTS_NCCL_STOCK_SYMBOLS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace railhead::stock {

struct Symbol {
  std::string name;
  uintptr_t offset;  // from where the file is mapped
  size_t bytes;
  bool function;  // else data
};

// Returns the functions and data that the symbol table of an ELF file defines, local ones too.
// Empty: the file cannot be read, or is stripped.
std::vector<Symbol> SymbolsOf(const std::string& path);

}  // namespace railhead::stock

#endif  // RAILHEAD_TESTS_NCCL_STOCK_SYMBOLS_H_
