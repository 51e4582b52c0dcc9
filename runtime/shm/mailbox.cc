// SPDX-License-Identifier: Apache-2.0
#include "runtime/shm/mailbox.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/now.h"
#include "runtime/base/round_up.h"
#include "runtime/net/socket.h"
#include "runtime/reduce/reduce.h"
#include "runtime/shm/futex.h"
#include "runtime/shm/limits.h"
#include "runtime/shm/stores.h"

namespace railhead::shm {
namespace {

// Limit of all slots together, and limits of each, which take precedence.
constexpr size_t kAllSlots = size_t{8} << 20U;
constexpr size_t kLeastSlot = size_t{1} << 10U;
constexpr size_t kLargestSlot = size_t{64} << 10U;
// A rank that sleeps is woken before more is copied, if that takes as long as waking.
constexpr size_t kRungAtOnce = size_t{8} << 10U;

}  // namespace

size_t Mailbox::SlotBytes(size_t ranks) {
  return std::clamp(std::bit_floor(kAllSlots / (ranks * ranks * kSlots)), kLeastSlot, kLargestSlot);
}

size_t Mailbox::BoxBytes(size_t ranks) {
  return sizeof(Box) + kSlots * (sizeof(SlotHeader) + SlotBytes(ranks));
}

size_t Mailbox::Bytes(int ranks) {
  const auto count = static_cast<size_t>(ranks);
  return RoundUp(count * sizeof(Bell) + count * count * BoxBytes(count), kPage);
}

Mailbox::Mailbox(std::byte* memory, int rank, std::vector<int> names)
    : memory_(memory),
      rank_(static_cast<size_t>(rank)),
      names_(std::move(names)),
      ranks_(names_.size()),
      slot_bytes_(SlotBytes(ranks_)),
      box_bytes_(BoxBytes(ranks_)),
      peers_(ranks_) {}

// Memory of zeros is a bell, a box or a header at its beginning.
Mailbox::Bell& Mailbox::BellOf(size_t rank) const {
  return *std::launder(reinterpret_cast<Bell*>(memory_ + rank * sizeof(Bell)));
}

Mailbox::Box& Mailbox::BoxIn(std::byte* memory, size_t ranks, size_t number, size_t box_bytes) {
  return *std::launder(reinterpret_cast<Box*>(memory + ranks * sizeof(Bell) + number * box_bytes));
}

Mailbox::SlotHeader& Mailbox::SlotOf(Box& box, uint32_t number, size_t slot_bytes) {
  std::byte* const slots = reinterpret_cast<std::byte*>(&box) + sizeof(Box);
  return *std::launder(
      reinterpret_cast<SlotHeader*>(slots + number % kSlots * (sizeof(SlotHeader) + slot_bytes)));
}

bool Mailbox::HasMail(std::byte* memory, size_t rank, size_t ranks) {
  const size_t box_bytes = BoxBytes(ranks);
  for (size_t from = 0; from < ranks; ++from) {
    Box& box = BoxIn(memory, ranks, from * ranks + rank, box_bytes);
    if (SlotOf(box, 1, SlotBytes(ranks)).filled.load(std::memory_order_acquire) != 0) return true;
  }
  return false;
}

std::byte* Mailbox::BytesOf(SlotHeader& slot, size_t size) {
  auto* const header = reinterpret_cast<std::byte*>(&slot);
  return header + (size <= kMostSmall ? offsetof(SlotHeader, small) : sizeof(SlotHeader));
}

// Reads the receiver's word only if the box was full at the last look: it is mostly in the cache of
// the receiver's core.
bool Mailbox::HasRoom(Peer& to, const Box& box) const {
  if (to.filled - to.seen_emptied < kSlots) return true;
  to.seen_emptied = box.emptied.load(std::memory_order_acquire);
  return to.filled - to.seen_emptied < kSlots;
}

absl::Status Mailbox::OpenBell() {
  if (bell_.valid()) return absl::OkStatus();
  net::Fd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return net::ErrnoError("socket", errno);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // Bound to nothing, it gets a name that no other socket has.
  socklen_t size = sizeof(address.sun_family);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    return net::ErrnoError("cannot bind a Unix socket", errno);
  }
  size = sizeof(address);
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return net::ErrnoError("getsockname", errno);
  }
  Bell& bell = BellOf(rank_);
  if (size != offsetof(sockaddr_un, sun_path) + bell.socket.size()) {
    return absl::InternalError("the name of a Unix socket is not one that the kernel chooses");
  }
  std::memcpy(bell.socket.data(), address.sun_path, bell.socket.size());
  bell_ = std::move(fd);
  return absl::OkStatus();
}

std::vector<Spread::Core*> Mailbox::Cores() const {
  std::vector<Spread::Core*> cores;
  cores.reserve(ranks_);
  for (size_t rank = 0; rank < ranks_; ++rank) cores.push_back(&BellOf(rank).core);
  return cores;
}

void Mailbox::Begin(const Patience& patience) {
  patience_ = patience;
  moved_ = true;
}

Mailbox::Ticket Mailbox::PostSend(int peer, absl::Span<const std::byte> data) {
  SlotQueue<Outgoing>& sends = peers_[static_cast<size_t>(peer)].sends;
  const uint64_t number = sends.Push();
  sends[number] = {data, call_, 0};
  return number;
}

bool Mailbox::SendJoined(int peer, absl::Span<const std::byte> head,
                         absl::Span<const std::byte> rest) {
  Peer& to = peers_[static_cast<size_t>(peer)];
  Box& box = BoxBetween(rank_, static_cast<size_t>(peer));
  const size_t size = head.size() + rest.size();
  if (!to.sends.empty() || size > slot_bytes_ || !HasRoom(to, box)) return false;
  SlotHeader& slot = NextSlot(to, box, size, size, call_);
  std::byte* const bytes = BytesOf(slot, size);
  std::memcpy(bytes, head.data(), head.size());
  if (!rest.empty()) std::memcpy(bytes + head.size(), rest.data(), rest.size());
  slot.filled.store(to.filled, std::memory_order_release);
  Ring(static_cast<size_t>(peer));
  CountGiven(to, size);
  // The receiver had read the next slot last; a message of this size is likely to follow.
  FetchToWrite(Slot(box, to.filled + 1), size);
  return true;
}

Mailbox::SlotHeader& Mailbox::NextSlot(Peer& to, Box& box, size_t size, size_t message,
                                       collectives::Call call) const {
  SlotHeader& slot = Slot(box, ++to.filled);
  slot.size = static_cast<uint32_t>(size);
  slot.message = message;
  slot.call = call.word();
  return slot;
}

absl::StatusOr<absl::Span<const std::byte>> Mailbox::Arrived(int peer) {
  const auto index = static_cast<size_t>(peer);
  Peer& of = peers_[index];
  of.asked = true;
  if (!of.receives.empty()) return absl::Span<const std::byte>();
  SlotHeader* const slot = Filled(index);
  if (slot == nullptr) return absl::Span<const std::byte>();
  if (const collectives::Call theirs(slot->call); theirs != call_) {
    return OtherCall(index, theirs, call_);
  }
  const size_t size = slot->size;
  if (slot->message != size || size > slot_bytes_) {
    return absl::InternalError(absl::StrCat("a message of ", slot->message, " bytes from rank ",
                                            names_[index], " was refused: a small one is due"));
  }
  return absl::MakeConstSpan(BytesOf(*slot, size), size);
}

void Mailbox::Take(int peer) {
  const auto index = static_cast<size_t>(peer);
  Peer& of = peers_[index];
  Box& box = BoxBetween(index, rank_);
  CountTaken(of, Slot(box, ++of.emptied).size);
  box.emptied.store(of.emptied, std::memory_order_release);
  Ring(index);
}

absl::Status Mailbox::OtherCall(size_t peer, collectives::Call theirs,
                                collectives::Call own) const {
  return absl::InternalError(
      collectives::Contradiction(absl::StrCat("rank ", names_[peer]), theirs, own));
}

void Mailbox::FetchToWrite(SlotHeader& slot, size_t size) {
  const std::byte* const end = BytesOf(slot, size) + size;
  for (const auto* line = reinterpret_cast<std::byte*>(&slot) + kLine; line < end; line += kLine) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*line));
#else
    __builtin_prefetch(line, 1);
#endif
  }
}

Mailbox::Ticket Mailbox::PostReceive(int peer, const collectives::ReceiveBuffer& buffer) {
  SlotQueue<Incoming>& receives = peers_[static_cast<size_t>(peer)].receives;
  const uint64_t number = receives.Push();
  receives[number] = {buffer, call_, 0};
  return number;
}

bool Mailbox::SendDone(int peer, Ticket ticket) const {
  return ticket < peers_[static_cast<size_t>(peer)].sends.begin();
}

bool Mailbox::ReceiveDone(int peer, Ticket ticket) const {
  return ticket < peers_[static_cast<size_t>(peer)].receives.begin();
}

absl::Status Mailbox::Progress() {
  // Some looks; true if something has moved, or is wrong.
  absl::Status wrong;
  const auto look = [&] {
    for (int i = 0; i < patience_.LooksAtOnce(); ++i) {
      const absl::StatusOr<bool> moved = Poll();
      wrong = moved.status();
      moved_ = moved_ || moved.value_or(false);
      if (!moved.ok() || *moved) return true;
      patience_.BetweenLooks();
    }
    return false;
  };
  // Most messages arrive within the time of a clock read.
  if (look()) return wrong;
  const absl::Time start = MonotonicNow();
  if (std::exchange(moved_, false)) last_moved_ = start;
  absl::Time now = start;
  do {
    if (look()) return wrong;
    now = MonotonicNow();
    patience_.AfterLooks(absl::ToInt64Nanoseconds(now - start));
  } while (now - start < patience_.look);

  Bell& bell = BellOf(rank_);
  while (true) {
    const uint32_t rings = bell.rings.load(std::memory_order_acquire);
    // Sequentially consistent with a peer's update and check: one of the two sees the other.
    bell.sleeping.store(kOnFutex, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const absl::StatusOr<bool> moved = Poll();
    absl::Status polled = moved.status();
    now = MonotonicNow();
    if (polled.ok() && !*moved) {
      const absl::StatusOr<bool> anew =
          patience_.Check(now - last_moved_, [this] { return Late(); });
      polled = anew.status();
      if (anew.ok()) {
        if (*anew) last_moved_ = MonotonicNow();
        FutexWait(bell.rings, rings, kLongestSleep);
        continue;
      }
      // It may have arrived during the query of all ranks.
      const absl::StatusOr<bool> meanwhile = Poll();
      if (meanwhile.value_or(false)) polled = absl::OkStatus();
    }
    bell.sleeping.store(kAwake, std::memory_order_relaxed);
    moved_ = true;
    return polled;
  }
}

bool Mailbox::Waits() const {
  return std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
    return !peer.sends.empty() || !peer.receives.empty() || peer.asked;
  });
}

absl::StatusOr<bool> Mailbox::Poll() {
  bool moved = false;
  for (size_t peer = 0; peer < ranks_; ++peer) {
    if (!peers_[peer].sends.empty()) moved = Fill(peer) || moved;
    if (peers_[peer].receives.empty()) {
      moved = moved || (peers_[peer].asked && Filled(peer) != nullptr);
      continue;
    }
    if (absl::Status status = Empty(peer, moved); !status.ok()) return status;
  }
  return moved;
}

absl::Status Mailbox::Arm() {
  if (absl::Status opened = OpenBell(); !opened.ok()) return opened;
  // A peer that sees this sees the socket's name.
  BellOf(rank_).sleeping.store(kOnSocket, std::memory_order_release);
  // Sequentially consistent with a peer's update and check: one of the two sees the other.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return absl::OkStatus();
}

void Mailbox::Answer() {
  char byte = 0;
  while (recv(bell_.get(), &byte, sizeof(byte), 0) >= 0) continue;
}

bool Mailbox::Fill(size_t peer) {
  Peer& to = peers_[peer];
  SlotQueue<Outgoing>& sends = to.sends;
  Box& box = BoxBetween(rank_, peer);
  uint64_t given = 0;
  bool filled = false;
  while (!sends.empty() && HasRoom(to, box)) {
    Outgoing& out = sends[sends.begin()];
    const size_t size = std::min(slot_bytes_, out.data.size() - out.sent);
    SlotHeader& slot = NextSlot(to, box, size, out.data.size(), out.call);
    reduce::Copy(out.data.data() + out.sent, BytesOf(slot, size), size, reduce::Stores::kNormal);
    slot.filled.store(to.filled, std::memory_order_release);
    filled = true;
    if (size >= kRungAtOnce) Ring(peer);
    given += size;
    out.sent += size;
    if (out.sent == out.data.size()) sends.Pop();
  }
  // Once for small pieces: it costs as much as they do.
  if (filled) Ring(peer);
  CountGiven(to, given);
  return filled;
}

absl::Status Mailbox::Empty(size_t peer, bool& moved) {
  Peer& of = peers_[peer];
  SlotQueue<Incoming>& receives = of.receives;
  Box& box = BoxBetween(peer, rank_);
  uint64_t taken = 0;
  bool emptied = false;
  while (!receives.empty()) {
    SlotHeader* const slot = Filled(peer);
    if (slot == nullptr) break;
    Incoming& in = receives[receives.begin()];
    const collectives::ReceiveBuffer& buffer = in.buffer;
    if (const collectives::Call theirs(slot->call); theirs != in.call) {
      return OtherCall(peer, theirs, in.call);
    }
    const uint64_t message = slot->message;
    const size_t size = slot->size;
    if (message != buffer.size || size > buffer.size - in.received) {
      return absl::InternalError(absl::StrCat("a message of ", message, " bytes from rank ",
                                              names_[peer], " was refused: it has ", buffer.size,
                                              " bytes here; pass the same count on all ranks"));
    }
    const std::byte* const from = BytesOf(*slot, size);
    std::byte* const to = buffer.data + in.received;
    if (buffer.reduction != nullptr) {
      reduce::Reduce(*buffer.reduction, {buffer.operand + in.received, from}, to,
                     size / reduce::SizeOf(buffer.reduction->type), reduce::Stores::kNormal);
    } else if (size <= kMostSmall) {
      std::memcpy(to, from, size);
    } else {
      reduce::Copy(from, to, size, StoresFor(2 * ranks_ * buffer.size));
    }
    in.received += size;
    taken += size;
    box.emptied.store(++of.emptied, std::memory_order_release);
    emptied = true;
    if (size >= kRungAtOnce) Ring(peer);
    if (in.received >= message) receives.Pop();
    moved = true;
  }
  if (emptied) Ring(peer);
  CountTaken(of, taken);
  return absl::OkStatus();
}

void Mailbox::Ring(size_t peer) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  Bell& bell = BellOf(peer);
  switch (bell.sleeping.load(std::memory_order_relaxed)) {
    case kOnFutex:
      bell.rings.fetch_add(1, std::memory_order_release);
      FutexWakeAll(bell.rings);
      return;
    case kOnSocket: {
      // Otherwise it looks again after a while.
      if (!OpenBell().ok()) return;
      // One ring wakes it.
      if (bell.sleeping.exchange(kAwake, std::memory_order_acquire) != kOnSocket) return;
      sockaddr_un address = {};
      address.sun_family = AF_UNIX;
      std::memcpy(address.sun_path, bell.socket.data(), bell.socket.size());
      // If its buffer has no room, the peer is being woken already.
      sendto(bell_.get(), "", 1, MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
             offsetof(sockaddr_un, sun_path) + bell.socket.size());
      return;
    }
    default:
      return;
  }
}

std::string Mailbox::DescribeProgress() const {
  std::string text;
  for (size_t rank = 0; rank < ranks_; ++rank) {
    const Peer& peer = peers_[rank];
    if (!peer.sends.empty()) {
      const Outgoing& out = peer.sends[peer.sends.begin()];
      absl::StrAppend(&text, text.empty() ? "" : "; ", "rank ", names_[rank], " has taken ",
                      out.sent, " of ", out.data.size(), " bytes of message ", peer.sends.begin());
    }
    if (!peer.receives.empty()) {
      const Incoming& in = peer.receives[peer.receives.begin()];
      absl::StrAppend(&text, text.empty() ? "" : "; ", "rank ", names_[rank], " has given ",
                      in.received, " of ", in.buffer.size, " bytes of message ",
                      peer.receives.begin());
    }
  }
  return absl::StrCat("in shared memory: ", text);
}

absl::Status Mailbox::Late() const {
  return absl::DeadlineExceededError(absl::StrCat(
      "nothing has moved for ", absl::FormatDuration(patience_.limit), " ", DescribeProgress()));
}

}  // namespace railhead::shm
