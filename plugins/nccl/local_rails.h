// SPDX-License-Identifier: Apache-2.0
//
// Rails of this process, of both kinds, and the job's secret: from the rails file and the settings
// (RAILHEAD_*), as for Railhead's own communicators. Created once, with the first communicator.
#ifndef RAILHEAD_PLUGINS_NCCL_LOCAL_RAILS_H_
#define RAILHEAD_PLUGINS_NCCL_LOCAL_RAILS_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plugins/nccl/gpu_memory.h"
#include "plugins/nccl/handle.h"
#include "plugins/nccl/metrics/metrics_page.h"
#include "runtime/base/log.h"
#include "runtime/bootstrap/secret.h"
#include "runtime/comm/setup/chosen_rail.h"
#include "runtime/comm/setup/joining.h"
#include "runtime/comm/setup/own_rails.h"
#include "runtime/comm/setup/tcp_rail.h"
#include "runtime/metrics/exporter.h"

namespace railhead::nccl {

// A network device as NCCL sees it: a rail.
struct Device {
  std::string name;      // "mlx5_0", "eth0"
  std::string pci_path;  // of its NIC, in /sys; "": it has none
  uint64_t guid = 0;     // equal for no two devices of a machine
  int speed = 0;         // Mbit/s
  int port = 0;          // of an HCA, from 1
  int rail = 0;
};

class LocalRails {
 public:
  // Finds the rails, and shows on the metrics page what was given to the process and what it can
  // use. If that is less than it was given, RAILHEAD_FALLBACK decides, as for a communicator
  // (comm/setup/decision.h): with "fail" the result is FailedPrecondition with the causes.
  static absl::StatusOr<std::unique_ptr<LocalRails>> Open(comm::CommunicatorOptions options);

  // The rails of a kind. Those of kVerbs are empty if RDMA is excluded, or none was given; those of
  // kTcp if RDMA is used and TCP instead of it is not allowed (RAILHEAD_FALLBACK=fail).
  const std::vector<comm::ChosenRail>& Of(RailKind kind) const {
    return kind == RailKind::kVerbs ? verbs_ : tcp_;
  }
  // The devices that NCCL uses: the RDMA rails, or else the TCP rails. Not empty.
  const std::vector<Device>& devices() const { return devices_; }
  // Whether NCCL may give memory of GPUs.
  const GpuMemory& gpu_memory() const { return gpu_memory_; }
  const bootstrap::Secret& secret() const { return secret_; }
  const config::Settings& settings() const { return options_.setup.settings; }
  // Why this process has less RDMA than it was given, or uses less; "" if not so.
  std::string degraded_reason() const;
  // Notes that a connection to `host` uses TCP although this process has RDMA rails, once for each
  // host: it is logged, unless RAILHEAD_FALLBACK=allow, and part of degraded_reason.
  void NoteTcp(const std::string& host) const;
  const Logger& log() const { return log_; }
  // Returns a token for the connections to the process of this name; `first` is set for the first
  // one while no other lives. The rails of all of them are lost together, and one reports that.
  std::shared_ptr<const void> SpeakerTo(const std::string& process, bool& first) const;

  // Shows rails on the metrics page while the result lives, which must not outlive this object.
  // `read` is called on other threads. Null without a page.
  using ReadRails = std::function<std::vector<rails::RailTotals>()>;
  std::unique_ptr<metrics::Exporter::Registration> Show(ReadRails read) const;

 private:
  explicit LocalRails(comm::CommunicatorOptions options);

  absl::Status Find();
  absl::Status Choose();
  absl::Status FindGpuMemory();
  void ShowStart();

  comm::CommunicatorOptions options_;
  Logger log_;
  bootstrap::Secret secret_;
  comm::OwnRails own_;
  std::vector<comm::ChosenRail> verbs_;
  std::vector<comm::ChosenRail> tcp_;
  std::vector<Device> devices_;
  GpuMemory gpu_memory_;
  config::Fallback fallback_ = config::Fallback::kWarn;
  std::string degraded_reason_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::weak_ptr<const void>> speakers_;  // by process
  mutable std::set<std::string> over_tcp_;                             // hosts: see NoteTcp
  std::shared_ptr<MetricsPage> page_;                                  // null: there is none
  std::unique_ptr<metrics::Exporter::Registration> start_;
};

}  // namespace railhead::nccl

#endif  // RAILHEAD_PLUGINS_NCCL_LOCAL_RAILS_H_
