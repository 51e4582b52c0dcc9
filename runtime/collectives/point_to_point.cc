// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/point_to_point.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"

namespace railhead::collectives {
namespace {

using Direction = Transfer::Direction;

// Messages of this rank to itself.
struct Own {
  std::vector<const Transfer*> sends;
  std::vector<const Transfer*> receives;
};

Own OwnOf(int rank, absl::Span<const Transfer> transfers) {
  Own own;
  for (const Transfer& transfer : transfers) {
    if (transfer.peer != rank) continue;
    (transfer.direction == Direction::kSend ? own.sends : own.receives).push_back(&transfer);
  }
  return own;
}

}  // namespace

absl::Status WrongOwn(int rank, absl::Span<const Transfer> transfers) {
  const auto [sends, receives] = OwnOf(rank, transfers);
  if (sends.size() != receives.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(sends.size(), " sends to this rank itself, but ", receives.size(),
                     " receives from itself; put both into one group"));
  }
  for (size_t i = 0; i < sends.size(); ++i) {
    if (sends[i]->bytes != receives[i]->bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("number ", i, " of the sends to this rank itself has ", sends[i]->bytes,
                       " bytes, but the receive from itself has ", receives[i]->bytes));
    }
  }
  return absl::OkStatus();
}

absl::Status RunTransfers(Messenger& messenger, int rank, absl::Span<const Transfer> transfers) {
  const auto [sends, receives] = OwnOf(rank, transfers);
  for (size_t i = 0; i < sends.size(); ++i) {
    if (sends[i]->bytes > 0) std::memmove(receives[i]->data, sends[i]->data, sends[i]->bytes);
  }
  struct Open {
    Direction direction;
    int peer;
    Messenger::Ticket ticket;
  };
  // A few take no memory.
  absl::InlinedVector<Open, 8> open;
  for (const Transfer& transfer : transfers) {
    if (transfer.peer == rank || transfer.bytes == 0) continue;
    Messenger::Ticket ticket = 0;
    if (transfer.direction == Direction::kSend) {
      ticket =
          messenger.PostSend(transfer.peer, absl::MakeConstSpan(transfer.data, transfer.bytes));
    } else {
      ReceiveBuffer buffer;
      buffer.data = transfer.data;
      buffer.size = transfer.bytes;
      ticket = messenger.PostReceive(transfer.peer, buffer);
    }
    open.push_back({transfer.direction, transfer.peer, ticket});
  }
  const auto is_done = [&](const Open& transfer) {
    return transfer.direction == Direction::kSend
               ? messenger.SendDone(transfer.peer, transfer.ticket)
               : messenger.ReceiveDone(transfer.peer, transfer.ticket);
  };
  while (true) {
    open.erase(std::remove_if(open.begin(), open.end(), is_done), open.end());
    if (open.empty()) return absl::OkStatus();
    if (absl::Status progress = messenger.Progress(); !progress.ok()) return progress;
  }
}

}  // namespace railhead::collectives
