// SPDX-License-Identifier: Apache-2.0
#include "cli/nccl_log/log_rules.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/output/words.h"
#include "operator/profiles/injection.h"

namespace railhead::cli {
namespace {

// A rule's finding about a process.
struct Told {
  std::string observed;
  std::string fix;
  bool operator<(const Told& other) const {
    return std::pair(observed, fix) < std::pair(other.observed, other.fix);
  }
};

struct Rule {
  absl::string_view name;
  absl::string_view about;
  Severity severity;
  std::optional<Told> (*judge)(const NcclProcess& process, const NcclLog& log);
};

std::string Value(const NcclProcess& process, const std::string& name) {
  const auto found = process.environment.find(name);
  return found == process.environment.end() ? "" : found->second;
}

// Returns the plugin that the process was told to load; "" if none. NCCL looks for libnccl-net.so
// without being told, and that it is not there means nothing.
std::string AskedPlugin(const NcclProcess& process) {
  std::string name = Value(process, "NCCL_NET_PLUGIN");
  if (!name.empty()) return name == "none" ? "" : name;
  // NCCL 2.26 does not log the variable.
  for (const PluginError& error : process.plugin_errors) {
    if (error.library != "libnccl-net.so") return error.library;
  }
  return "";
}

std::string Instead(const NcclProcess& process) {
  if (process.no_network) return ", and NCCL ended, because NCCL_NET excludes other networks";
  if (process.network.empty()) return "";
  return absl::StrCat(", and NCCL uses ", process.network, " instead");
}

std::optional<Told> NotLoaded(const NcclProcess& process, const NcclLog& /*log*/) {
  const std::string asked = AskedPlugin(process);
  if (asked.empty() || !process.plugins.empty() || process.plugin_errors.empty()) {
    return std::nullopt;
  }
  // NCCL tries the name as it is, and as libnccl-net-NAME.so: an error of a file that is there says
  // more than that the other one is not.
  const auto better = std::find_if(process.plugin_errors.begin(), process.plugin_errors.end(),
                                   [](const PluginError& e) { return !e.error.empty(); });
  const bool there = better != process.plugin_errors.end();
  const PluginError& why = there ? *better : process.plugin_errors.back();
  return Told{absl::StrCat("the plugin ", asked, " (NCCL_NET_PLUGIN) was not loaded: ",
                           why.library == asked ? "" : why.library + ": ",
                           there ? why.error : "no such file in the search path", Instead(process)),
              there ? "install what the library needs into the image, or use a plugin that was "
                      "built for it"
                    : "check that the file is in the image and its folder in LD_LIBRARY_PATH, or "
                      "let a RailProfile bring it (spec.inject.ncclPlugin)"};
}

std::optional<Told> Unsupported(const NcclProcess& process, const NcclLog& log) {
  const std::string asked = AskedPlugin(process);
  // Older versions only list the symbols that they have not found.
  const bool silent = process.plugins.empty() && process.plugin_errors.empty() &&
                      (process.network == "IB" || process.network == "Socket");
  if (asked.empty() || (process.unsupported.empty() && !silent)) return std::nullopt;
  return Told{absl::StrCat("NCCL ", log.version.empty() ? "" : absl::StrCat(log.version, " "),
                           "does not know any version of the plugin ", asked, "'s tables",
                           Instead(process)),
              "use a plugin for this version of NCCL; Railhead's is for 2.26 to 2.32"};
}

std::optional<Told> Failed(const NcclProcess& process, const NcclLog& /*log*/) {
  for (const std::string& name : process.plugins) {
    const bool own = name == op::kOwnNetwork && !process.own_warnings.empty();
    // NCCL 2.26 only goes on with another network.
    const bool left = own && process.network != name;
    if (!left && !process.failed_networks.contains(name)) continue;
    return Told{absl::StrCat("the plugin ", name, " was loaded, but cannot be used",
                             own ? ": " + process.own_warnings.front() : "", Instead(process)),
                own ? "fix this cause" : "read its lines in the log with NCCL_DEBUG=INFO"};
  }
  return std::nullopt;
}

// Whether the plugin has a finding of its own, which is then the cause of others.
bool PluginIsTheCause(const NcclProcess& process, const NcclLog& log) {
  return NotLoaded(process, log) || Unsupported(process, log) || Failed(process, log);
}

std::optional<Told> NoNetwork(const NcclProcess& process, const NcclLog& log) {
  if (!process.no_network || PluginIsTheCause(process, log)) return std::nullopt;
  // From 2.27 on NCCL does not log the value of NCCL_NET, but tries nothing else.
  const std::string name = Value(process, "NCCL_NET");
  if (name.empty() ? process.no_rdma : name == "IB") {
    return Told{"NCCL ended, because only RDMA is allowed (NCCL_NET=IB) and it found no device",
                "check that the pod has RDMA devices (rdma/hca) with active ports"};
  }
  return Told{"NCCL ended, because it has no network of the name in NCCL_NET",
              "correct NCCL_NET, or set NCCL_NET_PLUGIN to the plugin that has it"};
}

std::optional<Told> OverSockets(const NcclProcess& process, const NcclLog& log) {
  if (!process.connected_over.contains("Socket") || !process.no_rdma ||
      Value(process, "NCCL_IB_DISABLE") == "1" || PluginIsTheCause(process, log)) {
    return std::nullopt;
  }
  return Told{"messages to other nodes use TCP sockets, because NCCL found no RDMA device",
              "request rdma/hca in the pod, and check its ports (railhead doctor job)"};
}

std::optional<Told> NoGpuDirect(const NcclProcess& process, const NcclLog& /*log*/) {
  // Others never have it.
  if (process.network != "IB" || process.staged_hcas.empty()) return std::nullopt;
  return Told{absl::StrCat("no GPUDirect RDMA with ", absl::StrJoin(process.staged_hcas, ", "),
                           ": data are copied through host memory"),
              "load nvidia_peermem on the node, or use a kernel with dma-buf; check "
              "NCCL_NET_GDR_LEVEL"};
}

bool WantsSharp(const NcclProcess& process) { return Value(process, "NCCL_COLLNET_ENABLE") == "1"; }

std::optional<Told> SharpHangs(const NcclProcess& process, const NcclLog& /*log*/) {
  if (!process.collnet_begun || process.collnet_connected || process.collnet_failed ||
      process.complete) {
    return std::nullopt;
  }
  return Told{
      absl::StrCat("the log ends while NCCL connects to the switches' SHARP trees",
                   process.sharp_errors.empty() ? std::string()
                                                : absl::StrCat(": ", process.sharp_errors.front())),
      "check sharp_am on the subnet manager's host, and that no other job holds the trees; "
      "NCCL_COLLNET_ENABLE=0 runs the job without SHARP"};
}

std::optional<Told> SharpNotUsed(const NcclProcess& process, const NcclLog& log) {
  if (!WantsSharp(process) || process.collnet_connected || SharpHangs(process, log)) {
    return std::nullopt;
  }
  const auto told = [](absl::string_view why, std::string fix) {
    return Told{absl::StrCat("SHARP was requested (NCCL_COLLNET_ENABLE=1) and is not used: ", why),
                std::move(fix)};
  };
  if (process.collnet_threshold.has_value()) {
    return told(
        absl::StrCat("the job has ",
                     process.nodes > 0 ? Counted(process.nodes, "node") : "fewer nodes",
                     ", fewer than NCCL_COLLNET_NODE_THRESHOLD, ", *process.collnet_threshold),
        "lower NCCL_COLLNET_NODE_THRESHOLD, or use SHARP for larger jobs only");
  }
  if (process.collnet_differs) {
    return told("ranks have different numbers of CollNet devices",
                "give all ranks the same HCAs and plugin");
  }
  if (!process.sharp_errors.empty()) {
    return told(process.sharp_errors.front(),
                "check that sharp_am runs and has resources left, that the switches support SHARP "
                "with streaming trees, and that no HCA's port is the subnet manager's");
  }
  if (process.collnet_devices == 0) {
    return told("no plugin with CollNet was loaded",
                "use an image with the SHARP plugin and libsharp (NCCL_NET_PLUGIN); Railhead's "
                "plugin has no CollNet");
  }
  if (process.collnet_failed) {
    return told("NCCL could not set it up on every rank",
                "look for errors of SHARP on the other ranks, with SHARP_COLL_LOG_LEVEL=3");
  }
  // Without lines of its start the log cannot tell; and a failure of one rank is that of all.
  if (!process.complete || log.sharp_failed || process.collnet_begun) return std::nullopt;
  return told("no rank has connected to a SHARP tree",
              "use an image with the SHARP plugin and libsharp, and NCCL_DEBUG=INFO for the cause");
}

constexpr std::array<Rule, 8> kRules = {{
    {"NcclPluginNotLoaded", "NCCL could not open the network plugin", Severity::kFail, NotLoaded},
    {"NcclPluginUnsupported", "the plugin has no table that this NCCL knows", Severity::kFail,
     Unsupported},
    {"NcclPluginFailed", "the plugin was loaded and has no usable device", Severity::kFail, Failed},
    {"NcclNoNetwork", "NCCL_NET excludes all networks that work", Severity::kFail, NoNetwork},
    {"NcclOverSockets", "messages between nodes use TCP sockets of NCCL", Severity::kWarn,
     OverSockets},
    {"NcclGpuDirectOff", "NCCL copies GPU memory through host memory", Severity::kWarn,
     NoGpuDirect},
    {"SharpHangs", "the connection to switches does not end", Severity::kFail, SharpHangs},
    {"SharpNotUsed", "SHARP was requested, and NCCL reduces without it", Severity::kWarn,
     SharpNotUsed},
}};

// Returns "rank 3 (host:pid)".
std::string NameOf(const NcclProcess& process) {
  return process.rank.has_value() ? absl::StrCat("rank ", *process.rank, " (", process.name, ")")
                                  : process.name;
}

// Returns what worked, for a log without findings.
std::string Summary(const NcclLog& log) {
  std::map<std::string, int64_t> networks;
  for (const NcclProcess& process : log.processes) {
    if (!process.network.empty()) ++networks[process.network];
  }
  const auto used = absl::StrJoin(networks, ", ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.first, " (", Counted(entry.second, "rank"), ")");
  });
  return absl::StrCat(log.version.empty() ? "" : absl::StrCat("NCCL ", log.version, "; "),
                      used.empty() ? "no known problem" : absl::StrCat("network: ", used));
}

}  // namespace

std::vector<NcclCheck> NcclChecks() {
  std::vector<NcclCheck> checks;
  checks.reserve(kRules.size());
  for (const Rule& rule : kRules) checks.push_back({rule.name, rule.about});
  return checks;
}

std::vector<Finding> Diagnose(const NcclLog& log) {
  std::vector<Finding> findings;
  for (const Rule& rule : kRules) {
    struct Seen {
      std::string first;
      int64_t processes = 0;
    };
    std::map<Told, Seen> seen;
    for (const NcclProcess& process : log.processes) {
      const std::optional<Told> told = rule.judge(process, log);
      if (!told.has_value()) continue;
      Seen& of_cause = seen[*told];
      if (of_cause.processes++ == 0) of_cause.first = NameOf(process);
    }
    for (const auto& [told, of_cause] : seen) {
      findings.push_back({rule.severity, std::string(rule.name),
                          of_cause.processes == 1 ? of_cause.first
                                                  : absl::StrCat(of_cause.first, " and ",
                                                                 of_cause.processes - 1, " more"),
                          told.observed, told.fix});
    }
  }
  if (!log.info && findings.empty()) {
    return {{Severity::kNote, "NcclLog", "log",
             log.processes.empty() ? "no line of NCCL" : "warnings of NCCL only",
             "set NCCL_DEBUG=INFO in the job, and repeat with the log from its start"}};
  }
  if (findings.empty()) findings.push_back({Severity::kOk, "NcclLog", "log", Summary(log), ""});
  return findings;
}

}  // namespace railhead::cli
