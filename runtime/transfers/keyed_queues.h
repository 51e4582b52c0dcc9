// SPDX-License-Identifier: Apache-2.0
//
// Entries in order of arrival, each of which is in several queues that have keys.
#ifndef RAILHEAD_RUNTIME_TRANSFERS_KEYED_QUEUES_H_
#define RAILHEAD_RUNTIME_TRANSFERS_KEYED_QUEUES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace railhead::transfers {

// Each entry is in `kQueues` queues with different keys, behind those that were added earlier.
// Adding and removing an entry, and finding the first one of a queue, take constant time for any
// number of entries and keys. Memory is allocated only when there are more entries than ever
// before, and returned when a long queue is empty.
//
// `Key` has == and a 64-bit Hash(), of which the upper bits are used. Equal keys have the same
// index in Keys. Used by MatchQueue.
template <class Entry, class Key, size_t kQueues>
class KeyedQueues {
 public:
  using Keys = std::array<Key, kQueues>;
  using Place = uint32_t;  // of an entry, while it is in the queues
  static constexpr Place kNone = UINT32_MAX;

  size_t size() const { return size_; }

  // `number` distinguishes the entries of several KeyedQueues, see number().
  void Add(const Keys& keys, uint64_t number, Entry entry) {
    if (2 * (queues_ + kQueues) > slots_.size()) Grow();
    Place place = free_;
    if (place == kNone) {
      place = static_cast<Place>(nodes_.size());
      nodes_.emplace_back();
    } else {
      free_ = nodes_[place].links[0].next;
    }
    Node& node = nodes_[place];
    node.entry = std::move(entry);
    node.number = number;
    node.keys = keys;
    for (size_t i = 0; i < kQueues; ++i) {
      Queue& queue = slots_[Find(keys[i])];
      node.links[i] = {queue.last, kNone};
      if (queue.first == kNone) {
        queue = {keys[i], place, place};
        ++queues_;
      } else {
        nodes_[queue.last].links[i].next = place;
        queue.last = place;
      }
    }
    ++size_;
  }

  // Returns the first entry of a queue; kNone if there is none.
  Place First(const Key& key) const { return size_ == 0 ? kNone : slots_[Find(key)].first; }
  uint64_t number(Place place) const { return nodes_[place].number; }

  // Removes the entry from its queues.
  Entry Take(Place place) {
    Node& node = nodes_[place];
    for (size_t i = 0; i < kQueues; ++i) Unlink(node.keys[i], node.links[i], i);
    Entry entry = *std::move(node.entry);
    node.entry.reset();
    node.links[0].next = std::exchange(free_, place);
    if (--size_ == 0 && nodes_.size() > kKept) *this = KeyedQueues();
    return entry;
  }

 private:
  // Number of entries whose memory is kept while there are none.
  static constexpr size_t kKept = 1024;
  static constexpr unsigned kLeastSlotBits = 4;

  struct Link {
    Place previous = kNone;
    Place next = kNone;
  };
  struct Node {
    std::optional<Entry> entry;
    uint64_t number = 0;
    Keys keys;
    std::array<Link, kQueues> links;  // by queue; links[0].next: of free nodes, the next one
  };
  // Not in use while `first` is kNone.
  struct Queue {
    Key key;
    Place first = kNone;
    Place last = kNone;
  };

  // Returns the index of the key's slot, or of the free one where it belongs.
  size_t Find(const Key& key) const {
    size_t at = Home(key);
    while (slots_[at].first != kNone && !(slots_[at].key == key)) at = Next(at);
    return at;
  }
  size_t Home(const Key& key) const { return key.Hash() >> shift_; }
  size_t Next(size_t at) const { return (at + 1) & (slots_.size() - 1); }

  void Unlink(const Key& key, const Link& link, size_t i) {
    if (link.previous != kNone) nodes_[link.previous].links[i].next = link.next;
    if (link.next != kNone) nodes_[link.next].links[i].previous = link.previous;
    if (link.previous != kNone && link.next != kNone) return;
    const size_t at = Find(key);
    if (link.previous == kNone) slots_[at].first = link.next;
    if (link.next == kNone) slots_[at].last = link.previous;
    if (slots_[at].first == kNone) Close(at);
  }

  // The slots behind a slot that is now free move up, so that each is found from its home.
  void Close(size_t free) {
    --queues_;
    const size_t mask = slots_.size() - 1;
    for (size_t at = Next(free); slots_[at].first != kNone; at = Next(at)) {
      if (((at - Home(slots_[at].key)) & mask) < ((at - free) & mask)) continue;
      slots_[free] = slots_[at];
      slots_[at] = Queue();
      free = at;
    }
  }

  void Grow() {
    std::vector<Queue> grown(size_t{1} << (65U - shift_));
    const std::vector<Queue> before = std::exchange(slots_, std::move(grown));
    --shift_;
    for (const Queue& queue : before) {
      if (queue.first != kNone) slots_[Find(queue.key)] = queue;
    }
  }

  size_t size_ = 0;
  size_t queues_ = 0;
  std::vector<Node> nodes_;
  Place free_ = kNone;
  std::vector<Queue> slots_;                  // by the upper bits of hashes
  unsigned shift_ = 64 - kLeastSlotBits + 1;  // of a hash to its slot
};

}  // namespace railhead::transfers

#endif  // RAILHEAD_RUNTIME_TRANSFERS_KEYED_QUEUES_H_
