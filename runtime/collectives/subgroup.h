// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_SUBGROUP_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_SUBGROUP_H_

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/collectives/messenger.h"

namespace railhead::collectives {

// Messages between some of the ranks, which are numbered anew: so every algorithm can be done by
// any ranks that are connected as it needs.
class Subgroup final : public Messenger {
 public:
  // `ranks`: what number `all`, which outlives this, gives to ranks 0, 1, ... of the subgroup.
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
