// SPDX-License-Identifier: Apache-2.0
//
// Engine of one rank's rhIsend and rhIrecv transfers, concurrent in both directions and with all
// peers, over ordered messages (collectives/messenger.h). Used by the transfer lane
// (comm/communicator/lane.h).
//
//   sender                                      receiver
//   small   kEager, and the bytes at once  -->  into its receive, or buffered until that is posted
//           (the smallest within the note; in memory, most in one message with it)
//   large   kAnnounce                      -->  waits for its receive
//                                          <--  kPull, once that is posted
//           kData and bytes, piece by piece -->  into its receive
//
// Registered memory. If a receive's memory is registered with the rails, its kPull says where that
// is, and the sender's NICs write there (Messenger::PostDirect); kMemory has told the sender before
// where the registered memory begins, once. Memory of a device is never copied by the CPU: such a
// send is announced whatever its size, and once the peer has told of such memory, so is all but the
// smallest.
//
// So bytes cross the network only if there is memory for them. Buffering of small messages is
// limited: beyond kEagerRoom a sender announces them, too. A rank reads all notes at once, and
// pieces of several transfers alternate, so no transfer waits for the receive of another one.
//
// Independent of threads, clocks and rails. The owner posts transfers, calls Advance() after each
// possible progress, and waits in the messenger. One thread at a time.
#ifndef RAILHEAD_RUNTIME_TRANSFERS_ENGINE_H_
#define RAILHEAD_RUNTIME_TRANSFERS_ENGINE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/slot_queue.h"
#include "runtime/collectives/messenger.h"
#include "runtime/collectives/registered_memory.h"
#include "runtime/transfers/match_queue.h"
#include "runtime/transfers/note.h"

namespace railhead::transfers {

enum class Direction : uint8_t { kSend, kReceive };

// A transfer of this rank. Its buffer must stay valid until it is done.
struct Transfer {
  Direction direction = Direction::kSend;
  int peer = 0;  // for a receive: source or kAny
  int tag = 0;   // for a receive: expected tag or kAny
  std::byte* data = nullptr;
  size_t size = 0;  // for a receive: maximum size, in bytes
  // Memory that contains `data`, if it is registered with the rails to its peer; otherwise null.
  const collectives::RegisteredMemory* registered = nullptr;

  // Source, tag and size of the message that a receive got, from when it is matched. For a send:
  // what is sent.
  struct Outcome {
    int peer = kAny;  // kAny: not matched yet
    int tag = 0;
    size_t bytes = 0;
  };
  Outcome outcome;

  // State of an unfinished transfer. The engine's.
  struct Going {
    uint64_t number = 0;           // by the order of Post
    size_t posted = 0;             // bytes posted to the messenger
    size_t ended = 0;              // of these, completed
    size_t size = 0;               // of the message, once it is known
    Transfer* previous = nullptr;  // among the unfinished
    Transfer* next = nullptr;
  };
  Going going;

  virtual ~Transfer() = default;
};

class Engine {
 public:
  struct Options {
    int rank = 0;
    std::function<std::string(int rank)> name;  // for errors
    // Called on success; the engine does not use the transfer afterwards.
    std::function<void(Transfer& transfer)> done;
    // Returns true for a peer that must be notified at once that this rank runs its transfers,
    // because the path to it may fail; the notification makes one of the two detect that.
    std::function<bool(int peer)> greets;
    size_t piece = size_t{8} << 20;  // of a large transfer, in bytes
  };
  // The messenger must outlive the engine, and carry nothing else.
  Engine(collectives::Messenger& messenger, Options options)
      : messenger_(messenger), options_(std::move(options)) {}
  ~Engine() { TakeUnfinished(); }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Starts to receive from that peer. Post does so for the peer of a transfer.
  void Listen(int peer);
  // The transfer must live until it is done or taken. Returns whether it now waits for the peer
  // alone: it is a send that has left, or a receive without a message. Otherwise Advance has
  // something to do, and returns its errors.
  bool Post(Transfer& transfer);
  // Does everything that is possible without waiting. An error is final: Internal, with names and
  // sizes of both sides, if two ranks contradict each other.
  absl::Status Advance();

  // The unfinished transfer that was posted first, or null; the others follow in the order of Post
  // (Going::next).
  const Transfer* oldest() const { return oldest_; }
  // Removes the unfinished transfers and returns them. Call nothing else afterwards.
  std::vector<Transfer*> TakeUnfinished();
  // Returns the peers to which something is being sent, or whose bytes are awaited. If nothing
  // moves although the peer runs its transfers, as it does once Heard() is true, there is a fault.
  std::vector<int> UnderWay() const;
  bool Heard(int peer) const;
  // Returns true if the peer has told of registered memory of a device.
  bool HasDevice(int peer) const;
  // Returns true if all posted sends are complete and their memory is no longer used, except those
  // to peers that have `left`: they take nothing any longer.
  bool Flushed(absl::FunctionRef<bool(int peer)> left) const;

 private:
  // A message that arrived before its receive was posted.
  struct Early {
    int source = 0;
    int tag = 0;
    uint64_t size = 0;
    uint64_t id = 0;  // of its announcement, unless eager
    bool eager = false;
    Transfer* own = nullptr;  // its send, if this rank sent it to itself
    std::vector<std::byte> bytes;
    bool complete = false;
    Transfer* receive = nullptr;  // gets it when it is complete
  };
  using EarlyPtr = std::shared_ptr<Early>;

  // A message posted for sending.
  struct Sent {
    uint64_t ticket = 0;
    NoteBytes note{};
    Transfer* of = nullptr;  // whose bytes it has, or which it completes
    size_t bytes = 0;
    bool piece = false;  // of a large transfer
  };
  // Maximum size in bytes of transfers that are joined to their note: they are copied once more.
  static constexpr size_t kMostJoined = 2048;
  // Data posted for receiving; notes are received separately.
  struct Awaited {
    uint64_t ticket = 0;
    size_t bytes = 0;
    Transfer* receive = nullptr;
    EarlyPtr early;
  };
  struct Queued {
    Note note;
    Transfer* send = nullptr;  // whose bytes follow the note, or which it completes
  };
  // Number of messages of a peer that the messenger has at once: enough to keep it busy, and few
  // enough that later messages do not wait long.
  static constexpr size_t kMostPosted = 32;
  struct Peer {
    int rank = 0;
    bool listens = false;  // this side receives from it
    bool heard = false;
    // Small transfers are in one message with their note, which is read where it lies.
    bool joins = false;
    NoteBytes head{};  // the next note of a peer that does not join
    uint64_t head_ticket = 0;
    SlotQueue<Awaited> awaited;
    // Never more than its capacity: the messenger reads the notes where they are.
    SlotQueue<Sent> sent{2 * kMostPosted};
    size_t pieces = 0;              // number of pieces in `sent`
    SlotQueue<Queued> queued;       // in order
    std::deque<Transfer*> streams;  // large transfers that the peer has requested
    struct Pulled {
      uint64_t id = 0;
      collectives::RemoteMemory to;  // where it wants the transfer; no keys: anywhere
    };
    std::map<const Transfer*, Pulled> ids;    // of the transfers in `streams`
    std::map<uint64_t, Transfer*> announced;  // by id: sends that the peer has not requested yet
    std::map<uint64_t, Transfer*> pulled;     // by the peer's id: receives whose data was requested
    uint64_t next_id = 0;
    // The peer's registered memory, by number; whether some is of a device; and the numbers of this
    // side's that the peer has been told of.
    std::map<uint64_t, collectives::RemoteMemory> memory;
    std::deque<uint64_t> memory_order;
    bool has_device = false;
    std::set<uint64_t> told;
    std::deque<uint64_t> told_order;
    size_t eager = 0;  // cost of eager messages that may be buffered there
    // Cost of matched eager messages that the peer has not been notified of.
    size_t taken = 0;
  };

  Peer& Of(int rank) {
    const auto index = static_cast<size_t>(rank);
    const bool known = index < by_rank_.size() && by_rank_[index] != nullptr;
    return known ? *by_rank_[index] : Add(rank);
  }
  Peer& Add(int rank);
  // As Of, and receives from it.
  Peer& To(int rank) {
    Peer& peer = Of(rank);
    if (!peer.listens) Begin(peer);
    return peer;
  }
  void Begin(Peer& peer);
  static Note EagerNote(const Transfer& send);
  // Sends a small one if that is possible at once, and returns whether it was.
  bool SendAtOnce(const Transfer& send);
  void PostSend(Transfer& send);
  // Returns whether its message had arrived.
  absl::StatusOr<bool> PostReceive(Transfer& receive);
  void SendToSelf(Transfer& send);
  // Handle a message with a matching receive, and an arrived message.
  absl::Status Match(Transfer& receive, const EarlyPtr& early);
  absl::Status Arrive(const EarlyPtr& early);
  // `bytes`: its own, if they have come with it.
  absl::Status ArriveEager(Peer& peer, int tag, uint64_t size,
                           std::optional<absl::Span<const std::byte>> bytes);
  absl::Status CheckSize(const Transfer& receive, int source, int tag, uint64_t size) const;
  absl::Status Handle(Peer& peer, const Note& note, absl::Span<const std::byte> joined);
  // Each does one kind of work. SendMore returns whether there was any.
  absl::Status Hear(Peer& peer);
  absl::Status HearJoined(Peer& peer);
  absl::Status HearMessage(Peer& peer, absl::Span<const std::byte> message);
  void EndReceived(Peer& peer);
  void EndSent(Peer& peer);
  bool SendMore(Peer& peer);
  static void Queue(Peer& peer, const Note& note, Transfer* send = nullptr);
  void Say(Peer& peer, const Note& note);
  Sent& SendBytes(Peer& peer, Transfer& of, size_t bytes);
  void Await(Peer& peer, std::byte* to, Awaited awaited);
  void AwaitNote(Peer& peer);
  // Tells the peer of the memory of a receive, unless it knows.
  static void TellMemory(Peer& peer, const collectives::RegisteredMemory& memory);
  static void HearMemory(Peer& peer, const Note& note);
  // Returns whether the send must be announced.
  static bool IsAnnounced(const Peer& peer, const Transfer& send);
  // Begins to send what the peer has requested. False: to memory that it has not told of.
  static bool Stream(Peer& peer, Transfer& send, const Note& pull);
  // Copies bytes to the start of a receive's memory.
  void Fill(const Transfer& receive, absl::Span<const std::byte> bytes);
  void GiveBackRoom(Peer& peer, uint64_t size);
  void CountReceived(Transfer& receive, size_t bytes);
  void Remove(Transfer& transfer);
  void Done(Transfer& transfer) {
    Remove(transfer);
    options_.done(transfer);
  }

  collectives::Messenger& messenger_;
  const Options options_;
  absl::Status error_;
  uint64_t next_number_ = 0;
  Transfer* oldest_ = nullptr;
  Transfer* newest_ = nullptr;
  MatchQueue<Transfer*, EarlyPtr> matches_;
  std::vector<std::unique_ptr<Peer>> by_rank_;
  std::vector<Peer*> peers_;  // of by_rank_, in the order of their first use
  size_t own_eager_ = 0;      // cost of buffered messages of this rank to itself
};

}  // namespace railhead::transfers

#endif  // RAILHEAD_RUNTIME_TRANSFERS_ENGINE_H_
