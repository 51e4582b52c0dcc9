// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/exporter.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/one_per_process.h"
#include "runtime/metrics/page.h"

namespace railhead::metrics {
namespace {

constexpr size_t kMostNames = 32;
constexpr char kOthers[] = "others";

}  // namespace

absl::StatusOr<std::shared_ptr<Exporter>> Exporter::At(int port, const std::string& pod,
                                                       const Logger& log) {
  static OnePerProcess<Exporter> exporters;
  if (port == 0) return Open(port, pod, log);
  return exporters.Get(absl::StrCat(port, " ", pod), [&] { return Open(port, pod, log); });
}

absl::StatusOr<std::shared_ptr<Exporter>> Exporter::Open(int port, const std::string& pod,
                                                         const Logger& log) {
  std::shared_ptr<Exporter> exporter(new Exporter());
  const auto read = [raw = exporter.get()] {
    const std::optional<Snapshot> sum = raw->Sum();
    return sum.has_value() ? ToFamilies({*sum}) : Families();
  };
  absl::StatusOr<std::unique_ptr<PodPage>> page = PodPage::Open(port, pod, read, log);
  if (!page.ok()) return page.status();
  exporter->page_ = *std::move(page);
  return exporter;
}

std::unique_ptr<Exporter::Registration> Exporter::Register(Read read) {
  const std::lock_guard<std::mutex> lock(mutex_);
  reads_.push_back(std::move(read));
  return std::unique_ptr<Registration>(
      new Registration(shared_from_this(), std::prev(reads_.end())));
}

Exporter::Registration::~Registration() {
  const std::lock_guard<std::mutex> lock(exporter_->mutex_);
  Snapshot last = (*place_)();
  last.degraded_reason.clear();
  last.start.reset();
  // Its counts stay; the state of its rails no longer applies.
  last.gpu_direct.clear();
  last.profiler.silent.clear();
  last.profiler.silent_peers = 0;
  for (rails::RailTotals& rail : last.rails) {
    rail.up = true;
    rail.weight = 1;
    rail.peers = rail.lost_peers = 0;
  }
  exporter_->AddTo(exporter_->gone_, std::move(last));
  exporter_->reads_.erase(place_);
}

std::optional<Snapshot> Exporter::Sum() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::optional<Snapshot> sum = gone_;
  for (const Read& read : reads_) AddTo(sum, read());
  return sum;
}

void Exporter::AddTo(std::optional<Snapshot>& sum, Snapshot snapshot) {
  for (KindCounts& kind : snapshot.collectives) {
    if (kind.comm.empty() || names_.count(kind.comm) > 0) continue;
    // A name that was counted among the others never gets separate series: counts that move between
    // series look like calls.
    if (names_.size() < kMostNames) {
      names_.insert(kind.comm);
    } else {
      kind.comm = kOthers;
    }
  }
  if (!sum.has_value()) {
    sum = std::move(snapshot);
    return;
  }
  // Its identity now, also for what it has counted as another.
  sum->job = snapshot.job;
  sum->rank = snapshot.rank;
  Add(snapshot, *sum);
}

}  // namespace railhead::metrics
