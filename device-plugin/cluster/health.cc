// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/cluster/health.h"

#include <chrono>
#include <mutex>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kube/http/page_server.h"

namespace railhead::device_plugin {
namespace {

constexpr std::chrono::seconds kLoopDeadline(60);
constexpr std::chrono::seconds kUnheardDeadline(120);

kube::HttpResponse HealthPage(const absl::Status& status) {
  if (status.ok()) return {.body = "ok\n"};
  return {.status = 503, .body = absl::StrCat(status.message(), "\n")};
}

}  // namespace

void Health::Report(const Beat& beat, TimePoint now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  beat_ = beat;
  beat_at_ = now;
  const bool unheard = beat.has_devices && beat.kubelet && !beat.serving;
  if (!unheard) {
    unheard_since_.reset();
  } else if (!unheard_since_.has_value()) {
    unheard_since_ = now;
  }
}

absl::Status Health::Ready() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!beat_at_.has_value()) return absl::UnavailableError("starting");
  if (!beat_.has_devices || beat_.serving) return absl::OkStatus();
  return absl::UnavailableError(beat_.kubelet ? "kubelet has no ListAndWatch stream from the agent"
                                              : "kubelet.sock does not exist");
}

absl::Status Health::Live(TimePoint now) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (beat_at_.has_value() && now - *beat_at_ > kLoopDeadline) {
    return absl::UnavailableError("the loop is stuck");
  }
  if (unheard_since_.has_value() && now - *unheard_since_ > kUnheardDeadline) {
    return absl::UnavailableError("kubelet has not accepted the registration for two minutes");
  }
  return absl::OkStatus();
}

kube::PageServer::Pages HealthPages(const Health& health) {
  return {
      {"/healthz", [&health] { return HealthPage(health.Live(std::chrono::steady_clock::now())); }},
      {"/readyz", [&health] { return HealthPage(health.Ready()); }}};
}

}  // namespace railhead::device_plugin
