// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/communicator/family.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "runtime/base/parts.h"
#include "runtime/base/wire.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/watch.h"
#include "runtime/collectives/collective.h"
#include "runtime/comm/communicator/communicator.h"
#include "runtime/comm/setup/unique_id.h"
#include "runtime/net/address.h"
#include "runtime/net/fd.h"

namespace railhead::comm {

absl::StatusOr<std::unique_ptr<Communicator>> Family::Split(int color, int key,
                                                            const MakingOptions& options) const {
  // Every rank opens a rendezvous, because the first rank of each group is not known yet.
  absl::StatusOr<UniqueId> place = MakeUniqueId(parent_.address);
  std::optional<net::Fd> listener;
  WireWriter writer;
  writer.U32(static_cast<uint32_t>(color));
  writer.U32(static_cast<uint32_t>(key));
  if (place.ok()) {
    listener = TakeListener(*place);
    writer.Raw(Encode(*place));
  } else {
    writer.Raw(std::string(kUniqueIdSize, '\0'));
  }
  const std::string mine = writer.Take();
  const auto ranks = static_cast<size_t>(parent_.world_size);
  std::string all(ranks * mine.size(), '\0');
  absl::Status gathered =
      parent_.executor.Run({.collective = collectives::Collective::kAllGather,
                            .ranks = parent_.world_size,
                            .send = reinterpret_cast<const std::byte*>(mine.data()),
                            .receive = reinterpret_cast<std::byte*>(all.data()),
                            .receive_parts = Parts(ranks, all.size())});
  if (!gathered.ok()) return gathered;
  if (color < 0) return nullptr;

  std::vector<std::pair<int, int>> members;  // key, rank
  const auto entry = [&](int rank) {
    return absl::string_view(all).substr(static_cast<size_t>(rank) * mine.size(), mine.size());
  };
  for (int rank = 0; rank < parent_.world_size; ++rank) {
    WireReader reader(entry(rank));
    if (static_cast<int>(reader.U32()) != color) continue;
    members.emplace_back(static_cast<int>(reader.U32()), rank);
  }
  std::sort(members.begin(), members.end());
  const int first = members.front().second;
  const absl::StatusOr<UniqueId> place_of_first =
      ParseUniqueId(entry(first).substr(mine.size() - kUniqueIdSize));
  if (!place_of_first.ok()) {
    return absl::UnavailableError(
        absl::StrCat(parent_.self, ": rank ", first, " could not open a socket for its group"));
  }
  Meeting meeting;
  meeting.place = *place_of_first;
  meeting.listener = std::move(listener);
  for (const auto& [key_of_rank, member] : members) meeting.members.push_back(member);
  meeting.world_size = static_cast<int>(members.size());
  meeting.sound = true;
  meeting.setup = parent_.setup;
  meeting.setup.met = parent_.fabric.met;
  meeting.setup.split_off = true;
  return Meet(std::move(meeting), options);
}

absl::StatusOr<std::unique_ptr<Communicator>> Family::Shrink(const std::set<int>& excluded,
                                                             const MakingOptions& options) const {
  Meeting meeting;
  for (int rank = 0; rank < parent_.world_size; ++rank) {
    if (excluded.count(rank) == 0) meeting.members.push_back(rank);
  }
  const auto first = static_cast<size_t>(meeting.members.front());
  const absl::StatusOr<std::optional<net::SocketAddress>> address =
      bootstrap::ParsePlace(parent_.fabric.rejoin_addresses[first]);
  if (!address.ok() || !address->has_value()) {
    return absl::UnavailableError(
        absl::StrCat(parent_.self, ": rank ", first,
                     " had no socket open at which the others could meet it again"));
  }
  meeting.place.address = (*address)->address;
  meeting.place.port = (*address)->port;
  // Ranks that know of different losses meet in rendezvous of their own, and those that come too
  // early to one come again.
  meeting.place.key =
      absl::StrCat(parent_.fabric.rejoin_key, " ", absl::StrJoin(meeting.members, ","));
  // It has an address, so it has a listener.
  if (meeting.members.front() == parent_.rank) {
    meeting.shared_listener = parent_.fabric.rejoin_listener->socket();
  }
  meeting.world_size = static_cast<int>(meeting.members.size());
  meeting.setup = parent_.setup;
  // The failure may also have cut connections between the ranks that are left.
  meeting.setup.met = parent_.watch.failed() ? Met() : parent_.fabric.met;
  return Meet(std::move(meeting), options);
}

absl::StatusOr<std::unique_ptr<Communicator>> Family::Grow(const UniqueId& place, int world_size,
                                                           const MakingOptions& options) const {
  Meeting meeting;
  meeting.place = place;
  if (parent_.rank == 0) meeting.listener = TakeListener(place);
  meeting.members.resize(static_cast<size_t>(parent_.world_size));
  std::iota(meeting.members.begin(), meeting.members.end(), 0);
  meeting.world_size = world_size;
  meeting.sound = parent_.watch.verdict().ok();
  meeting.setup = parent_.setup;
  meeting.setup.met = Met();
  // New ranks may belong to another job; the id is their common secret.
  meeting.setup.settings.job_secret = false;
  return Meet(std::move(meeting), options);
}

absl::StatusOr<std::unique_ptr<Communicator>> Family::Meet(Meeting meeting,
                                                           const MakingOptions& making) const {
  config::Settings& settings = meeting.setup.settings;
  if (absl::Status set = config::Configure(making.fields, settings); !set.ok()) return set;
  const config::Settings& own = parent_.setup.settings;
  const bool same_rails = settings.transport == own.transport && settings.rails == own.rails &&
                          settings.socket_ifname == own.socket_ifname &&
                          settings.more_socket_ifnames == own.more_socket_ifnames;
  if (!same_rails) meeting.setup.met = Met();
  meeting.setup.tcp = parent_.fabric.tcp;
  const std::vector<int>& members = meeting.members;
  const auto self = std::find(members.begin(), members.end(), parent_.rank) - members.begin();
  CommunicatorOptions options;
  options.rendezvous = {static_cast<int>(self), meeting.world_size,
                        meeting.place.address.ToString(), meeting.place.port};
  if (self == 0) options.listener = std::move(meeting.listener);
  options.shared_listener = std::move(meeting.shared_listener);
  options.key = meeting.place.key;
  options.setup = std::move(meeting.setup);
  options.made_of_another = true;
  options.abort = making.abort;
  options.hopeless = [&] { return WhyHopeless(members, meeting.sound); };
  options.aborted = [this] { return WhyAborted(); };
  return Communicator::Create(std::move(options));
}

absl::Status Family::WhyAborted() const {
  if (!parent_.aborted) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(parent_.self, ": rhCommAbort was called"));
}

absl::Status Family::WhyHopeless(const std::vector<int>& members, bool sound) const {
  if (absl::Status aborted = WhyAborted(); !aborted.ok()) return aborted;
  if (sound && parent_.watch.failed()) return parent_.watch.verdict();
  for (const bootstrap::Gone& gone : parent_.watch.gone()) {
    if (std::find(members.begin(), members.end(), gone.rank) == members.end()) continue;
    return absl::UnavailableError(absl::StrCat(gone.name, " is gone: its connection was closed"));
  }
  return absl::OkStatus();
}

}  // namespace railhead::comm
