// SPDX-License-Identifier: Apache-2.0
//
// Messenger between a subset of ranks, renumbered, so that any algorithm can run on any suitably
// connected ranks.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_SUBGROUP_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_SUBGROUP_H_

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/collectives/messenger.h"

namespace railhead::collectives {

class Subgroup final : public Messenger {
 public:
  // `ranks`: numbers in `all` of ranks 0, 1, ... of the subgroup. `all` must outlive this.
  Subgroup(Messenger& all, std::vector<int> ranks) : all_(all), ranks_(std::move(ranks)) {}

  void Expect(Call call) override { all_.Expect(call); }
  Ticket PostSend(int peer, absl::Span<const std::byte> data) override {
    return all_.PostSend(Of(peer), data);
  }
  Ticket PostReceive(int peer, const ReceiveBuffer& buffer) override {
    return all_.PostReceive(Of(peer), buffer);
  }
  bool SendDone(int peer, Ticket ticket) const override { return all_.SendDone(Of(peer), ticket); }
  bool ReceiveDone(int peer, Ticket ticket) const override {
    return all_.ReceiveDone(Of(peer), ticket);
  }
  absl::Status Progress() override { return all_.Progress(); }

 private:
  int Of(int peer) const { return ranks_[static_cast<size_t>(peer)]; }

  Messenger& all_;
  const std::vector<int> ranks_;
};

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_SUBGROUP_H_
