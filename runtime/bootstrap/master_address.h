// SPDX-License-Identifier: Apache-2.0
//
// MasterAddress: rank 0 listens at MASTER_PORT of MASTER_ADDR. NamedHost: a host that many ranks
// dial again and again.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_MASTER_ADDRESS_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_MASTER_ADDRESS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/halt.h"
#include "runtime/bootstrap/meeting_place.h"
#include "runtime/net/address.h"
#include "runtime/net/fd.h"

namespace railhead::bootstrap {

// A host by its name or address. Does not query the name server for each dial.
class NamedHost {
 public:
  explicit NamedHost(std::string host) : host_(std::move(host)) {}

  // Connects to one of its addresses.
  absl::StatusOr<net::Fd> Dial(uint16_t port, absl::Time deadline, const Halt& halt);

  const std::string& name() const { return host_; }

 private:
  std::string host_;
  absl::StatusOr<std::vector<net::IpAddress>> addresses_;
  absl::Time resolve_again_ = absl::InfinitePast();
};

class MasterAddress : public MeetingPlace {
 public:
  // `host` may be empty on rank 0.
  MasterAddress(std::string host, int port)
      : host_(host.empty() ? "localhost" : std::move(host)), port_(static_cast<uint16_t>(port)) {}

  std::string Where() const override;
  std::string SameOnAllRanks() const override;
  // Listens on all addresses of this host.
  absl::StatusOr<net::Fd> Open(absl::Time deadline, const Halt& halt) override;
  absl::StatusOr<net::Fd> Dial(absl::Time deadline, const Halt& halt) override;

 private:
  NamedHost host_;
  uint16_t port_;
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_MASTER_ADDRESS_H_
