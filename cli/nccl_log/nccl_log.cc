// SPDX-License-Identifier: Apache-2.0
#include "cli/nccl_log/nccl_log.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace railhead::cli {
namespace {

constexpr size_t kMostTexts = 8;  // that are kept of a process

// A line of NCCL: "host:pid:tid [device] NCCL INFO text", after any prefix.
struct Line {
  absl::string_view process;
  absl::string_view text;
  bool warns = false;
};

std::optional<Line> Split(absl::string_view line) {
  Line split;
  for (const absl::string_view mark : {"NCCL INFO ", "NCCL WARN ", "NCCL ATTN "}) {
    const size_t at = line.find(mark);
    if (at == absl::string_view::npos) continue;
    split.warns = mark != "NCCL INFO ";
    split.text = absl::StripAsciiWhitespace(line.substr(at + mark.size()));
    // The last word of the form host:pid:tid.
    const std::vector<absl::string_view> words = absl::StrSplit(line.substr(0, at), ' ');
    for (auto word = words.rbegin(); word != words.rend(); ++word) {
      const size_t last = word->rfind(':');
      if (last == absl::string_view::npos || last == 0) continue;
      const absl::string_view process = word->substr(0, last);
      const size_t colon = process.rfind(':');
      int number = 0;
      if (colon == absl::string_view::npos || !absl::SimpleAtoi(word->substr(last + 1), &number) ||
          !absl::SimpleAtoi(process.substr(colon + 1), &number)) {
        continue;
      }
      split.process = process;
      return split;
    }
  }
  return std::nullopt;
}

// Returns the text behind `mark`, up to `end` or the line's end; nullopt without the mark.
std::optional<std::string> Behind(absl::string_view text, absl::string_view mark,
                                  absl::string_view end = "") {
  const size_t at = text.find(mark);
  if (at == absl::string_view::npos) return std::nullopt;
  absl::string_view rest = text.substr(at + mark.size());
  if (!end.empty()) rest = rest.substr(0, rest.find(end));
  return std::string(absl::StripAsciiWhitespace(rest));
}

std::optional<int> NumberBehind(absl::string_view text, absl::string_view mark) {
  const std::optional<std::string> word = Behind(text, mark, " ");
  int number = 0;
  if (!word.has_value() || !absl::SimpleAtoi(absl::StripSuffix(*word, ","), &number) ||
      number < 0) {
    return std::nullopt;
  }
  return number;
}

void Keep(std::string text, std::vector<std::string>& texts) {
  if (texts.size() < kMostTexts) texts.push_back(std::move(text));
}

void ReadPlugin(absl::string_view text, NcclProcess& process) {
  constexpr absl::string_view kCannotOpen = "cannot open shared object file";
  if (const auto name = Behind(text, "Loaded net plugin ", " (")) process.plugins.insert(*name);
  if (const auto library = Behind(text, "External network plugin ", " is unsupported")) {
    process.unsupported.insert(*library);
  }
  if (const auto name = Behind(text, "Failed to initialize NET plugin ")) {
    process.failed_networks.insert(*name);
  }
  // Older versions say the first, newer ones the others.
  if (const auto name = Behind(text, "Plugin name set by env to ")) {
    process.environment["NCCL_NET_PLUGIN"] = *name;
  }
  if (!absl::StartsWith(text, "NET/Plugin")) return;
  PluginError error;
  if (const auto load = Behind(text, "Plugin load (", ") returned ")) {
    // "Plugin load (LIBRARY) returned 2 : the loader's error"
    const std::optional<std::string> why = Behind(text, " : " + *load + ": ");
    if (!why.has_value()) return;
    error = {*load, *why};
  } else if (const auto missing = Behind(text, "Could not find: ", ". Using internal")) {
    error = {std::string(absl::StripSuffix(*missing, ".")), ""};
  } else if (absl::StrContains(text, ".so") && absl::StrContains(text, ": ")) {
    // "NET/Plugin: LIBRARY: the loader's error"
    const std::string rest = Behind(text, ": ").value_or("");
    const size_t at = rest.find(": ");
    if (at == std::string::npos || absl::StrContains(rest.substr(0, at), " ")) return;
    error = {rest.substr(0, at), rest.substr(at + 2)};
  } else {
    return;
  }
  if (absl::StrContains(error.error, kCannotOpen)) error.error.clear();
  if (process.plugin_errors.size() < kMostTexts &&
      std::find(process.plugin_errors.begin(), process.plugin_errors.end(), error) ==
          process.plugin_errors.end()) {
    process.plugin_errors.push_back(std::move(error));
  }
}

void ReadCollNet(absl::string_view text, NcclProcess& process) {
  if (const auto count = Behind(text, ": ", " CollNet devices");
      count && absl::EndsWith(text, " CollNet devices") && absl::StartsWith(text, "Rank ")) {
    int number = 0;
    if (absl::SimpleAtoi(*count, &number)) process.collnet_devices = number;
  }
  if (absl::StrContains(text, "less than CollNet node threshold")) {
    process.collnet_threshold = NumberBehind(text, "less than CollNet node threshold ");
  }
  process.collnet_differs |= absl::StrContains(text, "mixed local CollNet device counts");
  process.collnet_begun |=
      absl::StrContains(text, "via COLLNET/") || absl::StartsWith(text, "Sharp rank ");
  process.collnet_connected |= absl::StrContains(text, "Connected CollNet");
  process.collnet_failed |= absl::StrContains(text, "Cannot initialize CollNet");
}

void Read(const Line& line, NcclProcess& process) {
  const absl::string_view text = line.text;
  if (const auto value = Behind(text, " set by environment to ")) {
    const absl::string_view name = text.substr(0, text.find(' '));
    process.environment[std::string(name)] = std::string(absl::StripSuffix(*value, "."));
  }
  if (const auto network = Behind(text, "Using network "); network && process.network.empty()) {
    process.network = *network;
  }
  // Later lines of it are of other parts of NCCL.
  process.sockets |= absl::StartsWith(text, "NET/Socket : Using");
  process.no_rdma |= !process.sockets && (absl::StrContains(text, "NET/IB : No device") ||
                                          absl::EndsWith(text, "NET plugin IB"));
  process.no_network |= absl::StrContains(text, "Failed to initialize any NET plugin");
  // 2.26 names it, and tries others before.
  if (const auto name = Behind(text, "Error: network ", " not found."); name && line.warns) {
    process.no_network = true;
    process.environment["NCCL_NET"] = *name;
  }
  if (const auto own = Behind(text, "NET/Railhead: "); own && line.warns) {
    Keep(*own, process.own_warnings);
  }
  if (const auto path = Behind(text, " via NET/", "/"); path.has_value()) {
    process.connected_over.insert(*path);
  }
  if (absl::StrContains(text, "GPU Direct RDMA Disabled")) {
    process.staged_hcas.insert(
        Behind(text, "'", "'").value_or(Behind(text, "for HCA ", " ").value_or("")));
  }
  if (absl::StrContains(text, " nRanks ") && absl::StrContains(text, " nNodes ") &&
      process.nodes == 0) {
    process.rank = NumberBehind(text, " rank ");
    process.nodes = NumberBehind(text, " nNodes ").value_or(0);
  }
  if (absl::StrContains(text, "Init START") && !process.rank.has_value()) {
    process.rank = NumberBehind(text, " rank ");
  }
  if (absl::StrContains(text, "Init COMPLETE")) {
    process.complete = true;
    if (!process.rank.has_value()) process.rank = NumberBehind(text, " rank ");
  }
  if (line.warns && absl::StrContains(text, "SHARP ")) {
    Keep(std::string(text), process.sharp_errors);
  }
  ReadPlugin(text, process);
  ReadCollNet(text, process);
}

// Returns the process and text of an error of the SHARP library:
// "[host:rank:pid - file:line] ERROR text", also with " unique id NUMBER" or a time.
std::optional<std::pair<std::string, std::string>> SharpError(absl::string_view line) {
  const size_t mark = line.find("] ERROR ");
  const size_t bracket = line.find('[');
  if (mark == absl::string_view::npos || bracket > mark) return std::nullopt;
  absl::string_view head = line.substr(bracket + 1);
  head = head.substr(0, head.find(' '));
  const std::vector<std::string> parts = absl::StrSplit(head, ':');
  int number = 0;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[1], &number) ||
      !absl::SimpleAtoi(parts[2], &number)) {
    return std::nullopt;
  }
  return std::pair(parts[0] + ":" + parts[2],
                   std::string(absl::StripAsciiWhitespace(line.substr(mark + 8))));
}

}  // namespace

NcclLog ParseNcclLog(absl::string_view text) {
  NcclLog log;
  std::map<std::string, size_t, std::less<>> places;
  const auto process_of = [&](absl::string_view name) -> NcclProcess* {
    const auto found = places.find(name);
    if (found != places.end()) return &log.processes[found->second];
    if (log.processes.size() == kMostNcclProcesses) return nullptr;
    places.emplace(name, log.processes.size());
    log.processes.emplace_back().name = std::string(name);
    return &log.processes.back();
  };
  for (absl::string_view whole : absl::StrSplit(text, '\n')) {
    const absl::string_view line = whole.substr(0, kMostOfNcclLine);
    if (const auto version = Behind(line, "NCCL version ", " "); version && log.version.empty()) {
      log.version = *version;
    }
    if (const auto error = SharpError(line)) {
      NcclProcess* const process = process_of(error->first);
      if (process != nullptr) Keep(error->second, process->sharp_errors);
      continue;
    }
    const std::optional<Line> split = Split(line);
    if (!split.has_value()) continue;
    log.info |= !split->warns;
    NcclProcess* const process = process_of(split->process);
    if (process != nullptr) Read(*split, *process);
  }
  log.sharp_failed =
      std::any_of(log.processes.begin(), log.processes.end(), [](const NcclProcess& process) {
        return process.collnet_failed || !process.sharp_errors.empty();
      });
  return log;
}

}  // namespace railhead::cli
