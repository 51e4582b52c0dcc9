// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/metrics/metrics_page.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/one_per_process.h"
#include "runtime/config/world.h"

namespace railhead::nccl {

MetricsPage::MetricsPage(const config::Settings& settings) : job_(settings.job) {
  const auto world = config::FindWorld(config::ProcessEnvironment);
  if (world.ok() && world->has_value()) launcher_.emplace((*world)->rank, (*world)->size);
}

std::shared_ptr<MetricsPage> MetricsPage::OfProcess(const config::Settings& settings,
                                                    const Logger& log) {
  if (!settings.metrics || settings.metrics_port == 0) return nullptr;
  static OnePerProcess<MetricsPage> pages;
  using Made = OnePerProcess<MetricsPage>::Made;
  return *pages.Get(absl::StrCat(settings.metrics_port, " ", settings.pod), [&]() -> Made {
    std::shared_ptr<MetricsPage> page(new MetricsPage(settings));
    absl::StatusOr<std::shared_ptr<metrics::Exporter>> exporter =
        metrics::Exporter::At(settings.metrics_port, settings.pod, log);
    if (exporter.ok()) {
      page->exporter_ = *std::move(exporter);
    } else {
      log.Warn(exporter.status().message());
    }
    return page;
  });
}

void MetricsPage::Learn(metrics::WorldRank communicator) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!communicator_.has_value()) communicator_ = communicator;
}

std::unique_ptr<metrics::Exporter::Registration> MetricsPage::Show(Fill fill) {
  if (exporter_ == nullptr) return nullptr;
  return exporter_->Register([page = shared_from_this(), fill = std::move(fill)] {
    metrics::Snapshot snapshot;
    snapshot.job = page->job_;
    snapshot.source = "nccl";
    {
      const std::lock_guard<std::mutex> lock(page->mutex_);
      snapshot.rank = metrics::RankOfProcess(
          page->launcher_, page->communicator_.value_or(metrics::WorldRank{0, 1}));
    }
    fill(snapshot);
    return snapshot;
  });
}

}  // namespace railhead::nccl
