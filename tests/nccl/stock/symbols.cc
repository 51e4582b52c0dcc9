// SPDX-License-Identifier: Apache-2.0
#include "tests/nccl/stock/symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace railhead::stock {
namespace {

std::vector<Symbol> Read(const char* file) {
  const auto* const header = reinterpret_cast<const Elf64_Ehdr*>(file);
  const auto* const sections = reinterpret_cast<const Elf64_Shdr*>(file + header->e_shoff);
  std::vector<Symbol> found;
  for (int section = 0; section < header->e_shnum; ++section) {
    const Elf64_Shdr& table = sections[section];
    if (table.sh_type != SHT_SYMTAB) continue;
    const auto* const symbols = reinterpret_cast<const Elf64_Sym*>(file + table.sh_offset);
    const char* const names = file + sections[table.sh_link].sh_offset;
    for (size_t i = 0; i < table.sh_size / sizeof(Elf64_Sym); ++i) {
      const Elf64_Sym& symbol = symbols[i];
      const unsigned char type = ELF64_ST_TYPE(symbol.st_info);
      if (symbol.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_OBJECT)) continue;
      found.push_back({names + symbol.st_name, symbol.st_value, symbol.st_size, type == STT_FUNC});
    }
  }
  return found;
}

}  // namespace

std::vector<Symbol> SymbolsOf(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  struct stat status = {};
  fstat(file, &status);
  const auto bytes = static_cast<size_t>(status.st_size);
  void* const mapped = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (mapped == MAP_FAILED) return {};
  std::vector<Symbol> found = Read(static_cast<const char*>(mapped));
  munmap(mapped, bytes);
  return found;
}

}  // namespace railhead::stock
