// SPDX-License-Identifier: Apache-2.0
#include "runtime/preflight/local.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "fabric/hca_netdev.h"
#include "fabric/root_files.h"

namespace railhead::preflight {
namespace {

using fabric::RootFiles;

constexpr int kPriorities = 8;     // of IEEE 802.1Q
constexpr uint64_t kIpcLock = 14;  // linux/capability.h

// "" when it cannot be read.
std::string Read(const RootFiles& files, const std::string& path) {
  return files.ReadAttribute(path).value_or("");
}

// "4: ACTIVE" without its number.
std::string Word(const std::string& text) {
  const size_t colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

// The device node through which a program talks to the device.
std::string DeviceNode(const RootFiles& files, const fabric::PodRail& rail) {
  for (const std::string& path : rail.char_devices) {
    if (absl::StartsWith(path, "/dev/infiniband/uverbs")) return path;
  }
  const absl::StatusOr<std::vector<std::string>> nodes = files.List("/sys/class/infiniband_verbs");
  if (!nodes.ok()) return "";
  for (const std::string& node : *nodes) {
    const std::string device =
        Read(files, absl::StrCat("/sys/class/infiniband_verbs/", node, "/ibdev"));
    if (device == rail.device) return absl::StrCat("/dev/infiniband/", node);
  }
  return "";
}

// For which priorities the adapter takes part in RoCE's congestion control, both as a sender (rp)
// and as a receiver (np). Only NVIDIA's own driver has these files.
std::string Ecn(const RootFiles& files, const std::string& netdev) {
  if (!fabric::IsSaneName(netdev)) return "";
  std::vector<std::string> on;
  bool known = false;
  for (int priority = 0; priority < kPriorities; ++priority) {
    const auto enabled = [&](const char* role) {
      return Read(files,
                  absl::StrCat("/sys/class/net/", netdev, "/ecn/", role, "/enable/", priority));
    };
    const std::string sends = enabled("roce_rp");
    const std::string receives = enabled("roce_np");
    known = known || !sends.empty() || !receives.empty();
    if (sends == "1" && receives == "1") on.push_back(absl::StrCat(priority));
  }
  if (!known) return "";
  return on.empty() ? "off" : absl::StrCat("on for priorities ", absl::StrJoin(on, ", "));
}

std::string FileOf(const std::string& root, const std::string& path) {
  return absl::StrCat(absl::StripSuffix(root, "/"), path);
}

}  // namespace

RailFacts ReadHca(const std::string& root, const fabric::PodRail& rail) {
  RailFacts facts;
  facts.name = {rail.rail, rail.device, rail.port, "verbs"};
  facts.link_layer = rail.link_layer;
  const absl::StatusOr<RootFiles> files = RootFiles::Open(root);
  if (!files.ok() || !fabric::IsSaneName(rail.device)) return facts;
  const std::string folder =
      absl::StrCat("/sys/class/infiniband/", rail.device, "/ports/", rail.port, "/");
  facts.state = Word(Read(*files, folder + "state"));
  facts.physical = Word(Read(*files, folder + "phys_state"));
  facts.rate = Read(*files, folder + "rate");
  if (const std::string layer = Read(*files, folder + "link_layer"); !layer.empty()) {
    facts.link_layer = layer;
  }
  facts.device_node = DeviceNode(*files, rail);
  if (!facts.device_node.empty() &&
      ::access(FileOf(root, facts.device_node).c_str(), R_OK | W_OK) != 0) {
    facts.device_node_trouble = absl::StrCat(facts.device_node, ": ", std::strerror(errno));
  }
  facts.ecn = Ecn(*files, rail.netdev.empty() ? fabric::NetdevOfPort(*files, rail.device, rail.port)
                                              : rail.netdev);
  return facts;
}

RailFacts ReadInterface(const std::string& root, const rails::RailName& name) {
  RailFacts facts;
  facts.name = name;
  const absl::StatusOr<RootFiles> files = RootFiles::Open(root);
  if (!files.ok() || !fabric::IsSaneName(name.device)) return facts;
  const std::string folder = absl::StrCat("/sys/class/net/", name.device, "/");
  facts.state = Read(*files, folder + "operstate");
  // Interfaces without a carrier, such as the loopback, report "unknown".
  if (facts.state == "unknown") facts.state = "up";
  int megabits = 0;
  if (absl::SimpleAtoi(Read(*files, folder + "speed"), &megabits) && megabits > 0) {
    facts.rate = absl::StrCat(megabits, " Mb/s");
  }
  PortFacts port;
  if (absl::SimpleAtoi(Read(*files, folder + "mtu"), &port.mtu)) facts.port = std::move(port);
  return facts;
}

uint64_t MemlockLimit(const std::string& root) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  const absl::StatusOr<RootFiles> files = RootFiles::Open(root);
  const absl::StatusOr<std::vector<std::string>> lines =
      files.ok() ? files->ReadLines("/proc/self/status") : files.status();
  if (!lines.ok()) return limit.rlim_cur;
  for (absl::string_view line : *lines) {
    uint64_t capabilities = 0;
    if (absl::ConsumePrefix(&line, "CapEff:") && absl::SimpleHexAtoi(line, &capabilities) &&
        (capabilities >> kIpcLock & 1) != 0) {
      return kUnlimited;
    }
  }
  return limit.rlim_cur;
}

std::vector<Growth> Grown(const fabric::PortCounters& before, const fabric::PortCounters& after) {
  using fabric::PortCounters;
  std::vector<Growth> grown;
  for (const fabric::PortCounterName& name : fabric::PortCounterNames()) {
    if (name.counter == &PortCounters::transmit_bytes ||
        name.counter == &PortCounters::receive_bytes ||
        name.counter == &PortCounters::transmit_waits) {
      continue;
    }
    const auto from = before.*name.counter;
    const auto to = after.*name.counter;
    if (!from.has_value() || !to.has_value() || *to <= *from) continue;
    grown.push_back({name.name, *to - *from});
  }
  return grown;
}

}  // namespace railhead::preflight
