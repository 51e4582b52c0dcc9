// SPDX-License-Identifier: Apache-2.0
//
// AgentStore: the store of torchrun's agent, a TCPStore of PyTorch at MASTER_PORT, where rank 0
// therefore cannot listen. Rank 0 listens at a port that the kernel chooses and publishes it in the
// store; the other ranks look it up before each attempt, so that they find a rank 0 that has been
// restarted. The store is untrusted: the handshake authenticates rank 0.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_AGENT_STORE_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_AGENT_STORE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/halt.h"
#include "runtime/bootstrap/agent_store_wire.h"
#include "runtime/bootstrap/master_address.h"
#include "runtime/bootstrap/meeting_place.h"
#include "runtime/net/fd.h"

namespace railhead::bootstrap {

class AgentStore : public MeetingPlace {
 public:
  // MASTER_ADDR and MASTER_PORT, and the key of this gang.
  AgentStore(std::string host, int port, std::string key)
      : host_(std::move(host)), port_(static_cast<uint16_t>(port)), key_(std::move(key)) {}

  std::string Where() const override;
  std::string SameOnAllRanks() const override;
  absl::StatusOr<net::Fd> Open(absl::Time deadline, const Halt& halt) override;
  absl::StatusOr<net::Fd> Dial(absl::Time deadline, const Halt& halt) override;

 private:
  // Stores the port. One attempt.
  absl::Status Publish(uint16_t port, absl::Time deadline, const Halt& halt);
  // Waits for rank 0 to publish its address, a few seconds at most.
  absl::StatusOr<StoredAddress> Find(absl::Time deadline, const Halt& halt);
  // Adds the place.
  absl::Status Explain(const absl::Status& error) const;

  NamedHost host_;
  uint16_t port_;
  std::string key_;
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_AGENT_STORE_H_
