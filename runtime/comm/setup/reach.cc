// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/reach.h"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace railhead::comm {
namespace {

// All other ranks, and their addresses as far as known. Used by the thread of the mesh.
class Others {
 public:
  Others(std::vector<OpenRail> rails, std::map<int, Whereabouts> known, int world_size,
         size_t first, Logger log, bootstrap::Watch& watch)
      : rails_(std::move(rails)),
        known_(std::move(known)),
        world_size_(world_size),
        first_(first),
        log_(std::move(log)),
        watch_(watch) {}

  const std::vector<OpenRail>& rails() const { return rails_; }

  // Returns the ranks that wait in this rank's acceptors.
  std::vector<int> Callers() const {
    std::vector<int> ranks;
    for (const OpenRail& rail : rails_) {
      for (const uint32_t rank : rail.acceptor->Callers()) {
        // The number is unverified; the rank's address must be known and is authenticated later.
        if (rank < static_cast<uint32_t>(world_size_)) ranks.push_back(static_cast<int>(rank));
      }
    }
    return ranks;
  }

  static absl::StatusOr<std::unique_ptr<rails::Peer>> Open(const std::shared_ptr<Others>& self,
                                                           int rank) {
    const std::string name = absl::StrCat("rank ", rank);
    std::vector<rails::Rail> rails;
    for (size_t k = 0; k < self->rails_.size(); ++k) {
      const OpenRail& rail = self->rails_[k];
      absl::StatusOr<std::unique_ptr<transport::Link>> link =
          rail.open(rail.acceptor,
                    transport::Locator([self, rank, k] { return self->AddressOf(rank, k); }), name);
      if (!link.ok()) {
        return absl::Status(
            link.status().code(),
            absl::StrCat("no connection to ", self->NameOf(rank), ": ", link.status().message()));
      }
      rails.push_back({rail.name, *std::move(link)});
    }
    return std::make_unique<rails::Peer>([self, rank] { return self->NameOf(rank); },
                                         std::move(rails), self->log_);
  }

 private:
  // Returns the rank's address on a rail; nullopt until it is known.
  std::optional<std::string> AddressOf(int rank, size_t rail) {
    auto found = known_.find(rank);
    if (found == known_.end()) {
      const std::optional<std::string> bytes = watch_.Locate(rank);
      if (!bytes.has_value()) return std::nullopt;
      absl::StatusOr<Whereabouts> whereabouts = ParseWhereabouts(*bytes);
      // Malformed bytes give no addresses; the link reports that there are none.
      found =
          known_.emplace(rank, whereabouts.ok() ? *std::move(whereabouts) : Whereabouts()).first;
    }
    const std::vector<std::string>& addresses = found->second.addresses;
    return first_ + rail < addresses.size() ? addresses[first_ + rail] : "";
  }
  std::string NameOf(int rank) const {
    const auto found = known_.find(rank);
    return found == known_.end() || found->second.name.empty() ? absl::StrCat("rank ", rank)
                                                               : found->second.name;
  }

  const std::vector<OpenRail> rails_;
  std::map<int, Whereabouts> known_;
  const int world_size_;
  const size_t first_;
  const Logger log_;
  bootstrap::Watch& watch_;
};

}  // namespace

void WakeOnNews(bootstrap::Watch& watch, const std::shared_ptr<transport::WakeEvent>& wake) {
  watch.OnNews([event = std::weak_ptr<transport::WakeEvent>(wake)] {
    if (const std::shared_ptr<transport::WakeEvent> mesh = event.lock()) mesh->Signal();
  });
}

rails::Reach ReachOthers(std::vector<OpenRail> rails, std::map<int, Whereabouts> known,
                         int world_size, size_t first, const Logger& log, bootstrap::Watch& watch) {
  const auto others =
      std::make_shared<Others>(std::move(rails), std::move(known), world_size, first, log, watch);
  rails::Reach reach;
  reach.wake = others->rails().front().acceptor->wake();
  WakeOnNews(watch, reach.wake);
  reach.open = [others](int rank) { return Others::Open(others, rank); };
  reach.callers = [others] { return others->Callers(); };
  return reach;
}

}  // namespace railhead::comm
