// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/cluster/metrics_page.h"

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "device-plugin/cluster/counter_reader.h"
#include "device-plugin/cluster/metrics.h"
#include "device-plugin/cluster/node_facts.h"
#include "device-plugin/devices/container_devices.h"
#include "device-plugin/devices/device_list.h"
#include "fabric/hca_health.h"
#include "fabric/inventory.h"
#include "fabric/port_counters.h"
#include "fabric/root_files.h"
#include "fabric/sysfs_reader.h"

namespace railhead::device_plugin {
namespace {

constexpr std::chrono::seconds kReadEvery(1);
constexpr std::chrono::seconds kAskEvery(10);

// If the root cannot be opened, the rest of the page is still valid.
fabric::PortCounters ReadPort(const std::string& root, const Port& port) {
  const absl::StatusOr<fabric::RootFiles> files = fabric::RootFiles::Open(root);
  return files.ok() ? fabric::ReadPortCounters(*files, port.first, port.second)
                    : fabric::PortCounters();
}

}  // namespace

MetricsPage::MetricsPage(std::string root, std::string node, const DeviceBoard& board,
                         AskHolders ask, Clock clock, std::chrono::milliseconds patience)
    : node_(std::move(node)),
      board_(board),
      ask_(std::move(ask)),
      clock_(std::move(clock)),
      counters_([root = std::move(root)](const Port& port) { return ReadPort(root, port); },
                patience) {}

void MetricsPage::ScanTook(std::chrono::duration<double> time) {
  const std::lock_guard<std::mutex> lock(facts_mutex_);
  facts_.scan_seconds = time.count();
}

void MetricsPage::Registered(bool registered, uint64_t registrations) {
  const std::lock_guard<std::mutex> lock(facts_mutex_);
  facts_.registered = registered;
  facts_.registrations = registrations;
}

void MetricsPage::Misaligned(int containers) {
  const std::lock_guard<std::mutex> lock(facts_mutex_);
  facts_.misaligned = containers;
}

void MetricsPage::UnverifiedStart() {
  const std::lock_guard<std::mutex> lock(facts_mutex_);
  ++facts_.unverified_starts;
}

void MetricsPage::ConfigRefused(bool refused) {
  const std::lock_guard<std::mutex> lock(facts_mutex_);
  facts_.config_refused = refused;
}

void MetricsPage::Host(const HostFacts& host) {
  const std::lock_guard<std::mutex> lock(facts_mutex_);
  facts_.host = host;
}

std::string MetricsPage::Text() const {
  // Before any lock that another request would wait for: kubelet may be slow.
  RefreshHolders();
  const std::lock_guard<std::mutex> lock(text_mutex_);
  const TimePoint now = clock_();
  if (read_at_.has_value() && now - *read_at_ < kReadEvery) return text_;
  NodeMetrics metrics;
  metrics.node = node_;
  metrics.devices = board_.Current();
  {
    const std::lock_guard<std::mutex> holders_lock(holders_mutex_);
    metrics.holders = holders_;
  }
  {
    const std::lock_guard<std::mutex> facts_lock(facts_mutex_);
    metrics.agent = facts_;
  }
  std::vector<Port> ports;
  std::map<Port, Port> keys;  // in the page, by name of the HCA
  for (const Device& device : metrics.devices->devices) {
    // Another one may have its name now; or reading it does not end.
    if (!device.hca.present || device.hca.health.Has(fabric::Stage::kHang)) continue;
    for (const fabric::HcaPort& port : device.hca.ports) {
      ports.emplace_back(device.hca.name, port.port);
      keys[ports.back()] = {device.id, port.port};
    }
  }
  for (const auto& [port, counters] : counters_.Read(std::move(ports))) {
    metrics.counters[keys[port]] = counters;
  }
  text_ = ToPrometheusText(metrics);
  read_at_ = now;
  return text_;
}

void MetricsPage::RefreshHolders() const {
  {
    const std::lock_guard<std::mutex> lock(holders_mutex_);
    const TimePoint now = clock_();
    if (asking_ || (asked_at_.has_value() && now - *asked_at_ < kAskEvery)) return;
    asking_ = true;
    asked_at_ = now;
  }
  absl::StatusOr<DeviceHolders> answer = ask_();
  const std::lock_guard<std::mutex> lock(holders_mutex_);
  asking_ = false;
  holders_.reset();
  if (answer.ok()) holders_ = *std::move(answer);
}

}  // namespace railhead::device_plugin
