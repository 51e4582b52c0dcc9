// SPDX-License-Identifier: Apache-2.0
//
// All rails to one other rank. Transfers wait in one queue, and the rails pull from it: whichever
// has room takes the next chunk. Of the rails that have room the one that has carried the fewest
// bytes is asked first, so equal rails carry equal shares, also of many small transfers, and a slow
// or busy rail holds nobody up.
#ifndef RAILHEAD_RUNTIME_RAILS_PEER_H_
#define RAILHEAD_RUNTIME_RAILS_PEER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/collectives/messenger.h"
#include "runtime/rails/range_set.h"
#include "runtime/rails/slot_queue.h"
#include "runtime/transport/link.h"

namespace railhead::rails {

// What people call a rail.
struct RailName {
  int rail = 0;
  std::string device;     // HCA, or network interface for TCP
  int port = 0;           // of the HCA; 0 for TCP
  std::string transport;  // "verbs" or "tcp"
};

// "rail 0 (rxe0 port 1, verbs)".
std::string ToString(const RailName& name);

struct Rail {
  RailName name;
  std::unique_ptr<transport::Link> link;
};

// Used by one thread at a time, except where said.
class Peer {
 public:
  // `name` is the other rank's ("rank 1 (pod b)"). There is at least one rail.
  Peer(std::string name, std::vector<Rail> rails);

  uint64_t PostSend(absl::Span<const std::byte> data);
  uint64_t PostReceive(const collectives::ReceiveBuffer& buffer);
  // A sent transfer is done when the rails have taken it all.
  bool SendDone(uint64_t ticket) const { return ticket < sends_.begin(); }
  bool ReceiveDone(uint64_t ticket) const;

  // Whether every posted transfer is done. A sent one is done when the rails have taken it all.
  bool Idle() const { return sends_.empty() && receives_.empty(); }
  // Whether, besides, nothing that the rails took depends on further polling.
  bool Flushed() const;

  // Moves everything that can move. Returns whether anything did. An error is final; it names the
  // rail and the peer.
  absl::StatusOr<bool> Poll();

  // What has been done of the oldest transfers, for the message of a stalled collective.
  std::string DescribeProgress() const;

  // Any thread: names, counters and states of the rails. They live as long as the peer.
  size_t rail_count() const { return rails_.size(); }
  const RailName& rail_name(size_t index) const { return rails_[index].name; }
  const transport::LinkStats& rail_stats(size_t index) const { return rails_[index].link->stats(); }
  bool rail_up(size_t index) const { return states_[index].up.load(std::memory_order_relaxed); }

  transport::Link& link(size_t index) { return *rails_[index].link; }
  // Adds which rail of which peer to an error of that link, and takes the rail for down.
  absl::Status LinkError(size_t index, const absl::Status& status);

 private:
  struct Send {
    absl::Span<const std::byte> data;
    size_t taken = 0;  // handed to the rails
    size_t chunk = 0;
  };
  struct Receive {
    collectives::ReceiveBuffer buffer;
    RangeSet arrived;
    bool done = false;
  };
  struct RailState {
    uint64_t carried = 0;  // how much it was given, compared with the others
    bool full = false;     // has refused a chunk since it was last polled
    std::atomic<bool> up{true};
  };

  absl::StatusOr<bool> Pull();
  RailState* NextRail(size_t* index);
  void Account(RailState& state, size_t bytes);
  bool Take(const transport::FrameHeader& header, absl::Span<const std::byte> payload);
  absl::Status Place(const transport::FrameHeader& header, absl::Span<const std::byte> payload);

  std::string name_;
  std::vector<Rail> rails_;
  std::vector<RailState> states_;
  size_t max_payload_;
  SlotQueue<Send> sends_;
  SlotQueue<Receive> receives_;
  absl::Status receive_error_;
};

}  // namespace railhead::rails

#endif  // RAILHEAD_RUNTIME_RAILS_PEER_H_
