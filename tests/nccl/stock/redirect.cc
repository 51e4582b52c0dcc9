// SPDX-License-Identifier: Apache-2.0
#include "tests/nccl/stock/redirect.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "tests/nccl/stock/cuda/api.h"
#include "tests/nccl/stock/symbols.h"

namespace railhead::stock {
namespace {

constexpr uintptr_t kPage = 4096;
// jmp *0(%rip), and the address.
constexpr size_t kJumpBytes = 14;
// movabs $name, %rdi; and a jump.
constexpr size_t kStubBytes = 32;

struct Library {
  std::map<uintptr_t, std::string> kernels;
  std::map<std::string, uintptr_t> others;
};

Library& TheLibrary() {
  static auto* const library = new Library;
  return *library;
}

int NotSupported(const char* name) {
  Log("%s is not emulated", name);
  return kNotSupported;
}

void WriteJump(unsigned char* at, const void* to) {
  constexpr unsigned char kCode[] = {0xff, 0x25, 0, 0, 0, 0};
  std::memcpy(at, kCode, sizeof kCode);
  std::memcpy(at + sizeof kCode, &to, sizeof to);
}

// Memory with a stub for each name, at kStubBytes from each other.
unsigned char* MakeStubs(const std::vector<std::string>& names) {
  const size_t bytes = std::max<size_t>(names.size(), 1) * kStubBytes;
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) GiveUp("no memory for stubs: %m");
  auto* const stubs = static_cast<unsigned char*>(memory);
  unsigned char* stub = stubs;
  for (const std::string& name : names) {
    const char* const kept = strdup(name.c_str());
    constexpr unsigned char kCode[] = {0x48, 0xbf};
    std::memcpy(stub, kCode, sizeof kCode);
    std::memcpy(stub + sizeof kCode, &kept, sizeof kept);
    WriteJump(stub + sizeof kCode + sizeof kept, reinterpret_cast<void*>(&NotSupported));
    stub += kStubBytes;
  }
  mprotect(memory, bytes, PROT_READ | PROT_EXEC);
  return stubs;
}

bool OfRuntime(const Symbol& symbol) {
  const std::string& name = symbol.name;
  // A dot is in the names of parts of functions: name.cold, name.part.0.
  return symbol.function && name.starts_with("cuda") && name.size() > 4 &&
         std::isupper(static_cast<unsigned char>(name[4])) != 0 && symbol.bytes >= kJumpBytes &&
         name.find('.') == std::string::npos;
}

void Redirect(uintptr_t base, const std::vector<Symbol>& symbols) {
  std::vector<std::pair<uintptr_t, const void*>> jumps;
  std::vector<std::pair<uintptr_t, size_t>> missing;
  std::vector<std::string> names;
  for (const Symbol& symbol : symbols) {
    if (!OfRuntime(symbol)) continue;
    if (const void* const ours = dlsym(RTLD_DEFAULT, symbol.name.c_str()); ours != nullptr) {
      jumps.emplace_back(base + symbol.offset, ours);
    } else {
      missing.emplace_back(base + symbol.offset, names.size());
      names.push_back(symbol.name);
    }
  }
  if (jumps.empty()) GiveUp("the library has no CUDA runtime, or no symbol table");
  const unsigned char* const stubs = MakeStubs(names);
  for (const auto& [at, number] : missing) jumps.emplace_back(at, stubs + number * kStubBytes);

  const auto [low, high] = std::minmax_element(jumps.begin(), jumps.end());
  const uintptr_t begin = low->first / kPage * kPage;
  const uintptr_t end = (high->first + kJumpBytes + kPage - 1) / kPage * kPage;
  auto* const text = reinterpret_cast<void*>(begin);
  if (mprotect(text, end - begin, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
    GiveUp("the kernel does not let this process write its own code: %m");
  }
  for (const auto& [at, to] : jumps) WriteJump(reinterpret_cast<unsigned char*>(at), to);
  mprotect(text, end - begin, PROT_READ | PROT_EXEC);
}

}  // namespace

void* LoadNccl(const std::string& path) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) GiveUp("%s", dlerror());
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) GiveUp("%s", dlerror());
  const std::vector<Symbol> symbols = SymbolsOf(path);
  Library& library = TheLibrary();
  for (const Symbol& symbol : symbols) {
    const uintptr_t address = map->l_addr + symbol.offset;
    if (symbol.function && symbol.name.find("Kernel") != std::string::npos) {
      library.kernels[address] = symbol.name;
    } else if (symbol.name.starts_with("nccl")) {
      library.others[symbol.name] = address;
    }
  }
  Redirect(map->l_addr, symbols);
  return handle;
}

std::string KernelName(const void* stub) {
  const auto found = TheLibrary().kernels.find(reinterpret_cast<uintptr_t>(stub));
  return found == TheLibrary().kernels.end() ? "" : found->second;
}

const void* AddressOf(const std::string& symbol) {
  const auto found = TheLibrary().others.find(symbol);
  return found == TheLibrary().others.end() ? nullptr : reinterpret_cast<void*>(found->second);
}

}  // namespace railhead::stock
