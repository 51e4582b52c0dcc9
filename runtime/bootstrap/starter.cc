// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/starter.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/printable_text.h"

namespace railhead::bootstrap {
namespace {

// Maximum number of ancestors that are reported.
constexpr size_t kMaxAncestors = 6;
// A text has a realm, ancestors and a name, separated by this; ancestors are separated by commas.
constexpr char kSeparator = '|';
constexpr size_t kParts = 3;

struct Process {
  int parent = 0;
  std::string name;
  std::string start;  // in ticks since the host booted

  // Distinguishes it from others of the same number.
  std::string Key(int pid) const { return absl::StrCat(pid, ":", start); }
};

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Reads /proc/<pid>/stat: "12 (a name) S 1 ...". The 4th column is the parent, the 22nd the start.
std::optional<Process> ReadProcess(const std::string& proc, absl::string_view pid) {
  constexpr size_t kParent = 1, kStart = 19;  // of the columns behind the name
  const std::string text = ReadAll(absl::StrCat(proc, pid, "/stat"));
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  const std::vector<std::string> columns =
      absl::StrSplit(text.substr(close + 1), ' ', absl::SkipEmpty());
  Process process;
  if (columns.size() <= kStart || !absl::SimpleAtoi(columns[kParent], &process.parent)) {
    return std::nullopt;
  }
  process.name = text.substr(open + 1, close - open - 1);
  process.start = columns[kStart];
  return process;
}

// Returns the environment with which a process was started; "" if it is not readable.
std::string EnvironmentOf(const std::string& proc, absl::string_view pid) {
  return ReadAll(absl::StrCat(proc, pid, "/environ"));
}

// Returns "RANK=3" of an environment; "" if it has none.
std::string RankIn(const std::string& environment, const std::string& variable) {
  const std::string prefix = absl::StrCat(variable, "=");
  for (const absl::string_view one : absl::StrSplit(environment, '\0')) {
    if (one.substr(0, prefix.size()) == prefix) return std::string(one);
  }
  return "";
}

// Returns true if a process is a fork of its parent, such as a subshell, in the same program.
bool IsFork(const std::string& proc, int pid, int parent) {
  const std::string environment = EnvironmentOf(proc, absl::StrCat(pid));
  const std::string command = ReadAll(absl::StrCat(proc, pid, "/cmdline"));
  return !environment.empty() && environment == EnvironmentOf(proc, absl::StrCat(parent)) &&
         !command.empty() && command == ReadAll(absl::StrCat(proc, parent, "/cmdline"));
}

// Returns a text that is the same for all processes that see the same process numbers; "" if it
// cannot be known.
std::string Realm(const std::string& proc) {
  const std::string boot = ReadAll(absl::StrCat(proc, "sys/kernel/random/boot_id"));
  struct stat numbers = {};
  if (boot.empty() || ::stat(absl::StrCat(proc, "self/ns/pid").c_str(), &numbers) != 0) return "";
  return absl::StrCat(boot.substr(0, boot.find('\n')), " ", numbers.st_ino);
}

// Returns true if the process does not identify its children's job: it adopts processes whose
// parent has ended, or starts each rank, from another of its kind, for a process elsewhere.
bool IsDaemon(int pid, const Process& process) {
  constexpr absl::string_view kNames[] = {"systemd", "sshd", "containerd-shim", "conmon"};
  return pid <= 1 || std::any_of(std::begin(kNames), std::end(kNames), [&](absl::string_view name) {
           return absl::StartsWith(process.name, name);
         });
}

}  // namespace

std::string FindStarter(const std::string& root, const std::string& rank_variable) {
  const std::string proc =
      absl::StrCat(root, root.empty() || root.back() != '/' ? "/" : "", "proc/");
  const std::string realm = Realm(proc);
  std::optional<Process> process = ReadProcess(proc, "self");
  if (realm.empty() || !process.has_value()) return "";
  const std::string rank = RankIn(EnvironmentOf(proc, "self"), rank_variable);
  std::vector<std::string> ancestors;
  std::string name;
  while (ancestors.size() < kMaxAncestors) {
    const int parent = process->parent;
    process = ReadProcess(proc, absl::StrCat(parent));
    if (!process.has_value() || IsDaemon(parent, *process)) return "";
    ancestors.push_back(process->Key(parent));
    name = absl::StrCat("process ", parent, " (", PrintableText(process->name), ")");
    const std::string environment = EnvironmentOf(proc, absl::StrCat(parent));
    const bool is_of_rank = !rank.empty() && RankIn(environment, rank_variable) == rank;
    if (!is_of_rank && !IsFork(proc, parent, process->parent)) break;
  }
  std::replace(name.begin(), name.end(), kSeparator, '?');
  return absl::StrCat(realm, std::string(1, kSeparator), absl::StrJoin(ancestors, ","),
                      std::string(1, kSeparator), name);
}

bool HaveOtherStarters(absl::string_view one, absl::string_view other) {
  const std::vector<absl::string_view> a = absl::StrSplit(one, kSeparator);
  const std::vector<absl::string_view> b = absl::StrSplit(other, kSeparator);
  if (a.size() != kParts || b.size() != kParts || a[0] != b[0]) return false;
  const std::vector<absl::string_view> of_a = absl::StrSplit(a[1], ',');
  const std::vector<absl::string_view> of_b = absl::StrSplit(b[1], ',');
  return std::none_of(of_a.begin(), of_a.end(), [&of_b](absl::string_view ancestor) {
    return std::find(of_b.begin(), of_b.end(), ancestor) != of_b.end();
  });
}

std::string OutermostStarter(absl::string_view starter) {
  const std::vector<absl::string_view> parts = absl::StrSplit(starter, kSeparator);
  if (parts.size() != kParts) return "";
  const std::vector<absl::string_view> ancestors = absl::StrSplit(parts[1], ',');
  return absl::StrCat(parts[0], " ", ancestors.back());
}

std::string DescribeStarter(absl::string_view starter) {
  const std::vector<absl::string_view> parts = absl::StrSplit(starter, kSeparator);
  return parts.size() == kParts ? std::string(parts[2]) : "an unknown process";
}

}  // namespace railhead::bootstrap
