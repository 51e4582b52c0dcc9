// SPDX-License-Identifier: Apache-2.0
#include "runtime/net/port_owner.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/printable_text.h"

namespace railhead::net {
namespace {

struct Listeners {
  std::set<std::string> inodes;
  std::string user;  // of the last
};

// Adds the listening sockets of /proc/net/tcp or tcp6 at the port. Each line has the columns
// number, local address, remote address, state, queues, timer, retransmissions, user, timeout,
// inode.
void AddListeners(const std::string& table, uint16_t port, Listeners& into) {
  constexpr size_t kLocal = 1, kState = 3, kUser = 7, kInode = 9;
  std::ifstream file(table);
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> columns =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (columns.size() <= kInode || columns[kState] != "0A") continue;
    const std::vector<std::string> local = absl::StrSplit(columns[kLocal], ':');
    uint32_t number = 0;
    if (local.size() != 2 || !absl::SimpleHexAtoi(local[1], &number) || number != port) continue;
    into.inodes.insert(absl::StrCat("socket:[", columns[kInode], "]"));
    into.user = columns[kUser];
  }
}

bool HasOne(const std::filesystem::path& process, const std::set<std::string>& sockets) {
  std::error_code error;
  std::filesystem::directory_iterator entry(process / "fd", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::error_code unreadable;
    const std::filesystem::path target = std::filesystem::read_symlink(entry->path(), unreadable);
    if (!unreadable && sockets.contains(target.string())) return true;
  }
  return false;
}

}  // namespace

std::string OwnerOfPort(const std::string& root, uint16_t port) {
  const std::filesystem::path proc = std::filesystem::path(root) / "proc";
  Listeners listeners;
  // These files show this process's network namespace.
  AddListeners(proc / "net/tcp", port, listeners);
  AddListeners(proc / "net/tcp6", port, listeners);
  if (listeners.inodes.empty()) return "another process";
  std::error_code error;
  std::filesystem::directory_iterator entry(proc, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string number = entry->path().filename();
    if (!std::all_of(number.begin(), number.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; }) ||
        !HasOne(entry->path(), listeners.inodes)) {
      continue;
    }
    std::string name;
    std::ifstream(entry->path() / "comm") >> name;
    return absl::StrCat("process ", number, " (", PrintableText(name), ")");
  }
  return absl::StrCat("a process of user ", PrintableText(listeners.user));
}

}  // namespace railhead::net
