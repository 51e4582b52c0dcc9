// SPDX-License-Identifier: Apache-2.0
//
// This rank's rails to all its peers, and the wait for them: a short spin, then a sleep until a
// rail or the abort alarm wakes it, so that ranks that share a core do not burn it. Spinning on
// sockets costs a system call per look, so it is rare while the waits prove to be longer.
//
// Idle peers cost nothing. A peer is busy from the first post until everything is complete and
// acknowledged. Only busy peers are polled, and if that costs a system call, only when their
// descriptor is readable. Besides, all peers are polled in turn, some every kRoundPause, for events
// without a descriptor: rails that died or may return.
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
#include "runtime/base/alarm.h"
#include "runtime/base/companion.h"
#include "runtime/base/traffic.h"
#include "runtime/collectives/messenger.h"
#include "runtime/net/fd.h"
#include "runtime/rails/peer.h"
#include "runtime/rails/rail_totals.h"
#include "runtime/transport/wake_event.h"

namespace railhead::rails {

// Lazy connections: how a mesh gets peers on first use.
struct Reach {
  // Creates the peer, not connected yet; empty: there are no others.
  std::function<absl::StatusOr<std::unique_ptr<Peer>>(int rank)> open;
  // Wakes the mesh: for connections from ranks without a peer yet, addresses, and the alarm.
  std::shared_ptr<transport::WakeEvent> wake = nullptr;
  // Returns the ranks without a peer yet that wait with a connection.
  std::function<std::vector<int>()> callers;
};

// Use from one thread at a time, except where stated.
class Mesh final : public collectives::Messenger {
 public:
  // `peers` by rank, all with the same rails in the same order. `alarm` must outlive the mesh;
  // the wake event of `reach` must be signalled when it is raised, or waits end late.
  static absl::StatusOr<std::unique_ptr<Mesh>> Create(std::map<int, std::unique_ptr<Peer>> peers,
                                                      Alarm alarm, Reach reach = {});
  ~Mesh() override;
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  // Makes Progress also perform and wait for the companion's work, with the same timeout. The
  // companion must outlive the mesh.
  absl::Status Accompany(Companion& companion);
  // If `copies` (the default), copies small messages and the last bytes of others, so that their
  // senders need not wait for acknowledgements. Pass false for memory that the CPU cannot access.
  void CopySmall(bool copies);
  // Starts a collective: Progress fails with DeadlineExceeded after this time without progress.
  void Begin(absl::Duration patience);
  // Waits until nothing depends on further polling unless a rail is lost, so that the owner may
  // stay away until the next Begin; Tend then handles losses, of both sides.
  absl::Status Finish();
  // Works for an owner that is away: takes and acknowledges what has come, also repeats of frames
  // whose acknowledgements were lost; repeats what is not acknowledged if its rail is lost; accepts
  // connections of new peers and of returning rails. Call it every kTendPause from any thread; it
  // does nothing while the owner works. Its error is returned by the owner's next Progress.
  void Tend(absl::Time now);
  // Short beside the time after which a peer drops a rail (tcp/ack_timeout.h).
  static constexpr absl::Duration kTendPause = absl::Milliseconds(100);
  // Waits until everything sent is known to have arrived, at most until `deadline`; then the owner
  // is away. Call it before destroying the mesh: no peer waits for a repeat then.
  void Settle(absl::Time deadline);
  // Returns true if it is known now, except of peers that have `left`.
  bool Acknowledged(absl::FunctionRef<bool(int peer)> left) const;
  // Peers to which something sent is not known to have arrived.
  std::vector<int> Unacknowledged() const;
  // Describes what is to be done with a peer, and its rails; "" if there are none.
  std::string DescribeProgress(int peer) const;
  // See Peer::CannotConnect.
  bool CannotConnect(int peer) const;
  // This rank leaves: acknowledges at once what it has taken, because peers that leave, too, wait
  // for that. Their rails are neither logged nor counted as lost.
  void ExpectClose();
  // Increases as transfers come nearer to completion, of all peers (with the companion), or of one;
  // see Peer::progress.
  uint64_t progress() const;
  uint64_t progress(int peer) const;

  void Expect(collectives::Call call) override;
  Ticket PostSend(int peer, absl::Span<const std::byte> data) override {
    return Post(peer, data, /*more=*/false);
  }
  Ticket PostPart(int peer, absl::Span<const std::byte> data) override {
    return Post(peer, data, /*more=*/true);
  }
  Ticket PostDirect(int peer, absl::Span<const std::byte> data,
                    const collectives::RemoteMemory& to) override;
  Ticket PostReceive(int peer, const collectives::ReceiveBuffer& buffer) override;
  bool SendDone(int peer, Ticket ticket) const override;
  bool ReceiveDone(int peer, Ticket ticket) const override;
  // Adds to the errors of links: Cancelled when the alarm is raised, DeadlineExceeded after the
  // timeout, with what was done and what is missing.
  absl::Status Progress() override;

  // Steps of an owner that waits for other things, too, in place of Progress. Look does what is
  // possible without waiting, and returns true if anything has moved. PrepareSleep does so, too,
  // and returns how long the owner may sleep: until `epoll()`, which it must have opened, is
  // readable or the time has passed; zero if something has moved.
  absl::StatusOr<bool> Look();
  absl::StatusOr<absl::Duration> PrepareSleep();
  int epoll() const { return epoll_.get(); }
  // Returns true if it has peers, connected or not.
  bool HasPeers() const { return !peers_.empty(); }

  // Thread-safe. Returns the time of the last sign of a rank's process on the rails
  // (Peer::last_sign); InfinitePast without a rail to it. Makes the next calls request one: of the
  // owner, or of Tend.
  absl::Time LastSign(int rank) const;
  // Thread-safe. Totals: of each rail over all peers.
  std::vector<RailTotals> Totals() const;
  std::vector<Flow> Flows() const;
  // Owner's thread only; called twice per collective, idle peers cost nothing.
  Traffic Moved();

 private:
  Mesh(std::map<int, std::unique_ptr<Peer>> peers, Alarm alarm, Reach reach);

  struct Entry {
    std::unique_ptr<Peer> peer;
    bool busy = false;
    bool in_memory = true;  // polling costs no system call
    Traffic counted;        // its part of moved_of_idle_, while not busy
  };
  // Owner of a descriptor in `epoll_`: the wake event, a rail of a peer, or else the companion.
  struct Source {
    transport::WakeEvent* wake = nullptr;
    Entry* entry = nullptr;
    size_t rail = 0;  // of the peer
  };

  Ticket Post(int peer, absl::Span<const std::byte> data, bool more);
  // Returns the entry of this rank, created if needed, and marks it busy; null after an error,
  // which ends the mesh.
  Entry* To(int rank);
  absl::Status Watch(Entry& entry);
  absl::Status Watch(int fd, const Source& source);
  // Does nothing while its event is not open.
  absl::Status WatchCompanion();
  // Returns true if a sleep would miss what the companion waits for.
  bool MustPollCompanion();
  // Does nothing if it is open. A mesh of ranks that all share memory needs no epoll.
  absl::Status OpenEpoll();
  void MakeBusy(Entry& entry);
  // Removes entries without remaining work.
  void SweepBusy();

  // Returns why the mesh cannot continue, or OK.
  absl::Status Trouble() const;
  // Each sets `moved_` if anything moved. Poll resets it first, and does what is due.
  absl::Status Poll(absl::Time now);
  absl::Status PollPeer(Entry& entry, absl::Time now);
  // Takes the result of a peer's poll.
  absl::Status OnPolled(Entry& entry, const absl::StatusOr<bool>& moved);
  // Polls the next peers in turn: all that are polled in memory, and `most` of the others.
  // PollRound also accepts new peers.
  absl::Status PollPeers(absl::Time now, size_t most);
  absl::Status PollCompanion();
  // Polls busy peers whose descriptor is readable, without a sleep. If not `all`, other descriptors
  // may wait.
  absl::Status PollSockets(absl::Time now, bool all);
  // Returns true if this wait is likely to be shorter than a spin; now and then it tries anyway.
  bool SpinsOnSockets() const {
    return spins_in_vain_ < kVainSpins || spins_in_vain_ % kSpinTrial == 0;
  }
  bool CompanionWaits() const { return companion_ != nullptr && companion_->Waits(); }
  absl::Status PollRound(absl::Time now);
  // Polls busy peers in memory, or with data for their links.
  absl::Status PollBusy(absl::Time now);
  // Waits for descriptors and polls their rails.
  absl::Status PollStirred(int timeout_ms);
  absl::Status OnBusy(absl::FunctionRef<absl::Status(Peer& peer)> does);
  // The work of Tend, until there is no more, or the owner wants the mesh.
  absl::Status TendPeers(absl::Time now);
  void Release() { holder_.store(Holder::kNone, std::memory_order_release); }
  bool AnyBusy(absl::FunctionRef<bool(const Peer& peer)> is) const;
  bool OnlyUnacknowledged() const;
  bool Flushed() const;
  absl::Status Sleep();
  // Arms descriptors, polls once more, and returns the maximum time to sleep; zero if something has
  // moved, or if nothing is left to wait for. `acknowledges`: first acknowledges what was taken.
  absl::StatusOr<absl::Duration> ArmToSleep(bool acknowledges);
  // Copies unacknowledged data, so that the owner need not wait for acknowledgements.
  bool KeepUnacknowledged();
  void LetCallersIn();
  // Fails after too long without progress.
  absl::Status CheckPatience(absl::Time now);

  static constexpr uint32_t kVainSpins = 8;
  static constexpr uint32_t kSpinTrial = 16;

  // Current user of the mesh. Every call of the owner acquires it; Finish and Settle release it,
  // and so do Moved, CopySmall and ExpectClose if the owner was away. After an error the owner
  // keeps it.
  enum class Holder { kNone, kOwner, kTender };
  void Hold();
  class Visit;  // holds the mesh in a scope, and releases it then if the owner was away

  net::Fd epoll_;  // once needed; links use it until they are destroyed
  // Readers on other threads hold the mutex, as does the owner when it adds a peer.
  std::map<int, Entry> peers_;
  mutable std::mutex mutex_;
  std::vector<Entry*> busy_;
  bool moved_ = false;
  std::deque<Source> sources_;
  absl::Time next_round_ = absl::InfinitePast();
  int next_in_round_ = 0;  // rank at which it starts
  std::atomic<Holder> holder_{Holder::kOwner};
  std::atomic<bool> wanted_{false};  // by the owner, while the tender has it
  Alarm alarm_;
  Reach reach_;
  Companion* companion_ = nullptr;  // of the owner; Tend does not use it
  bool watches_companion_ = false;
  absl::Status broken_;  // error of creating a peer
  collectives::Call call_;
  bool copies_small_ = true;
  bool finishing_ = false;      // waits for NICs and sockets
  uint32_t spins_in_vain_ = 0;  // waits in a row that outlasted the spin
  bool must_poll_ = false;      // some link must be polled
  absl::Duration patience_ = absl::InfiniteDuration();
  uint64_t progress_of_idle_ = 0;  // of idle peers
  Traffic moved_of_idle_;
  uint64_t progress_ = 0;  // of all peers, at the last change
  absl::Time last_progress_;
};

}  // namespace railhead::rails

#endif  // RAILHEAD_RUNTIME_RAILS_MESH_H_
