// SPDX-License-Identifier: Apache-2.0
//
// Matching of receives and messages, by source and tag.
#ifndef RAILHEAD_RUNTIME_TRANSFERS_MATCH_QUEUE_H_
#define RAILHEAD_RUNTIME_TRANSFERS_MATCH_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "runtime/transfers/keyed_queues.h"

namespace railhead::transfers {

// As source or tag of a receive: matches any.
inline constexpr int kAny = -1;

// Queues of posted receives without a message, and of arrived messages without a receive. A message
// goes to the first posted receive that matches; a receive gets the first arrived message that
// matches. So messages of one source are received in the order in which they were sent, if a
// receive matches several of them.
//
// Pure. `Receive` and `Arrival` are the owner's data, `Number` the type of sources and tags. A
// match takes constant time, for any number of waiting entries: each message waits in the queues of
// all receives that can get it.
template <class Receive, class Arrival, class Number = int>
class MatchQueue {
 public:
  // Returns the message that the receive gets; if none has arrived, the receive waits.
  std::optional<Arrival> Post(Number source, Number tag, Receive receive) {
    const Key key = {source, tag};
    if (const auto first = arrivals_.First(key); first != Arrivals::kNone) {
      return arrivals_.Take(first);
    }
    Waiting(key).Add({key}, next_++, std::move(receive));
    return std::nullopt;
  }

  // Returns the receive that gets the message; if none matches, the message waits.
  std::optional<Receive> Arrive(Number source, Number tag, Arrival arrival) {
    std::optional<Receive> receive = TakeReceive(source, tag);
    if (!receive.has_value()) Keep(source, tag, std::move(arrival));
    return receive;
  }
  // The two halves of Arrive: the receive that gets the message, if one matches, and the message,
  // if none does.
  std::optional<Receive> TakeReceive(Number source, Number tag) {
    Receives* first_of = &exact_;
    auto first = exact_.First({source, tag});
    if (wild_.size() > 0) {
      for (const Key& key : {Key{source, kAny}, Key{kAny, tag}, Key{kAny, kAny}}) {
        const auto wild = wild_.First(key);
        if (wild == Receives::kNone) continue;
        if (first != Receives::kNone && first_of->number(first) < wild_.number(wild)) continue;
        first_of = &wild_;
        first = wild;
      }
    }
    if (first == Receives::kNone) return std::nullopt;
    return first_of->Take(first);
  }
  void Keep(Number source, Number tag, Arrival arrival) {
    arrivals_.Add({{{source, tag}, {source, kAny}, {kAny, tag}, {kAny, kAny}}}, next_++,
                  std::move(arrival));
  }

  size_t receives() const { return exact_.size() + wild_.size(); }
  size_t arrivals() const { return arrivals_.size(); }

 private:
  struct Key {
    Number source{};
    Number tag{};
    bool operator==(const Key& other) const { return source == other.source && tag == other.tag; }
    // The upper bits depend on all bits of both (Fibonacci hashing).
    uint64_t Hash() const {
      const uint64_t both =
          uint64_t{static_cast<uint32_t>(source)} << 32U | static_cast<uint32_t>(tag);
      return both * 0x9e3779b97f4a7c15U;
    }
  };
  using Receives = KeyedQueues<Receive, Key, 1>;
  using Arrivals = KeyedQueues<Arrival, Key, 4>;

  Receives& Waiting(const Key& key) {
    return key.source != kAny && key.tag != kAny ? exact_ : wild_;
  }

  uint64_t next_ = 0;
  Receives exact_;
  Receives wild_;  // of any source or tag
  Arrivals arrivals_;
};

}  // namespace railhead::transfers

#endif  // RAILHEAD_RUNTIME_TRANSFERS_MATCH_QUEUE_H_
