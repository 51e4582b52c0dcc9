// SPDX-License-Identifier: Apache-2.0
//
// Matching of receives and messages, by source and tag.
#ifndef RAILHEAD_RUNTIME_TRANSFERS_MATCH_QUEUE_H_
#define RAILHEAD_RUNTIME_TRANSFERS_MATCH_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace railhead::transfers {

// As source or tag of a receive: matches any.
inline constexpr int kAny = -1;

// Queues of posted receives without a message, and of arrived messages without a receive. A message
// goes to the first posted receive that matches; a receive gets the first arrived message that
// matches. So messages of one source are received in the order in which they were sent, if a
// receive matches several of them.
//
// Pure. `Receive` and `Arrival` are the owner's data. If neither source nor tag is kAny, a match
// costs one look-up, for any number of waiting entries.
template <class Receive, class Arrival>
class MatchQueue {
 public:
  // Returns the message that the receive gets; if none has arrived, the receive waits.
  std::optional<Arrival> Post(int source, int tag, Receive receive) {
    const auto found =
        source != kAny && tag != kAny ? FirstArrivalOf({source, tag}) : FirstArrival(source, tag);
    if (found != arrivals_.end()) {
      Arrival arrival = std::move(found->second.what);
      arrivals_of_.erase({found->second.from, found->first});
      arrivals_.erase(found);
      return arrival;
    }
    (source != kAny && tag != kAny ? exact_ : wild_)
        .emplace(Place{{source, tag}, next_++}, std::move(receive));
    return std::nullopt;
  }

  // Returns the receive that gets the message; if none matches, the message waits.
  std::optional<Receive> Arrive(int source, int tag, Arrival arrival) {
    std::optional<Receive> receive = TakeReceive(source, tag);
    if (!receive.has_value()) Keep(source, tag, std::move(arrival));
    return receive;
  }
  // The two halves of Arrive: the receive that gets the message, if one matches, and the message,
  // if none does.
  std::optional<Receive> TakeReceive(int source, int tag) {
    const Key from = {source, tag};
    auto* first = &exact_;
    auto found = exact_.lower_bound({from, 0});
    if (found != exact_.end() && found->first.first != from) found = exact_.end();
    // Each kind of matching receive has its own range, in posting order.
    for (const Key& kind : {Key{source, kAny}, Key{kAny, tag}, Key{kAny, kAny}}) {
      const auto wild = wild_.lower_bound({kind, 0});
      if (wild == wild_.end() || wild->first.first != kind) continue;
      if (found != first->end() && found->first.second < wild->first.second) continue;
      first = &wild_;
      found = wild;
    }
    if (found == first->end()) return std::nullopt;
    Receive receive = std::move(found->second);
    first->erase(found);
    return receive;
  }
  void Keep(int source, int tag, Arrival arrival) {
    const Key from = {source, tag};
    arrivals_of_.emplace(Place{from, next_}, 0);
    arrivals_.emplace(next_++, Waiting{from, std::move(arrival)});
  }

  size_t receives() const { return exact_.size() + wild_.size(); }
  size_t arrivals() const { return arrivals_.size(); }

 private:
  using Key = std::pair<int, int>;         // source and tag
  using Place = std::pair<Key, uint64_t>;  // and sequence number
  struct Waiting {
    Key from;
    Arrival what;
  };
  using Arrivals = std::map<uint64_t, Waiting>;

  typename Arrivals::iterator FirstArrivalOf(const Key& key) {
    const auto found = arrivals_of_.lower_bound({key, 0});
    if (found == arrivals_of_.end() || found->first.first != key) return arrivals_.end();
    return arrivals_.find(found->first.second);
  }
  typename Arrivals::iterator FirstArrival(int source, int tag) {
    auto arrival = arrivals_.begin();
    for (; arrival != arrivals_.end(); ++arrival) {
      const Key& from = arrival->second.from;
      if ((source == kAny || source == from.first) && (tag == kAny || tag == from.second)) break;
    }
    return arrival;
  }

  uint64_t next_ = 0;
  std::map<Place, Receive> exact_;
  std::map<Place, Receive> wild_;
  Arrivals arrivals_;                 // by order of arrival
  std::map<Place, int> arrivals_of_;  // by source and tag
};

}  // namespace railhead::transfers

#endif  // RAILHEAD_RUNTIME_TRANSFERS_MATCH_QUEUE_H_
