// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/local_rails.h"

#include <climits>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "runtime/comm/setup/decision.h"
#include "runtime/comm/setup/setup.h"
#include "runtime/comm/setup/start.h"
#include "runtime/metrics/snapshot.h"

namespace railhead::nccl {
namespace {

// Of devices whose speed is unknown: NCCL's own value for a socket.
constexpr int kUsualSpeed = 10'000;
constexpr size_t kSpeedLimit = 64;  // bytes of the file

std::string InRoot(const std::string& root, absl::string_view path) {
  return absl::StrCat(absl::StripSuffix(root, "/"), path);
}

// Returns the directory in /sys that a device file links to; "" for a device without hardware.
std::string PciPath(const std::string& link) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(link, error);
  return error ? "" : path.string();
}

int SpeedOf(const std::string& root, const std::string& interface) {
  const absl::StatusOr<std::string> text = ReadWholeFile(
      InRoot(root, absl::StrCat("/sys/class/net/", interface, "/speed")), kSpeedLimit);
  int speed = 0;
  // Virtual interfaces have none, or -1.
  const bool known = text.ok() && absl::SimpleAtoi(*text, &speed) && speed > 0;
  return known ? speed : kUsualSpeed;
}

}  // namespace

LocalRails::LocalRails(comm::CommunicatorOptions options)
    : options_(std::move(options)), log_(options_.setup.settings.log_level, "NCCL plugin") {}

absl::StatusOr<std::unique_ptr<LocalRails>> LocalRails::Open(comm::CommunicatorOptions options) {
  if (!options.setup.problem.ok()) return options.setup.problem;
  std::unique_ptr<LocalRails> rails(new LocalRails(std::move(options)));
  if (absl::Status found = rails->Find(); !found.ok()) return found;
  rails->ShowStart();
  return rails;
}

void LocalRails::ShowStart() {
  page_ = MetricsPage::OfProcess(settings(), log_);
  if (page_ == nullptr) return;
  comm::Fabric fabric;
  fabric.decision.fallback = fallback_;
  fabric.rails = {(verbs_.empty() ? tcp_ : verbs_).front().name};
  fabric.facts = own_.facts;
  fabric.trouble = own_.report.trouble;
  // NCCL tells a network nothing about the job, which has several ranks.
  const int ranks = page_->launcher().has_value() ? page_->launcher()->size : 2;
  start_ = page_->Show([this, start = comm::DescribeStart(options_.setup, fabric, ranks)](
                           metrics::Snapshot& snapshot) {
    snapshot.degraded_reason = degraded_reason();
    snapshot.start = start;
  });
}

std::string LocalRails::degraded_reason() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (over_tcp_.empty()) return degraded_reason_;
  return absl::StrCat(
      degraded_reason_, degraded_reason_.empty() ? "" : "; ", "TCP instead of RDMA with ",
      *over_tcp_.begin(),
      over_tcp_.size() > 1 ? absl::StrCat(" and ", over_tcp_.size() - 1, " others") : "",
      ": no RDMA rail in common");
}

void LocalRails::NoteTcp(const std::string& host) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!over_tcp_.insert(host).second || fallback_ == config::Fallback::kAllow) return;
  log_.Warn(absl::StrCat("TCP instead of RDMA with ", host,
                         ": it has no RDMA rail in common with this process"));
}

std::shared_ptr<const void> LocalRails::SpeakerTo(const std::string& process, bool& first) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::weak_ptr<const void>& known = speakers_[process];
  std::shared_ptr<const void> speaker = known.lock();
  first = speaker == nullptr;
  if (first) known = speaker = std::make_shared<int>();
  return speaker;
}

std::unique_ptr<metrics::Exporter::Registration> LocalRails::Show(ReadRails read) const {
  if (page_ == nullptr) return nullptr;
  return page_->Show(
      [read = std::move(read)](metrics::Snapshot& snapshot) { snapshot.rails = read(); });
}

absl::Status LocalRails::Choose() {
  const config::Settings& settings = options_.setup.settings;
  const std::vector<comm::TcpRail> tcp = comm::OwnTcpRails(settings, std::nullopt, {});
  own_ = comm::OpenOwnRails("NCCL plugin", options_.setup);
  own_.report.name = "this process";
  // Other processes' rails are in their handles.
  absl::StatusOr<comm::Decision> decision = comm::Decide({&own_.report, 1});
  if (!decision.ok()) return decision.status();
  if (decision->verbs && settings.frames == config::FrameWish::kEncrypted) {
    return absl::FailedPreconditionError(
        "RAILHEAD_AUTH=encrypt, but the connections would use RDMA, which carries data "
        "unencrypted: set RAILHEAD_TRANSPORT=tcp, or remove encrypt from RAILHEAD_AUTH");
  }
  fallback_ = decision->fallback;
  degraded_reason_ = decision->degraded_reason;
  if (!degraded_reason_.empty() && fallback_ == config::Fallback::kWarn) {
    log_.Warn(degraded_reason_);
  }
  if (decision->verbs) {
    verbs_ = comm::ChooseRails(*decision, own_, tcp);
    if (fallback_ == config::Fallback::kFail || settings.require_rdma) return absl::OkStatus();
  }
  tcp_ = comm::ChooseRails(comm::Decision(), own_, tcp);
  return absl::OkStatus();
}

absl::Status LocalRails::FindGpuMemory() {
  std::vector<RailForGpus> rails;
  rails.reserve(verbs_.size());
  for (const comm::ChosenRail& rail : verbs_) {
    rails.push_back({rails::ToString(rail.name), rail.trouble, rail.device->AccessesItself(),
                     rail.device->TakesDmaBufs()});
  }
  const char* const setting = std::getenv(kGpuMemoryVariable);
  absl::StatusOr<GpuMemory> memory =
      GpuMemoryOf(setting == nullptr ? "" : setting, options_.setup.root, rails);
  if (!memory.ok()) return memory.status();
  gpu_memory_ = *std::move(memory);
  return absl::OkStatus();
}

absl::Status LocalRails::Find() {
  const config::Settings& settings = options_.setup.settings;
  options_.rendezvous.world_size = 2;  // there are other processes
  const absl::StatusOr<std::string> secret = comm::SecretOf(options_, log_);
  if (!secret.ok()) return secret.status();
  secret_ = bootstrap::Secret(*secret, "");
  if (settings.require_secret && !secret_.has_file()) {
    return absl::FailedPreconditionError(
        "RAILHEAD_AUTH wants a secret, but the job has none: mount a Secret into all of its pods "
        "and set RAILHEAD_SECRET_FILE, or unset RAILHEAD_AUTH");
  }

  if (absl::Status chosen = Choose(); !chosen.ok()) return chosen;
  if (absl::Status found = FindGpuMemory(); !found.ok()) return found;
  const std::string& root = options_.setup.root;
  for (const comm::ChosenRail& rail : verbs_) {
    const fabric::PodRail& known = own_.pod_rails.find(rail.name.rail)->second;
    const double mbps = known.rate_gbps * 1000;
    devices_.push_back(
        {rail.name.device,
         PciPath(InRoot(root, absl::StrCat("/sys/class/infiniband/", rail.name.device, "/device"))),
         devices_.size() + 1, mbps > 0 ? static_cast<int>(std::lround(mbps)) : kUsualSpeed,
         rail.name.port, rail.name.rail});
  }
  if (!devices_.empty()) return absl::OkStatus();
  for (const comm::ChosenRail& rail : tcp_) {
    devices_.push_back(
        {rail.name.device,
         PciPath(InRoot(root, absl::StrCat("/sys/class/net/", rail.name.device, "/device"))),
         devices_.size() + 1, SpeedOf(root, rail.name.device), 1, rail.name.rail});
  }
  return absl::OkStatus();
}

}  // namespace railhead::nccl
