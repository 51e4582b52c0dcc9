// SPDX-License-Identifier: Apache-2.0
#include "runtime/transfers/engine.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace railhead::transfers {
namespace {

// Number of messages of a peer, and of pieces of large transfers, that the messenger has at once:
// enough to keep it busy, and few enough that later messages do not wait long.
constexpr size_t kMostPosted = 32;
constexpr size_t kMostPieces = 2;

}  // namespace

Engine::Peer& Engine::To(int peer) {
  Listen(peer);
  return peers_[peer];
}

void Engine::Listen(int rank) {
  if (rank == options_.rank) return;
  Peer& peer = peers_[rank];
  if (std::exchange(peer.listens, true)) return;
  AwaitNote(rank, peer);
  if (options_.greets != nullptr && options_.greets(rank)) peer.queued.push_back({Note{}, nullptr});
}

void Engine::Post(const std::shared_ptr<Transfer>& transfer) {
  auto going = std::make_shared<Going>();
  going->number = next_number_++;
  going->transfer = transfer;
  unfinished_.emplace(going->number, transfer);
  if (transfer->direction == Direction::kSend) {
    going->size = transfer->size;
    transfer->outcome = {transfer->peer, transfer->tag, transfer->size};
    PostSend(going);
  } else {
    error_.Update(PostReceive(going));
  }
}

void Engine::PostSend(const GoingPtr& send) {
  const Transfer& transfer = *send->transfer;
  if (transfer.peer == options_.rank) {
    SendToSelf(send);
    return;
  }
  Peer& peer = To(transfer.peer);
  Note note;
  note.tag = transfer.tag;
  note.size = transfer.size;
  const size_t cost = EagerCost(transfer.size);
  if (transfer.size <= kMostEager && cost <= kEagerRoom - peer.eager) {
    peer.eager += cost;
    note.kind = Note::Kind::kEager;
    peer.queued.push_back({note, send});
    return;
  }
  note.kind = Note::Kind::kAnnounce;
  note.id = peer.next_id++;
  peer.announced.emplace(note.id, send);
  peer.queued.push_back({note, nullptr});
}

void Engine::SendToSelf(const GoingPtr& send) {
  const Transfer& transfer = *send->transfer;
  auto early = std::make_shared<Early>();
  early->source = options_.rank;
  early->tag = transfer.tag;
  early->size = transfer.size;
  // A message to this rank itself: small ones are buffered here, as the network does for others,
  // and as many.
  const size_t cost = EagerCost(transfer.size);
  if (transfer.size <= kMostEager && cost <= kEagerRoom - own_eager_) {
    own_eager_ += cost;
    early->eager = true;
    early->bytes.assign(transfer.data, transfer.data + transfer.size);
    early->complete = true;
    Done(send);
  } else {
    early->own = send;
  }
  error_.Update(Arrive(early));
}

absl::Status Engine::PostReceive(const GoingPtr& receive) {
  const Transfer& transfer = *receive->transfer;
  if (transfer.peer != kAny) Listen(transfer.peer);
  const std::optional<EarlyPtr> early = matches_.Post(transfer.peer, transfer.tag, receive);
  return early.has_value() ? Match(receive, *early) : absl::OkStatus();
}

absl::Status Engine::Arrive(const EarlyPtr& early) {
  const std::optional<GoingPtr> receive = matches_.Arrive(early->source, early->tag, early);
  return receive.has_value() ? Match(*receive, early) : absl::OkStatus();
}

absl::Status Engine::CheckSize(const GoingPtr& receive, int source, int tag, uint64_t size) const {
  if (size <= receive->transfer->size) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(options_.name(source), " sends ", size, " bytes with tag ", tag, " to ",
                   options_.name(options_.rank), ", whose receive has room for only ",
                   receive->transfer->size, "; pass the same count on both ranks"));
}

absl::Status Engine::Match(const GoingPtr& receive, const EarlyPtr& early) {
  absl::Status fits = CheckSize(receive, early->source, early->tag, early->size);
  if (!fits.ok()) return fits;
  receive->size = early->size;
  receive->transfer->outcome = {early->source, early->tag, early->size};
  if (early->eager) {
    if (early->source == options_.rank) {
      own_eager_ -= EagerCost(early->size);
    } else {
      GiveBackRoom(early->source, early->size);
    }
    if (!early->complete) {
      early->receive = receive;
      return absl::OkStatus();
    }
    if (!early->bytes.empty()) {
      std::memcpy(receive->transfer->data, early->bytes.data(), early->bytes.size());
    }
    Done(receive);
    return absl::OkStatus();
  }
  if (early->own != nullptr) {
    std::memmove(receive->transfer->data, early->own->transfer->data, early->size);
    Done(early->own);
    Done(receive);
    return absl::OkStatus();
  }
  Peer& peer = To(early->source);
  Note pull;
  pull.kind = Note::Kind::kPull;
  pull.id = early->id;
  peer.queued.push_back({pull, nullptr});
  if (early->size == 0) {
    Done(receive);
  } else {
    peer.pulled.emplace(early->id, receive);
  }
  return absl::OkStatus();
}

void Engine::GiveBackRoom(int source, uint64_t size) {
  Peer& peer = To(source);
  peer.taken += EagerCost(size);
  // Returns room in batches, long before the sender has to wait for it.
  if (peer.taken < kEagerRoom / 4) return;
  Note note;
  note.kind = Note::Kind::kTaken;
  note.size = std::exchange(peer.taken, 0);
  peer.queued.push_back({note, nullptr});
}

absl::Status Engine::Advance() {
  bool moved = true;
  while (moved) {
    moved = false;
    for (auto& [rank, peer] : peers_) {
      if (!error_.ok()) return error_;
      const absl::StatusOr<bool> heard = Hear(rank, peer);
      if (!heard.ok()) return error_ = heard.status();
      moved = *heard || moved;
      moved = EndReceived(rank, peer) || moved;
      moved = EndSent(rank, peer) || moved;
      moved = SendMore(rank, peer) || moved;
    }
  }
  return error_;
}

absl::StatusOr<bool> Engine::Hear(int rank, Peer& peer) {
  bool any = false;
  while (peer.listens && messenger_.ReceiveDone(rank, peer.head_ticket)) {
    any = true;
    peer.heard = true;
    const absl::StatusOr<Note> note = ParseNote(peer.heads);
    absl::Status handled = note.status();
    // The bytes that follow the note are received before the next note.
    if (note.ok()) handled = Handle(rank, peer, *note);
    if (!handled.ok()) {
      return absl::Status(handled.code(),
                          note.ok() ? std::string(handled.message())
                                    : absl::StrCat(options_.name(rank), ": ", handled.message()));
    }
    AwaitNote(rank, peer);
  }
  return any;
}

absl::Status Engine::Handle(int rank, Peer& peer, const Note& note) {
  const auto wrong = [&](const char* what) {
    return absl::InternalError(absl::StrCat(options_.name(rank), " ", what, " (transfer ", note.id,
                                            ", ", note.size, " bytes from ", note.offset, ")"));
  };
  switch (note.kind) {
    case Note::Kind::kHello:
      return absl::OkStatus();
    case Note::Kind::kEager: {
      auto early = std::make_shared<Early>();
      early->source = rank;
      early->tag = note.tag;
      early->size = note.size;
      early->eager = true;
      early->complete = note.size == 0;
      const std::optional<GoingPtr> receive = matches_.Arrive(rank, note.tag, early);
      if (!receive.has_value()) {
        early->bytes.resize(note.size);
        if (note.size > 0) Await(rank, peer, early->bytes.data(), {0, note.size, nullptr, early});
        return absl::OkStatus();
      }
      if (absl::Status matched = Match(*receive, early); !matched.ok()) return matched;
      early->receive = nullptr;
      if (note.size > 0) {
        Await(rank, peer, (*receive)->transfer->data, {0, note.size, *receive, nullptr});
      }
      return absl::OkStatus();
    }
    case Note::Kind::kAnnounce: {
      auto early = std::make_shared<Early>();
      early->source = rank;
      early->tag = note.tag;
      early->size = note.size;
      early->id = note.id;
      return Arrive(early);
    }
    case Note::Kind::kPull: {
      const auto found = peer.announced.find(note.id);
      if (found == peer.announced.end()) return wrong("requests data that this rank does not send");
      const GoingPtr send = std::move(found->second);
      peer.announced.erase(found);
      if (send->size == 0) {
        Done(send);
      } else {
        peer.ids.emplace(send.get(), note.id);
        peer.streams.push_back(send);
      }
      return absl::OkStatus();
    }
    case Note::Kind::kData: {
      const auto found = peer.pulled.find(note.id);
      if (found == peer.pulled.end()) return wrong("sends data that this rank has not requested");
      const GoingPtr receive = found->second;
      if (note.offset != receive->posted || note.size > receive->size - receive->posted) {
        return wrong("sends a part out of order");
      }
      receive->posted += note.size;
      if (receive->posted == receive->size) peer.pulled.erase(found);
      Await(rank, peer, receive->transfer->data + note.offset, {0, note.size, receive, nullptr});
      return absl::OkStatus();
    }
    case Note::Kind::kTaken:
      if (note.size > peer.eager) return wrong("has consumed more than was sent");
      peer.eager -= note.size;
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

void Engine::AwaitNote(int rank, Peer& peer) {
  collectives::ReceiveBuffer buffer;
  buffer.data = peer.heads.data();
  buffer.size = peer.heads.size();
  peer.head_ticket = messenger_.PostReceive(rank, buffer);
}

void Engine::Await(int rank, Peer& peer, std::byte* to, const Awaited& awaited) {
  Awaited& added = peer.awaited.emplace_back(awaited);
  collectives::ReceiveBuffer buffer;
  buffer.data = to;
  buffer.size = awaited.bytes;
  added.ticket = messenger_.PostReceive(rank, buffer);
}

bool Engine::EndReceived(int rank, Peer& peer) {
  bool any = false;
  for (auto it = peer.awaited.begin(); it != peer.awaited.end();) {
    if (!messenger_.ReceiveDone(rank, it->ticket)) {
      ++it;
      continue;
    }
    any = true;
    const Awaited ended = std::move(*it);
    it = peer.awaited.erase(it);
    if (ended.early == nullptr) {
      CountReceived(ended.receive, ended.bytes);
      continue;
    }
    ended.early->complete = true;
    if (const GoingPtr receive = std::move(ended.early->receive); receive != nullptr) {
      std::memcpy(receive->transfer->data, ended.early->bytes.data(), ended.bytes);
      Done(receive);
    }
  }
  return any;
}

void Engine::CountReceived(const GoingPtr& receive, size_t bytes) {
  receive->ended += bytes;
  if (receive->ended == receive->size) Done(receive);
}

bool Engine::EndSent(int rank, Peer& peer) {
  bool any = false;
  for (auto it = peer.sent.begin(); it != peer.sent.end();) {
    if (!messenger_.SendDone(rank, it->ticket)) {
      ++it;
      continue;
    }
    any = true;
    const Sent ended = std::move(*it);
    it = peer.sent.erase(it);
    if (ended.of == nullptr) continue;
    if (ended.piece) --peer.pieces;
    ended.of->ended += ended.bytes;
    if (ended.of->ended == ended.of->size) Done(ended.of);
  }
  return any;
}

bool Engine::SendMore(int rank, Peer& peer) {
  bool any = false;
  for (; !peer.queued.empty() && peer.sent.size() < kMostPosted; any = true) {
    const Queued next = std::move(peer.queued.front());
    peer.queued.pop_front();
    Say(rank, peer, next.note);
    if (next.bytes == nullptr) continue;
    if (next.bytes->size > 0) {
      SendBytes(rank, peer, next.bytes, next.bytes->size);
    } else {
      peer.sent.back().of = next.bytes;
    }
  }
  while (!peer.streams.empty() && peer.pieces < kMostPieces && peer.sent.size() < kMostPosted) {
    any = true;
    const GoingPtr next = std::move(peer.streams.front());
    peer.streams.pop_front();
    Note note;
    note.kind = Note::Kind::kData;
    note.id = peer.ids.find(next.get())->second;
    note.offset = next->posted;
    note.size = std::min(options_.piece, next->size - next->posted);
    Say(rank, peer, note);
    SendBytes(rank, peer, next, note.size);
    peer.sent.back().piece = true;
    ++peer.pieces;
    if (next->posted < next->size) {
      peer.streams.push_back(next);
    } else {
      peer.ids.erase(next.get());
    }
  }
  return any;
}

void Engine::Say(int rank, Peer& peer, const Note& note) {
  Sent& sent = peer.sent.emplace_back();
  sent.note = Encode(note);
  sent.ticket = messenger_.PostSend(rank, sent.note);
}

void Engine::SendBytes(int rank, Peer& peer, const GoingPtr& of, size_t bytes) {
  Sent& sent = peer.sent.emplace_back();
  sent.of = of;
  sent.bytes = bytes;
  sent.ticket = messenger_.PostSend(rank, {of->transfer->data + of->posted, bytes});
  of->posted += bytes;
}

void Engine::Done(const GoingPtr& going) {
  unfinished_.erase(going->number);
  options_.done(going->transfer);
}

std::vector<int> Engine::UnderWay() const {
  std::vector<int> ranks;
  for (const auto& [rank, peer] : peers_) {
    const bool any = !peer.awaited.empty() || !peer.sent.empty() || !peer.queued.empty() ||
                     !peer.streams.empty() || !peer.pulled.empty();
    if (any) ranks.push_back(rank);
  }
  return ranks;
}

bool Engine::Heard(int peer) const {
  const auto found = peers_.find(peer);
  return found != peers_.end() && found->second.heard;
}

bool Engine::Flushed(absl::FunctionRef<bool(int peer)> left) const {
  return std::all_of(peers_.begin(), peers_.end(), [left](const auto& entry) {
    const Peer& peer = entry.second;
    return (peer.sent.empty() && peer.queued.empty() && peer.streams.empty()) || left(entry.first);
  });
}

}  // namespace railhead::transfers
