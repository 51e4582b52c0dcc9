// SPDX-License-Identifier: Apache-2.0
//
// Transfers of one rank that go on beside each other, in both directions and with all peers, over
// messages in order (collectives/messenger.h).
//
//   the sender                                  the receiver
//   small   kEager, and the bytes at once  -->  into its receive, or kept until that is posted
//   large   kAnnounce                      -->  waits for its receive
//                                          <--  kPull, once that is posted
//           kData and bytes, piece by piece -->  into its receive
//
// So bytes cross the network only when they have a place. What a rank keeps of small ones is
// limited: beyond kEagerRoom a sender announces them as well. A rank reads all notes at once, and
// pieces of several transfers take turns, so none waits for another one's receive.
//
// Knows no thread, no clock, no rail. The owner posts transfers, calls Advance() after everything
// that may have moved, and waits in the messenger meanwhile. Used by one thread at a time.
#ifndef RAILHEAD_RUNTIME_TRANSFERS_ENGINE_H_
#define RAILHEAD_RUNTIME_TRANSFERS_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/collectives/messenger.h"
#include "runtime/transfers/match_queue.h"
#include "runtime/transfers/note.h"

namespace railhead::transfers {

enum class Direction : uint8_t { kSend, kReceive };

// A transfer of this rank. Its memory is the user's until it is done.
struct Transfer {
  Direction direction = Direction::kSend;
  int peer = 0;  // of a receive: kAny, or from whom
  int tag = 0;   // of a receive: kAny, or which
  std::byte* data = nullptr;
  size_t size = 0;  // of a receive: the most that may come

  // What came, of a receive that has its message: from whom, with which tag, how many bytes. Of a
  // send: what was sent.
  struct Outcome {
    int peer = 0;
    int tag = 0;
    size_t bytes = 0;
  };
  Outcome outcome;

  virtual ~Transfer() = default;
};

class Engine {
 public:
  struct Options {
    int rank = 0;
    std::function<std::string(int rank)> name;                            // for errors
    std::function<void(const std::shared_ptr<Transfer>& transfer)> done;  // it is, with success
    // Whether a peer is told at once that this rank looks after its transfers: where the way to it
    // may fail, so that one of the two notices.
    std::function<bool(int peer)> greets;
    size_t piece = size_t{8} << 20;  // of a large transfer, in bytes
  };
  // The messenger outlives it, and carries nothing else.
  Engine(collectives::Messenger& messenger, Options options)
      : messenger_(messenger), options_(std::move(options)) {}

  // From now on the engine hears that peer. Whoever is named in a transfer is heard, too.
  void Listen(int peer);
  // Errors are Advance's.
  void Post(const std::shared_ptr<Transfer>& transfer);
  // Does what can be done without waiting. An error is final: Internal where two ranks contradict
  // each other, which both sides' names and sizes are in.
  absl::Status Advance();

  // Those that are not done, by the order in which they were posted.
  const std::map<uint64_t, std::shared_ptr<Transfer>>& unfinished() const { return unfinished_; }
  // Peers that are known to look after their transfers, and for which something is under way: if
  // nothing moves, something is wrong.
  std::vector<int> UnderWay() const;
  // Whether all that was sent has been given to the messenger, and is not this side's any more.
  bool Flushed() const;

 private:
  // What a transfer is while it goes on.
  struct Going {
    uint64_t number = 0;  // in unfinished_
    std::shared_ptr<Transfer> transfer;
    size_t posted = 0;  // bytes that the messenger has
    size_t ended = 0;   // and is done with
    size_t size = 0;
  };
  using GoingPtr = std::shared_ptr<Going>;

  // A message that has come before its receive, as it is kept.
  struct Early {
    int source = 0;
    int tag = 0;
    uint64_t size = 0;
    uint64_t id = 0;  // announced under that, unless it is eager
    bool eager = false;
    GoingPtr own;  // announced by this rank to itself
    std::vector<std::byte> bytes;
    bool complete = false;
    GoingPtr receive;  // that gets it when it is complete
  };
  using EarlyPtr = std::shared_ptr<Early>;

  // A message that was posted for sending.
  struct Sent {
    uint64_t ticket = 0;
    NoteBytes note;  // if it is one
    GoingPtr of;     // of whose bytes, so many
    size_t bytes = 0;
    bool piece = false;  // of a large one
  };
  // One that was posted for receiving, besides notes.
  struct Awaited {
    uint64_t ticket = 0;
    size_t bytes = 0;
    GoingPtr receive;
    EarlyPtr early;
  };
  struct Queued {
    Note note;
    GoingPtr bytes;  // that follow it
  };
  struct Peer {
    bool listens = false;  // this side, to it
    bool heard = false;
    NoteBytes heads{};  // the next note
    uint64_t head_ticket = 0;
    std::list<Awaited> awaited;
    std::list<Sent> sent;
    size_t pieces = 0;                       // of these
    std::deque<Queued> queued;               // in order
    std::deque<GoingPtr> streams;            // large ones that the peer has a place for, in turns
    std::map<const Going*, uint64_t> ids;    // of those
    std::map<uint64_t, GoingPtr> announced;  // by id: what the peer has no place for yet
    std::map<uint64_t, GoingPtr> pulled;     // by the peer's id: what is to come
    uint64_t next_id = 0;
    size_t eager = 0;  // cost of what may wait for its receive there
    size_t taken = 0;  // what the peer is to be told to have been taken
  };

  Peer& To(int peer);
  void PostSend(const GoingPtr& send);
  absl::Status PostReceive(const GoingPtr& receive);
  void SendToSelf(const GoingPtr& send);
  // Arrived: a message and its receive have found each other.
  absl::Status Match(const GoingPtr& receive, const EarlyPtr& early);
  absl::Status Arrive(const EarlyPtr& early);
  absl::Status CheckSize(const GoingPtr& receive, int source, int tag, uint64_t size) const;
  absl::Status Handle(int rank, Peer& peer, const Note& note);
  // A step of each kind; whether anything was done.
  absl::StatusOr<bool> Hear(int rank, Peer& peer);
  bool EndReceived(int rank, Peer& peer);
  bool EndSent(int rank, Peer& peer);
  bool SendMore(int rank, Peer& peer);
  void Say(int rank, Peer& peer, const Note& note);
  void SendBytes(int rank, Peer& peer, const GoingPtr& of, size_t bytes);
  void Await(int rank, Peer& peer, std::byte* to, const Awaited& awaited);
  void AwaitNote(int rank, Peer& peer);
  void GiveBackRoom(int source, uint64_t size);
  void CountReceived(const GoingPtr& receive, size_t bytes);
  void Done(const GoingPtr& going);

  collectives::Messenger& messenger_;
  const Options options_;
  absl::Status error_;
  uint64_t next_number_ = 0;
  std::map<uint64_t, std::shared_ptr<Transfer>> unfinished_;
  MatchQueue<GoingPtr, EarlyPtr> matches_;
  std::map<int, Peer> peers_;
};

}  // namespace railhead::transfers

#endif  // RAILHEAD_RUNTIME_TRANSFERS_ENGINE_H_
