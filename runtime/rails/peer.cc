// SPDX-License-Identifier: Apache-2.0
#include "runtime/rails/peer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/rails/chunk.h"
#include "runtime/reduce/reduce.h"

namespace railhead::rails {
namespace {

// How far a rail can fall behind the busiest one and still be asked first until it has caught up.
// Beyond that its past is forgotten: a rail that was slow for long is not flooded afterwards.
constexpr uint64_t kMemory = uint64_t{4} << 20;

// The other rank may be this many transfers ahead before it must be talking nonsense.
constexpr uint64_t kFurthestAhead = uint64_t{1} << 24;

}  // namespace

std::string ToString(const RailName& name) {
  return absl::StrCat("rail ", name.rail, " (", name.device,
                      name.port > 0 ? absl::StrCat(" port ", name.port) : "", ", ", name.transport,
                      ")");
}

Peer::Peer(std::string name, std::vector<Rail> rails)
    : name_(std::move(name)),
      rails_(std::move(rails)),
      states_(rails_.size()),
      max_payload_(SIZE_MAX) {
  for (const Rail& rail : rails_) max_payload_ = std::min(max_payload_, rail.link->max_payload());
}

uint64_t Peer::PostSend(absl::Span<const std::byte> data) {
  const uint64_t number = sends_.Push();
  sends_[number] = {data, 0, ChunkSize(data.size(), rails_.size(), max_payload_)};
  return number;
}

uint64_t Peer::PostReceive(const collectives::ReceiveBuffer& buffer) {
  const uint64_t number = receives_.Push();
  Receive& receive = receives_[number];
  receive.buffer = buffer;
  receive.arrived.Clear();
  receive.done = buffer.size == 0;
  while (!receives_.empty() && receives_[receives_.begin()].done) receives_.Pop();
  return number;
}

bool Peer::ReceiveDone(uint64_t ticket) const {
  return ticket < receives_.begin() || (ticket < receives_.end() && receives_[ticket].done);
}

bool Peer::Flushed() const {
  return std::all_of(rails_.begin(), rails_.end(),
                     [](const Rail& rail) { return rail.link->Flushed(); });
}

absl::Status Peer::LinkError(size_t index, const absl::Status& status) {
  states_[index].up.store(false, std::memory_order_relaxed);
  return absl::Status(status.code(), absl::StrCat(ToString(rails_[index].name), " to ", name_, ": ",
                                                  status.message()));
}

absl::StatusOr<bool> Peer::Poll() {
  bool moved = false;
  for (size_t i = 0; i < rails_.size(); ++i) {
    const absl::StatusOr<bool> polled = rails_[i].link->Poll(
        [this](const transport::FrameHeader& header, absl::Span<const std::byte> payload) {
          return Take(header, payload);
        });
    if (!receive_error_.ok()) return LinkError(i, receive_error_);
    if (!polled.ok()) return LinkError(i, polled.status());
    moved = moved || *polled;
    states_[i].full = false;
  }
  const absl::StatusOr<bool> pulled = Pull();
  if (!pulled.ok()) return pulled.status();
  return moved || *pulled;
}

absl::StatusOr<bool> Peer::Pull() {
  bool moved = false;
  while (!sends_.empty()) {
    Send& send = sends_[sends_.begin()];
    if (send.taken == send.data.size()) {
      sends_.Pop();
      continue;
    }
    size_t index = 0;
    RailState* const state = NextRail(&index);
    if (state == nullptr) break;
    const absl::Span<const std::byte> chunk = send.data.subspan(send.taken, send.chunk);
    const absl::StatusOr<bool> accepted =
        rails_[index].link->TrySend({sends_.begin(), send.taken}, chunk);
    if (!accepted.ok()) return LinkError(index, accepted.status());
    if (!*accepted) {
      state->full = true;
      continue;
    }
    send.taken += chunk.size();
    Account(*state, chunk.size());
    moved = true;
  }
  return moved;
}

Peer::RailState* Peer::NextRail(size_t* index) {
  RailState* best = nullptr;
  for (size_t i = 0; i < states_.size(); ++i) {
    if (states_[i].full || (best != nullptr && best->carried <= states_[i].carried)) continue;
    best = &states_[i];
    *index = i;
  }
  return best;
}

void Peer::Account(RailState& state, size_t bytes) {
  state.carried += bytes;
  if (state.carried < kMemory) return;
  const uint64_t forgotten = state.carried - kMemory;
  for (RailState& other : states_) other.carried = std::max(other.carried, forgotten);
}

bool Peer::Take(const transport::FrameHeader& header, absl::Span<const std::byte> payload) {
  // A frame of a transfer that nobody has asked for yet stays with its link. No frame of an earlier
  // transfer can be behind it, since every rail gets the transfers in their order.
  if (header.transfer >= receives_.end() && header.transfer - receives_.end() < kFurthestAhead) {
    return false;
  }
  if (absl::Status placed = Place(header, payload); !placed.ok()) receive_error_ = placed;
  return true;
}

absl::Status Peer::Place(const transport::FrameHeader& header,
                         absl::Span<const std::byte> payload) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InternalError(absl::StrCat("a frame for bytes ", header.offset, " to ",
                                            header.offset + payload.size(), " of transfer ",
                                            header.transfer, " was refused: ", why));
  };
  if (header.transfer >= receives_.end()) return refuse("that transfer is far in the future");
  if (header.transfer < receives_.begin() || receives_[header.transfer].done) {
    return refuse("that transfer is complete");
  }
  Receive& receive = receives_[header.transfer];
  const size_t size = receive.buffer.size;
  if (header.offset > size || payload.size() > size - header.offset) {
    return refuse(
        absl::StrCat("the transfer has ", size, " bytes here; do all ranks pass the same count?"));
  }
  if (payload.empty()) return refuse("it is empty");
  const reduce::Reduction* reduction = receive.buffer.reduction;
  const size_t element = reduction == nullptr ? 1 : reduce::SizeOf(reduction->type);
  if (header.offset % element != 0 || payload.size() % element != 0) {
    return refuse("it cuts through a value");
  }
  if (!receive.arrived.Add(header.offset, header.offset + payload.size())) {
    return refuse("some of them are here already");
  }
  std::byte* const to = receive.buffer.data + header.offset;
  if (reduction != nullptr) {
    reduce::Reduce(*reduction, {receive.buffer.operand + header.offset, payload.data()}, to,
                   payload.size() / element, reduce::Stores::kNormal);
  } else {
    std::memcpy(to, payload.data(), payload.size());
  }
  receive.done = receive.arrived.total() == size;
  while (!receives_.empty() && receives_[receives_.begin()].done) receives_.Pop();
  return absl::OkStatus();
}

std::string Peer::DescribeProgress() const {
  std::string text = absl::StrCat("with ", name_, ": ");
  if (sends_.empty()) {
    absl::StrAppend(&text, "nothing left to send");
  } else {
    const Send& send = sends_[sends_.begin()];
    absl::StrAppend(&text, "sent ", send.taken, " of ", send.data.size(), " bytes of transfer ",
                    sends_.begin());
  }
  if (receives_.empty()) {
    absl::StrAppend(&text, ", waiting for nothing");
  } else {
    const Receive& receive = receives_[receives_.begin()];
    absl::StrAppend(&text, ", received ", receive.arrived.total(), " of ", receive.buffer.size,
                    " bytes of transfer ", receives_.begin());
  }
  for (const Rail& rail : rails_) {
    const transport::LinkStats& stats = rail.link->stats();
    absl::StrAppend(&text, "; ", ToString(rail.name), " in all sent ",
                    stats.transmit_bytes.load(std::memory_order_relaxed), ", received ",
                    stats.receive_bytes.load(std::memory_order_relaxed), " bytes");
  }
  return text;
}

}  // namespace railhead::rails
