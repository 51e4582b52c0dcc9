// SPDX-License-Identifier: Apache-2.0
#include "runtime/rails/receive_ledger.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/line_copy.h"
#include "runtime/reduce/reduce.h"

namespace railhead::rails {

uint64_t ReceiveLedger::Post(const collectives::ReceiveBuffer& buffer, collectives::Call call) {
  const uint64_t number = receives_.Push();
  Receive& receive = receives_[number];
  receive.buffer = buffer;
  receive.arrived.Clear();
  receive.done = buffer.size == 0;
  agreements_[number % kKeptAgreements] = {buffer.size, call};
  untold_ += FrameCost(buffer.size);
  unexpected_.TakeNext(
      [this](const transport::FrameHeader& header, absl::Span<const std::byte> payload) {
        error_.Update(Place(header, payload));
      });
  Retire();
  return number;
}

absl::Status ReceiveLedger::Take(const transport::FrameHeader& header,
                                 absl::Span<const std::byte> payload) {
  may_repeat_ = may_repeat_ || header.repeated;
  if (!error_.ok()) return error_;
  if (header.transfer < receives_.end()) {
    absl::Status placed = Place(header, payload);
    if (absl::IsUnavailable(placed)) return placed;
    error_ = std::move(placed);
    Retire();
  } else if (!unexpected_.Put(header, payload)) {
    error_ = absl::InternalError(
        absl::StrCat(peer_(), " sends transfer ", header.transfer, " (", payload.size(),
                     " bytes of it) although ", receives_.end(), " receives are posted and ",
                     unexpected_.used(), " of ", kRoom, " bytes are used for early frames"));
  }
  return error_;
}

absl::Status ReceiveLedger::Compare(const transport::FrameHeader& header) const {
  if (header.transfer + kKeptAgreements < receives_.end()) return absl::OkStatus();
  const Agreement& ours = agreements_[header.transfer % kKeptAgreements];
  if (const collectives::Call theirs(header.call); theirs != ours.call) {
    return absl::InternalError(collectives::Contradiction(peer_(), theirs, ours.call));
  }
  if (header.size == ours.size) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(peer_(), " sends ", header.size, " bytes as transfer ",
                                          header.transfer, ", and this rank receives ", ours.size,
                                          "; pass the same count on all ranks"));
}

absl::Status ReceiveLedger::Place(const transport::FrameHeader& header,
                                  absl::Span<const std::byte> payload) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InternalError(absl::StrCat("a frame for bytes ", header.offset, " to ",
                                            header.offset + payload.size(), " of transfer ",
                                            header.transfer, " was refused: ", why));
  };
  if (absl::Status same = Compare(header); !same.ok()) return same;
  if (header.transfer < receives_.begin() || receives_[header.transfer].done) {
    if (may_repeat_) return absl::OkStatus();
    return refuse("that transfer is complete");
  }
  Receive& receive = receives_[header.transfer];
  const size_t size = receive.buffer.size;
  if (header.offset > size || payload.size() > size - header.offset) {
    return refuse(absl::StrCat("the transfer has ", size, " bytes"));
  }
  if (payload.empty()) return refuse("it is empty");
  if (header.placed && receive.buffer.registered == nullptr) {
    return refuse("its bytes were written to memory that is not registered for that");
  }
  const reduce::Reduction* reduction = receive.buffer.reduction;
  const size_t element = reduction == nullptr ? 1 : reduce::SizeOf(reduction->type);
  if (header.offset % element != 0 || payload.size() % element != 0) {
    return refuse("it splits an element");
  }
  const uint64_t end = header.offset + payload.size();
  if (may_repeat_ && receive.arrived.Contains(header.offset, end)) return absl::OkStatus();
  if (receive.arrived.Overlaps(header.offset, end)) {
    return refuse("some of its bytes have already arrived");
  }
  std::byte* const to = receive.buffer.data + header.offset;
  if (header.placed) {
    // Its bytes are there.
  } else if (receive.buffer.registered != nullptr && receive.buffer.registered->on_device()) {
    absl::Status written = receive.buffer.registered->Write(to, payload);
    if (!written.ok()) return written;
  } else if (reduction != nullptr) {
    reduce::Reduce(*reduction, {receive.buffer.operand + header.offset, payload.data()}, to,
                   payload.size() / element, reduce::Stores::kNormal);
  } else if (payload.data() != to) {
    LineCopy(to, payload.data(), payload.size());
  }
  receive.arrived.Add(header.offset, end);
  ++progress_;
  receive.done = receive.arrived.total() == size;
  return absl::OkStatus();
}

std::byte* ReceiveLedger::PlaceFor(const transport::FrameHeader& header, size_t size) const {
  // All other frames are checked by Take().
  if (header.transfer < receives_.begin() || header.transfer >= receives_.end()) return nullptr;
  const Receive& receive = receives_[header.transfer];
  const uint64_t whole = receive.buffer.size;
  const bool by_cpu =
      receive.buffer.reduction == nullptr &&
      (receive.buffer.registered == nullptr || !receive.buffer.registered->on_device());
  if (receive.done || !by_cpu || !Compare(header).ok() || header.offset > whole ||
      size > whole - header.offset ||
      receive.arrived.Overlaps(header.offset, header.offset + size)) {
    return nullptr;
  }
  return receive.buffer.data + header.offset;
}

void ReceiveLedger::Retire() {
  while (!receives_.empty() && receives_[receives_.begin()].done) receives_.Pop();
}

}  // namespace railhead::rails
