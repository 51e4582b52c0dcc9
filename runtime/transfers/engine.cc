// SPDX-License-Identifier: Apache-2.0
#include "runtime/transfers/engine.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "runtime/base/line_copy.h"

namespace railhead::transfers {
namespace {

// Pieces of large transfers of a peer that the messenger has at once.
constexpr size_t kMostPieces = 2;
// Sends of at most this size are not announced to a peer with memory of a device: a copy by the NIC
// (RegisteredMemory::Write) takes less time than the announcement.
constexpr size_t kMostEagerToDevice = size_t{16} << 10;
// Pieces of registered memory that a sender remembers of a peer, and the peer of itself that it has
// told of: the last ones, in the order of their notes.
constexpr size_t kMostMemory = 1024;

}  // namespace

Engine::Peer& Engine::Add(int rank) {
  const auto index = static_cast<size_t>(rank);
  if (index >= by_rank_.size()) by_rank_.resize(index + 1);
  std::unique_ptr<Peer>& peer = by_rank_[index];
  peer = std::make_unique<Peer>();
  peer->rank = rank;
  peer->joins = messenger_.Joins(rank);
  peers_.push_back(peer.get());
  return *peer;
}

void Engine::Begin(Peer& peer) {
  peer.listens = true;
  if (!peer.joins) AwaitNote(peer);
  if (options_.greets != nullptr && options_.greets(peer.rank)) Queue(peer, Note{});
}

void Engine::Listen(int rank) {
  if (rank != options_.rank) To(rank);
}

bool Engine::Post(Transfer& transfer) {
  Transfer::Going& going = transfer.going;
  if (transfer.direction == Direction::kSend) {
    going.size = transfer.size;
    transfer.outcome = {transfer.peer, transfer.tag, transfer.size};
    if (SendAtOnce(transfer)) {
      options_.done(transfer);
      return true;
    }
  }
  going.number = next_number_++;
  going.previous = newest_;
  (newest_ != nullptr ? newest_->going.next : oldest_) = &transfer;
  newest_ = &transfer;
  if (transfer.direction == Direction::kSend) {
    PostSend(transfer);
    return false;
  }
  const absl::StatusOr<bool> matched = PostReceive(transfer);
  error_.Update(matched.status());
  return matched.ok() && !*matched;
}

void Engine::Remove(Transfer& transfer) {
  Transfer::Going& going = transfer.going;
  (going.previous != nullptr ? going.previous->going.next : oldest_) = going.next;
  (going.next != nullptr ? going.next->going.previous : newest_) = going.previous;
  going.previous = nullptr;
  going.next = nullptr;
}

std::vector<Transfer*> Engine::TakeUnfinished() {
  std::vector<Transfer*> unfinished;
  while (oldest_ != nullptr) {
    unfinished.push_back(oldest_);
    Remove(*oldest_);
  }
  return unfinished;
}

void Engine::Queue(Peer& peer, const Note& note, Transfer* send) {
  peer.queued[peer.queued.Push()] = {note, send};
}

Note Engine::EagerNote(const Transfer& send) {
  Note note;
  note.kind = Note::Kind::kEager;
  note.tag = send.tag;
  note.size = send.size;
  if (!note.IsFollowed() && send.size > 0) {
    std::memcpy(note.inlined.data(), send.data, send.size);
  }
  return note;
}

bool Engine::SendAtOnce(const Transfer& send) {
  if (send.size > kMostJoined || send.peer == options_.rank) return false;
  if (send.registered != nullptr && send.registered->on_device()) return false;
  Peer& peer = To(send.peer);
  const size_t cost = EagerCost(send.size);
  if (!peer.joins || !peer.queued.empty() || cost > kEagerRoom - peer.eager) return false;
  const NoteBytes note = EncodeEager(send.tag, send.size, send.data);
  absl::Span<const std::byte> rest;
  if (send.size > Note::kMostInlined) rest = {send.data, send.size};
  if (!messenger_.SendJoined(peer.rank, note, rest)) return false;
  peer.eager += cost;
  return true;
}

bool Engine::IsAnnounced(const Peer& peer, const Transfer& send) {
  if (send.size > (peer.joins ? kMostEagerInMemory : kMostEager) ||
      EagerCost(send.size) > kEagerRoom - peer.eager) {
    return true;
  }
  if (send.registered == nullptr || send.size == 0) return false;
  return send.registered->on_device() || (peer.has_device && send.size > kMostEagerToDevice);
}

void Engine::PostSend(Transfer& send) {
  if (send.peer == options_.rank) {
    SendToSelf(send);
    return;
  }
  Peer& peer = To(send.peer);
  const size_t cost = EagerCost(send.size);
  if (IsAnnounced(peer, send)) {
    Note note;
    note.kind = Note::Kind::kAnnounce;
    note.tag = send.tag;
    note.size = send.size;
    note.id = peer.next_id++;
    peer.announced.emplace(note.id, &send);
    Queue(peer, note);
    return;
  }
  peer.eager += cost;
  const Note note = EagerNote(send);
  Queue(peer, note, note.IsFollowed() ? &send : nullptr);
  SendMore(peer);
  // Its memory is no longer used.
  if (!note.IsFollowed()) Done(send);
}

void Engine::SendToSelf(Transfer& send) {
  auto early = std::make_shared<Early>();
  early->source = options_.rank;
  early->tag = send.tag;
  early->size = send.size;
  // A message to this rank itself: small ones are buffered here, as the network does for others,
  // and as many.
  const size_t cost = EagerCost(send.size);
  if (send.size <= kMostEagerInMemory && cost <= kEagerRoom - own_eager_) {
    own_eager_ += cost;
    early->eager = true;
    early->bytes.assign(send.data, send.data + send.size);
    early->complete = true;
    Done(send);
  } else {
    early->own = &send;
  }
  error_.Update(Arrive(early));
}

absl::StatusOr<bool> Engine::PostReceive(Transfer& receive) {
  if (receive.peer != kAny) Listen(receive.peer);
  if (receive.registered != nullptr && receive.peer != kAny && receive.peer != options_.rank) {
    TellMemory(To(receive.peer), *receive.registered);
  }
  const std::optional<EarlyPtr> early = matches_.Post(receive.peer, receive.tag, &receive);
  if (!early.has_value()) return false;
  if (absl::Status status = Match(receive, *early); !status.ok()) return status;
  return true;
}

absl::Status Engine::Arrive(const EarlyPtr& early) {
  const std::optional<Transfer*> receive = matches_.Arrive(early->source, early->tag, early);
  return receive.has_value() ? Match(**receive, early) : absl::OkStatus();
}

absl::Status Engine::CheckSize(const Transfer& receive, int source, int tag, uint64_t size) const {
  if (size <= receive.size) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(options_.name(source), " sends ", size, " bytes with tag ", tag, " to ",
                   options_.name(options_.rank), ", whose receive has room for only ", receive.size,
                   "; pass the same count on both ranks"));
}

absl::Status Engine::Match(Transfer& receive, const EarlyPtr& early) {
  absl::Status fits = CheckSize(receive, early->source, early->tag, early->size);
  if (!fits.ok()) return fits;
  receive.going.size = early->size;
  receive.outcome = {early->source, early->tag, early->size};
  if (early->eager) {
    if (early->source == options_.rank) {
      own_eager_ -= EagerCost(early->size);
    } else {
      GiveBackRoom(To(early->source), early->size);
    }
    if (!early->complete) {
      early->receive = &receive;
      return absl::OkStatus();
    }
    Fill(receive, early->bytes);
    Done(receive);
    return absl::OkStatus();
  }
  if (early->own != nullptr) {
    std::memmove(receive.data, early->own->data, early->size);
    Done(*early->own);
    Done(receive);
    return absl::OkStatus();
  }
  Peer& peer = To(early->source);
  Note pull;
  pull.kind = Note::Kind::kPull;
  pull.id = early->id;
  if (receive.registered != nullptr && !receive.registered->remote().keys.empty()) {
    TellMemory(peer, *receive.registered);
    pull.size = receive.registered->number();
    pull.offset = reinterpret_cast<uintptr_t>(receive.data) - receive.registered->remote().address;
  }
  Queue(peer, pull);
  if (early->size == 0) {
    Done(receive);
  } else {
    peer.pulled.emplace(early->id, &receive);
  }
  return absl::OkStatus();
}

void Engine::TellMemory(Peer& peer, const collectives::RegisteredMemory& memory) {
  const collectives::RemoteMemory& remote = memory.remote();
  if (remote.keys.empty() || !peer.told.insert(memory.number()).second) return;
  peer.told_order.push_back(memory.number());
  if (peer.told_order.size() > kMostMemory) {
    peer.told.erase(peer.told_order.front());
    peer.told_order.pop_front();
  }
  for (size_t rail = 0; rail < remote.keys.size(); rail += Note::kKeys) {
    Note note;
    note.kind = Note::Kind::kMemory;
    note.tag = Note::MemoryTag(rail, memory.on_device());
    note.id = memory.number();
    note.offset = remote.address;
    for (size_t i = 0; i < Note::kKeys && rail + i < remote.keys.size(); ++i) {
      note.size |= uint64_t{remote.keys[rail + i]} << (32 * i);
    }
    Queue(peer, note);
  }
}

void Engine::HearMemory(Peer& peer, const Note& note) {
  if (peer.memory.count(note.id) == 0) peer.memory_order.push_back(note.id);
  if (peer.memory_order.size() > kMostMemory) {
    peer.memory.erase(peer.memory_order.front());
    peer.memory_order.pop_front();
  }
  collectives::RemoteMemory& memory = peer.memory[note.id];
  memory.address = note.offset;
  for (size_t i = 0; i < Note::kKeys; ++i) {
    const auto key = static_cast<uint32_t>(note.size >> (32 * i));
    const size_t rail = note.FirstRail() + i;
    // No registration has key 0: there is no such rail.
    if (key == 0) continue;
    if (memory.keys.size() <= rail) memory.keys.resize(rail + 1);
    memory.keys[rail] = key;
  }
  peer.has_device = peer.has_device || note.IsOnDevice();
}

bool Engine::Stream(Peer& peer, Transfer& send, const Note& pull) {
  Peer::Pulled pulled;
  pulled.id = pull.id;
  if (pull.size != 0) {
    const auto memory = peer.memory.find(pull.size);
    if (memory == peer.memory.end()) return false;
    pulled.to = memory->second;
    pulled.to.address += pull.offset;
  }
  peer.ids.emplace(&send, std::move(pulled));
  peer.streams.push_back(&send);
  return true;
}

void Engine::Fill(const Transfer& receive, absl::Span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (receive.registered != nullptr && receive.registered->on_device()) {
    error_.Update(receive.registered->Write(receive.data, bytes));
  } else {
    LineCopy(receive.data, bytes.data(), bytes.size());
  }
}

void Engine::GiveBackRoom(Peer& peer, uint64_t size) {
  peer.taken += EagerCost(size);
  // Returns room in batches, long before the sender has to wait for it.
  if (peer.taken < kEagerRoom / 4) return;
  Note note;
  note.kind = Note::Kind::kTaken;
  note.size = std::exchange(peer.taken, 0);
  Queue(peer, note);
}

absl::Status Engine::Advance() {
  if (!error_.ok()) return error_;
  // No peer's progress makes work for those before it. A peer may be added during the loop.
  for (size_t i = 0; i < peers_.size(); ++i) {
    Peer& peer = *peers_[i];
    if (peer.listens) {
      if (absl::Status heard = peer.joins ? HearJoined(peer) : Hear(peer); !heard.ok()) {
        return error_ = std::move(heard);
      }
    }
    if (!peer.awaited.empty()) EndReceived(peer);
    do {
      if (!peer.sent.empty()) EndSent(peer);
    } while (SendMore(peer));
  }
  return absl::OkStatus();
}

absl::Status Engine::Hear(Peer& peer) {
  while (messenger_.ReceiveDone(peer.rank, peer.head_ticket)) {
    // The bytes that follow the note are received before the next note.
    if (absl::Status heard = HearMessage(peer, peer.head); !heard.ok()) return heard;
    AwaitNote(peer);
  }
  return absl::OkStatus();
}

absl::Status Engine::HearJoined(Peer& peer) {
  while (true) {
    const absl::StatusOr<absl::Span<const std::byte>> message = messenger_.Arrived(peer.rank);
    if (!message.ok()) return message.status();
    if (message->data() == nullptr) return absl::OkStatus();
    if (absl::Status heard = HearMessage(peer, *message); !heard.ok()) return heard;
    messenger_.Take(peer.rank);
  }
}

absl::Status Engine::HearMessage(Peer& peer, absl::Span<const std::byte> message) {
  peer.heard = true;
  if (const std::optional<WholeTransfer> whole = ParseWhole(message); whole.has_value()) {
    return ArriveEager(peer, whole->tag, whole->bytes.size(), whole->bytes);
  }
  const size_t size = std::min(message.size(), kNoteBytes);
  const absl::StatusOr<Note> note = ParseNote(message.first(size));
  if (note.ok()) return Handle(peer, *note, message.subspan(size));
  return absl::Status(note.status().code(),
                      absl::StrCat(options_.name(peer.rank), ": ", note.status().message()));
}

absl::Status Engine::ArriveEager(Peer& peer, int tag, uint64_t size,
                                 std::optional<absl::Span<const std::byte>> bytes) {
  // Without an Early if nothing has to be kept.
  const std::optional<Transfer*> receive = matches_.TakeReceive(peer.rank, tag);
  if (!receive.has_value()) {
    auto early = std::make_shared<Early>();
    early->source = peer.rank;
    early->tag = tag;
    early->size = size;
    early->eager = true;
    early->complete = bytes.has_value();
    if (bytes.has_value()) {
      early->bytes.assign(bytes->begin(), bytes->end());
    } else {
      early->bytes.resize(size);
      Await(peer, early->bytes.data(), {0, size, nullptr, early});
    }
    matches_.Keep(peer.rank, tag, std::move(early));
    return absl::OkStatus();
  }
  Transfer& to = **receive;
  absl::Status fits = CheckSize(to, peer.rank, tag, size);
  if (!fits.ok()) return fits;
  to.going.size = size;
  to.outcome = {peer.rank, tag, size};
  GiveBackRoom(peer, size);
  if (!bytes.has_value()) {
    Await(peer, to.data, {0, size, &to, nullptr});
    return absl::OkStatus();
  }
  Fill(to, *bytes);
  Done(to);
  return absl::OkStatus();
}

absl::Status Engine::Handle(Peer& peer, const Note& note, absl::Span<const std::byte> joined) {
  const auto wrong = [&](const char* what) {
    return absl::InternalError(absl::StrCat(options_.name(peer.rank), " ", what, " (transfer ",
                                            note.id, ", ", note.size, " bytes from ", note.offset,
                                            ")"));
  };
  if (!joined.empty()) return wrong("sends more or less than it has announced");
  switch (note.kind) {
    case Note::Kind::kHello:
      return absl::OkStatus();
    case Note::Kind::kEager:
      return ArriveEager(peer, note.tag, note.size, std::nullopt);  // its bytes follow
    case Note::Kind::kAnnounce: {
      auto early = std::make_shared<Early>();
      early->source = peer.rank;
      early->tag = note.tag;
      early->size = note.size;
      early->id = note.id;
      return Arrive(early);
    }
    case Note::Kind::kPull: {
      const auto found = peer.announced.find(note.id);
      if (found == peer.announced.end()) return wrong("requests data that this rank does not send");
      Transfer* const send = found->second;
      peer.announced.erase(found);
      if (send->size == 0) {
        Done(*send);
      } else if (!Stream(peer, *send, note)) {
        return wrong("requests data for memory that it has not told of");
      }
      return absl::OkStatus();
    }
    case Note::Kind::kData: {
      const auto found = peer.pulled.find(note.id);
      if (found == peer.pulled.end()) return wrong("sends data that this rank has not requested");
      Transfer* const receive = found->second;
      Transfer::Going& going = receive->going;
      if (note.offset != going.posted || note.size > going.size - going.posted) {
        return wrong("sends a part out of order");
      }
      going.posted += note.size;
      if (going.posted == going.size) peer.pulled.erase(found);
      Await(peer, receive->data + note.offset, {0, note.size, receive, nullptr});
      return absl::OkStatus();
    }
    case Note::Kind::kMemory:
      HearMemory(peer, note);
      return absl::OkStatus();
    case Note::Kind::kTaken:
      if (note.size > peer.eager) return wrong("has consumed more than was sent");
      peer.eager -= note.size;
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

void Engine::AwaitNote(Peer& peer) {
  collectives::ReceiveBuffer buffer;
  buffer.data = peer.head.data();
  buffer.size = peer.head.size();
  peer.head_ticket = messenger_.PostReceive(peer.rank, buffer);
}

void Engine::Await(Peer& peer, std::byte* to, Awaited awaited) {
  collectives::ReceiveBuffer buffer;
  buffer.data = to;
  buffer.size = awaited.bytes;
  if (awaited.receive != nullptr) buffer.registered = awaited.receive->registered;
  awaited.ticket = messenger_.PostReceive(peer.rank, buffer);
  peer.awaited[peer.awaited.Push()] = std::move(awaited);
}

void Engine::EndReceived(Peer& peer) {
  while (!peer.awaited.empty()) {
    Awaited& first = peer.awaited[peer.awaited.begin()];
    if (!messenger_.ReceiveDone(peer.rank, first.ticket)) break;
    const Awaited ended = std::move(first);
    peer.awaited.Pop();
    if (ended.early == nullptr) {
      CountReceived(*ended.receive, ended.bytes);
      continue;
    }
    ended.early->complete = true;
    if (Transfer* const receive = ended.early->receive; receive != nullptr) {
      Fill(*receive, ended.early->bytes);
      Done(*receive);
    }
  }
}

void Engine::CountReceived(Transfer& receive, size_t bytes) {
  receive.going.ended += bytes;
  if (receive.going.ended == receive.going.size) Done(receive);
}

void Engine::EndSent(Peer& peer) {
  while (!peer.sent.empty()) {
    const Sent& first = peer.sent[peer.sent.begin()];
    if (!messenger_.SendDone(peer.rank, first.ticket)) break;
    Transfer* const of = first.of;
    const size_t bytes = first.bytes;
    if (first.piece) --peer.pieces;
    peer.sent.Pop();
    if (of == nullptr) continue;
    of->going.ended += bytes;
    if (of->going.ended == of->going.size) Done(*of);
  }
}

bool Engine::SendMore(Peer& peer) {
  if (peer.queued.empty() && peer.streams.empty()) return false;
  const auto posted = [&peer] { return peer.sent.end() - peer.sent.begin(); };
  bool any = false;
  for (; !peer.queued.empty() && posted() < kMostPosted; any = true) {
    const Queued next = peer.queued[peer.queued.begin()];
    peer.queued.Pop();
    Say(peer, next.note);
    if (next.send != nullptr) SendBytes(peer, *next.send, next.send->going.size);
  }
  while (!peer.streams.empty() && peer.pieces < kMostPieces && posted() < kMostPosted) {
    any = true;
    Transfer& next = *peer.streams.front();
    peer.streams.pop_front();
    Note note;
    note.kind = Note::Kind::kData;
    note.id = peer.ids.find(&next)->second.id;
    note.offset = next.going.posted;
    note.size = std::min(options_.piece, next.going.size - next.going.posted);
    Say(peer, note);
    SendBytes(peer, next, note.size).piece = true;
    ++peer.pieces;
    if (next.going.posted < next.going.size) {
      peer.streams.push_back(&next);
    } else {
      peer.ids.erase(&next);
    }
  }
  return any;
}

void Engine::Say(Peer& peer, const Note& note) {
  Sent& sent = peer.sent[peer.sent.Push()];
  sent = {};
  sent.note = Encode(note);
  sent.ticket = note.IsFollowed() ? messenger_.PostPart(peer.rank, sent.note)
                                  : messenger_.PostSend(peer.rank, sent.note);
}

Engine::Sent& Engine::SendBytes(Peer& peer, Transfer& of, size_t bytes) {
  Sent& sent = peer.sent[peer.sent.Push()];
  sent = {};
  sent.of = &of;
  sent.bytes = bytes;
  const absl::Span<const std::byte> data = {of.data + of.going.posted, bytes};
  const auto pulled = peer.ids.find(&of);
  const bool direct = of.registered != nullptr && pulled != peer.ids.end() &&
                      (of.registered->on_device() || !pulled->second.to.keys.empty());
  if (!direct) {
    sent.ticket = messenger_.PostSend(peer.rank, data);
  } else {
    collectives::RemoteMemory to = pulled->second.to;
    to.address += of.going.posted;
    sent.ticket = messenger_.PostDirect(peer.rank, data, to);
  }
  of.going.posted += bytes;
  return sent;
}

std::vector<int> Engine::UnderWay() const {
  std::vector<int> ranks;
  for (const Peer* const peer : peers_) {
    const bool any = !peer->awaited.empty() || !peer->sent.empty() || !peer->queued.empty() ||
                     !peer->streams.empty() || !peer->pulled.empty();
    if (any) ranks.push_back(peer->rank);
  }
  return ranks;
}

bool Engine::Heard(int peer) const {
  const auto index = static_cast<size_t>(peer);
  return index < by_rank_.size() && by_rank_[index] != nullptr && by_rank_[index]->heard;
}

bool Engine::HasDevice(int peer) const {
  const auto index = static_cast<size_t>(peer);
  return index < by_rank_.size() && by_rank_[index] != nullptr && by_rank_[index]->has_device;
}

bool Engine::Flushed(absl::FunctionRef<bool(int peer)> left) const {
  return std::all_of(peers_.begin(), peers_.end(), [left](const Peer* peer) {
    return (peer->sent.empty() && peer->queued.empty() && peer->streams.empty()) ||
           left(peer->rank);
  });
}

}  // namespace railhead::transfers
