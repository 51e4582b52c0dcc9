// SPDX-License-Identifier: Apache-2.0
//
// Messages between ranks that share memory, for collectives whose ranks get different data (group.h
// is for common data).
//
// Each ordered pair of ranks has a box: a few slots that the sender fills and the receiver empties,
// in order; a message passes in pieces. A filled slot contains its number, and the receiver counts
// what it has emptied, so nothing is locked. Small pieces follow the slot's header fields, so the
// smallest are in the same cache line. An idle rank spins for a time and then sleeps on its
// bell, which ranks ring when they fill or empty a slot of its boxes: on a futex if it waits for
// nothing else (Progress), or on a socket, so that a wait for rails also covers boxes (Companion).
#ifndef RAILHEAD_RUNTIME_SHM_MAILBOX_H_
#define RAILHEAD_RUNTIME_SHM_MAILBOX_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/companion.h"
#include "runtime/base/slot_queue.h"
#include "runtime/collectives/call.h"
#include "runtime/collectives/messenger.h"
#include "runtime/net/fd.h"
#include "runtime/shm/patience.h"
#include "runtime/shm/spread.h"

namespace railhead::shm {

// One rank's view. Use from one thread at a time, except where stated.
class Mailbox final : public collectives::Messenger, public Companion {
 public:
  // Returns the bytes of memory of all boxes, zero before the first rank starts.
  static size_t Bytes(int ranks);

  // `memory` is the same memory for all ranks (at any address), page aligned, and must outlive
  // this. `names`: numbers of these ranks in messages; this is index `rank`.
  Mailbox(std::byte* memory, int rank, std::vector<int> names);

  // Returns true if another rank has sent a message to rank `rank`, which has no Mailbox yet.
  static bool HasMail(std::byte* memory, size_t rank, size_t ranks);
  // The cores on which the ranks wait, for Spread.
  std::vector<Spread::Core*> Cores() const;
  // Sets the wait policy of Progress; its limit restarts with all traffic.
  void Begin(const Patience& patience);

  void Expect(collectives::Call call) override { call_ = call; }
  Ticket PostSend(int peer, absl::Span<const std::byte> data) override;
  Ticket PostReceive(int peer, const collectives::ReceiveBuffer& buffer) override;
  bool Joins(int /*peer*/) const override { return true; }
  bool SendJoined(int peer, absl::Span<const std::byte> head,
                  absl::Span<const std::byte> rest) override;
  absl::StatusOr<absl::Span<const std::byte>> Arrived(int peer) override;
  void Take(int peer) override;
  bool SendDone(int peer, Ticket ticket) const override;
  bool ReceiveDone(int peer, Ticket ticket) const override;
  // Errors: DeadlineExceeded, Cancelled, or Internal if a message's length differs from the
  // expected.
  absl::Status Progress() override;

  // Companion interface; ignores Begin's policy.
  bool Waits() const override;
  absl::StatusOr<bool> Poll() override;
  int event_fd() const override { return bell_.get(); }
  absl::Status Arm() override;
  void Answer() override;
  uint64_t progress() const override { return given_bytes() + taken_bytes(); }
  // As above, for the messages with one rank.
  uint64_t progress(int peer) const { return peers_[static_cast<size_t>(peer)].moved; }
  std::string DescribeProgress() const override;

  // Bytes sent and received. Thread-safe.
  uint64_t given_bytes() const { return given_.load(std::memory_order_relaxed); }
  uint64_t taken_bytes() const { return taken_.load(std::memory_order_relaxed); }

  // Slots per box, and bytes per slot.
  static constexpr uint32_t kSlots = 4;
  static size_t SlotBytes(size_t ranks);

 private:
  static constexpr size_t kLine = 64;

  // In shared memory; initially zero.
  struct alignas(128) Bell {
    std::atomic<uint32_t> rings{0};     // futex word of its owner
    std::atomic<uint32_t> sleeping{0};  // Sleeping: how the owner sleeps, or is about to
    // Name of its socket in the abstract namespace, which all ranks here share.
    std::array<char, 6> socket{};
    Spread::Core core{0};  // where its owner last waited
  };
  enum Sleeping : uint32_t { kAwake, kOnFutex, kOnSocket };
  struct Box {
    alignas(kLine) std::atomic<uint32_t> emptied{0};  // total slots, by the receiver
  };
  // Precedes a slot's bytes. Slots are numbered from 1, modulo 2^32.
  struct alignas(kLine) SlotHeader {
    std::atomic<uint32_t> filled{0};  // number of the slot, when the sender has filled it
    uint32_t size = 0;                // bytes in this slot
    uint64_t message = 0;             // bytes of the whole message
    uint64_t call = 0;                // call of the message
    // Small pieces begin here, and go on behind the header.
    std::array<std::byte, 40> small{};
  };
  static_assert(sizeof(SlotHeader) == kLine);
  // Larger ones begin behind it: reductions like vectors that do not cross cache lines.
  static constexpr size_t kMostSmall = 1024;

  struct Outgoing {
    absl::Span<const std::byte> data;
    collectives::Call call;
    size_t sent = 0;
  };
  struct Incoming {
    collectives::ReceiveBuffer buffer;
    collectives::Call call;
    size_t received = 0;
  };
  struct Peer {
    SlotQueue<Outgoing> sends;
    SlotQueue<Incoming> receives;
    uint32_t filled = 0;        // slots of the box to it
    uint32_t seen_emptied = 0;  // of those, when this rank last had to know
    uint32_t emptied = 0;       // slots of the box from it
    uint64_t moved = 0;         // bytes sent to it and received from it
    bool asked = false;         // for messages where they lie (Arrived)
  };

  static size_t BoxBytes(size_t ranks);
  Bell& BellOf(size_t rank) const;
  static Box& BoxIn(std::byte* memory, size_t ranks, size_t number, size_t box_bytes);
  static SlotHeader& SlotOf(Box& box, uint32_t number, size_t slot_bytes);
  Box& BoxBetween(size_t from, size_t to) const {
    return BoxIn(memory_, ranks_, from * ranks_ + to, box_bytes_);
  }
  SlotHeader& Slot(Box& box, uint32_t number) const { return SlotOf(box, number, slot_bytes_); }
  static std::byte* BytesOf(SlotHeader& slot, size_t size);
  // Describes the next piece of `size` bytes in its slot, which is not filled yet.
  SlotHeader& NextSlot(Peer& to, Box& box, size_t size, size_t message,
                       collectives::Call call) const;
  // Makes this core the owner of the slot's cache lines but the first, for a piece of that size.
  static void FetchToWrite(SlotHeader& slot, size_t size);
  bool HasRoom(Peer& to, const Box& box) const;

  void CountGiven(Peer& to, uint64_t bytes) {
    to.moved += bytes;
    // This thread alone writes it.
    given_.store(given_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  void CountTaken(Peer& of, uint64_t bytes) {
    of.moved += bytes;
    taken_.store(taken_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  bool Fill(size_t peer);
  absl::Status Empty(size_t peer, bool& moved);
  // The next slot from that rank, or null while it is not filled.
  SlotHeader* Filled(size_t peer) const {
    const uint32_t next = peers_[peer].emptied + 1;
    SlotHeader& slot = Slot(BoxBetween(peer, rank_), next);
    return slot.filled.load(std::memory_order_acquire) == next ? &slot : nullptr;
  }
  // Why a message is not one of the call that this rank is in.
  absl::Status OtherCall(size_t peer, collectives::Call theirs, collectives::Call own) const;
  void Ring(size_t peer);
  // Opens the socket on which this rank sleeps, and from which it wakes others, unless it is open.
  absl::Status OpenBell();
  absl::Status Late() const;

  std::byte* const memory_;
  const size_t rank_;
  const std::vector<int> names_;
  const size_t ranks_;
  const size_t slot_bytes_;
  const size_t box_bytes_;
  net::Fd bell_;
  std::vector<Peer> peers_;
  Patience patience_;
  collectives::Call call_;
  bool moved_ = true;  // since `last_moved_`, at a time that was not asked for
  absl::Time last_moved_ = absl::InfinitePast();
  std::atomic<uint64_t> given_{0};
  std::atomic<uint64_t> taken_{0};
};

}  // namespace railhead::shm

#endif  // RAILHEAD_RUNTIME_SHM_MAILBOX_H_
