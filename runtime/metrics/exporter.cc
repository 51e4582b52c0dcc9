// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/exporter.h"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/metrics/page.h"

namespace railhead::metrics {
namespace {

void AddTo(std::vector<Snapshot>& sums, Snapshot snapshot) {
  const auto same = std::find_if(sums.begin(), sums.end(), [&](const Snapshot& sum) {
    return sum.job == snapshot.job && sum.rank == snapshot.rank;
  });
  if (same == sums.end()) {
    sums.push_back(std::move(snapshot));
  } else {
    Add(snapshot, *same);
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<Exporter>> Exporter::At(int port, const std::string& pod) {
  static std::mutex mutex;
  static std::map<std::pair<int, std::string>, std::weak_ptr<Exporter>> exporters;
  const std::lock_guard<std::mutex> lock(mutex);
  if (port != 0) {
    if (std::shared_ptr<Exporter> exporter = exporters[{port, pod}].lock()) return exporter;
  }
  std::shared_ptr<Exporter> exporter(new Exporter());
  absl::StatusOr<std::unique_ptr<PodPage>> page =
      PodPage::Open(port, pod, [raw = exporter.get()] { return ToFamilies(raw->Sums()); });
  if (!page.ok()) return page.status();
  exporter->page_ = *std::move(page);
  if (port != 0) exporters[{port, pod}] = exporter;
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
  // What it has counted stays; how its rails are says nothing any more.
  last.gpu_direct.clear();
  for (rails::RailTotals& rail : last.rails) {
    rail.up = true;
    rail.weight = 1;
    rail.peers = rail.lost_peers = 0;
  }
  AddTo(exporter_->gone_, std::move(last));
  exporter_->reads_.erase(place_);
}

std::vector<Snapshot> Exporter::Sums() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Snapshot> sums = gone_;
  for (const Read& read : reads_) AddTo(sums, read());
  return sums;
}

}  // namespace railhead::metrics
