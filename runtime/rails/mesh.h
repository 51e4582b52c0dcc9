// SPDX-License-Identifier: Apache-2.0
//
// This rank's rails to all the ranks it talks with, and the waiting for them: first a short spin,
// then a sleep until a rail or the alarm stirs, so that ranks that share a core do not burn it.
//
// Peers with which nothing is to be done cost nothing. A peer is busy from the moment something is
// posted for it until all of that is over and acknowledged. Only busy peers are polled, and where
// that costs a system call, only those whose descriptor has stirred. All are polled in turn,
// some every kRoundPause, for what no descriptor shows: rails that have died or may return.
#ifndef RAILHEAD_RUNTIME_RAILS_MESH_H_
#define RAILHEAD_RUNTIME_RAILS_MESH_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/companion.h"
#include "runtime/base/traffic.h"
#include "runtime/collectives/messenger.h"
#include "runtime/net/fd.h"
#include "runtime/rails/peer.h"

namespace railhead::rails {

// Ends every wait from outside: when `raised` becomes true, `event_fd` becomes readable.
struct Alarm {
  const std::atomic<bool>* raised = nullptr;
  int event_fd = -1;
};

// One rail's counters over all peers.
struct RailTotals {
  RailName name;
  bool up = true;
  int peers = 0;       // that it is linked to
  int lost_peers = 0;  // those of them that it does not reach now
  uint64_t transmit_bytes = 0;
  uint64_t receive_bytes = 0;
  uint64_t retransmits = 0;
  uint64_t failovers = 0;
  uint64_t returns = 0;
  uint64_t strangers = 0;  // connections that were turned away
  double weight = 1;       // its measured goodput, that of the fastest rail being 1
};

// How a mesh gets at ranks that it has no peer for yet.
struct Reach {
  // Makes the peer, not connected yet; without it there are no others.
  std::function<absl::StatusOr<std::unique_ptr<Peer>>(int rank)> open;
  // Where others come before this rank has a peer for them, and which of them stand there.
  std::vector<std::shared_ptr<transport::WakeSource>> doorbells;
  std::function<std::vector<int>()> callers;
};

// Used by one thread at a time, except where said.
class Mesh final : public collectives::Messenger {
 public:
  // `peers` by rank, all with the same rails in the same order. The alarm outlives the mesh.
  static absl::StatusOr<std::unique_ptr<Mesh>> Create(std::map<int, std::unique_ptr<Peer>> peers,
                                                      Alarm alarm, Reach reach = {});

  // From now on Progress does and waits for the companion's work as well, with the same patience.
  // The companion outlives the mesh.
  absl::Status Accompany(Companion& companion);
  // Whether small messages, and the last bytes of others, are copied, so that nobody waits for
  // their acknowledgement: on, unless their memory is not the CPU's.
  void CopySmall(bool copies);
  // From here on Progress fails with DeadlineExceeded when nothing has moved for `patience`.
  void Begin(absl::Duration patience);
  // Waits until nothing depends on further polling as long as no rail is lost, so that the caller
  // may stay away until the next Begin. Meanwhile Tend looks after what a lost rail had under way.
  absl::Status Finish();
  // Any thread, now and then: while the owner is away, polls what is not acknowledged yet, so that
  // it is repeated if its rail is lost. Does nothing while the owner is at work. What fails is the
  // error of the owner's next Progress.
  void Tend(absl::Time now);
  // Before the mesh goes, and the ranks with it: waits until all that was sent is known to have
  // arrived, so that nobody still waits for a repeat; at the longest until the deadline.
  void Settle(absl::Time deadline);

  void Expect(collectives::Call call) override;
  Ticket PostSend(int peer, absl::Span<const std::byte> data) override;
  Ticket PostReceive(int peer, const collectives::ReceiveBuffer& buffer) override;
  bool SendDone(int peer, Ticket ticket) const override;
  bool ReceiveDone(int peer, Ticket ticket) const override;
  // Besides the errors of links: Cancelled when the alarm is raised, DeadlineExceeded with what was
  // done and what is missing when the patience has ended.
  absl::Status Progress() override;

  // Any thread.
  std::vector<RailTotals> Totals() const;
  std::vector<Flow> Flows() const;
  // The mesh's own thread, twice for each collective: idle peers cost nothing.
  Traffic Moved();

 private:
  Mesh(std::map<int, std::unique_ptr<Peer>> peers, Alarm alarm, Reach reach, net::Fd epoll);

  struct Entry {
    std::unique_ptr<Peer> peer;
    bool busy = false;
    bool in_memory = true;  // polling it costs no system call
    Traffic counted;        // its part of moved_of_idle_, while it is not busy
  };
  // What a descriptor in `epoll_` belongs to. The alarm and the companion have none, a doorbell no
  // peer.
  struct Source {
    transport::WakeSource* source = nullptr;
    Entry* entry = nullptr;
  };

  // The entry of this rank, made now if need be, and busy from now on; null when that fails, which
  // ends the mesh.
  Entry* To(int rank);
  absl::Status Watch(Entry& entry);
  absl::Status Watch(int fd, const Source& source);
  void MakeBusy(Entry& entry);
  // Drops those with which nothing is to be done any more.
  void SweepBusy();

  // Why nothing goes on; OK if it may.
  absl::Status Trouble() const;
  // The next peers in turn: all that are polled in memory, and `most` of the others. PollRound also
  // lets in those who have come.
  absl::StatusOr<bool> PollPeers(absl::Time now, size_t most);
  absl::StatusOr<bool> PollCompanion();
  // Beside the companion, which may have something to do all the time: what the kernel has for
  // busy peers that are not polled in memory.
  absl::StatusOr<bool> PollSockets();
  bool CompanionWaits() const { return companion_ != nullptr && companion_->Waits(); }
  absl::StatusOr<bool> PollRound(absl::Time now);
  // Busy peers that are polled in memory, or have something for their links.
  absl::StatusOr<bool> PollBusy(absl::Time now);
  // Waits for descriptors, and polls the peers of those that have stirred. Returns whether anything
  // moved.
  absl::StatusOr<bool> PollStirred(int timeout_ms);
  absl::Status OnBusy(absl::FunctionRef<absl::Status(Peer& peer)> does);
  bool AnyBusy(absl::FunctionRef<bool(const Peer& peer)> is) const;
  bool OnlyUnacknowledged() const;
  bool Flushed() const;
  absl::Status Sleep();
  // So that nobody waits for acknowledgements alone.
  bool KeepUnacknowledged();
  void LetCallersIn();
  uint64_t ProgressOfAll() const;
  // Fails when there has been no progress for too long.
  absl::Status CheckPatience(absl::Time now);

  // Whose the mesh is. The owner takes it with whatever it calls, and gives it back at the end of
  // Finish; after an error it keeps it.
  enum class Holder { kNone, kOwner, kTender };
  void Hold();

  // Of other threads, those that read hold the mutex, as does this one when it adds a peer.
  std::map<int, Entry> peers_;
  mutable std::mutex mutex_;
  std::vector<Entry*> busy_;
  std::deque<Source> sources_;
  absl::Time next_round_ = absl::InfinitePast();
  int next_in_round_ = 0;  // the rank with which it begins
  std::atomic<Holder> holder_{Holder::kOwner};
  Alarm alarm_;
  Reach reach_;
  Companion* companion_ = nullptr;  // of the owner's; a tender leaves it alone
  absl::Status broken_;             // a peer could not be made
  collectives::Call call_;
  bool copies_small_ = true;
  net::Fd epoll_;
  bool finishing_ = false;  // waits for NICs and sockets to be done
  bool must_poll_ = false;  // some link has no descriptor to wait on
  absl::Duration patience_ = absl::InfiniteDuration();
  uint64_t progress_of_idle_ = 0;  // of peers that are not busy
  Traffic moved_of_idle_;
  uint64_t progress_ = 0;  // of all peers, when it last grew
  absl::Time last_progress_;
};

}  // namespace railhead::rails

#endif  // RAILHEAD_RUNTIME_RAILS_MESH_H_
