// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/master_address.h"

#include <algorithm>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/now.h"
#include "runtime/bootstrap/call.h"
#include "runtime/bootstrap/spread.h"
#include "runtime/net/port_owner.h"
#include "runtime/net/socket.h"

namespace railhead::bootstrap {
namespace {

// Time for which the resolved address of a host name is used. A pod that is recreated has another
// address.
constexpr absl::Duration kResolvePause = absl::Seconds(2);

}  // namespace

absl::StatusOr<net::Fd> NamedHost::Dial(uint16_t port, absl::Time deadline, const Halt& halt) {
  const absl::Time now = MonotonicNow();
  if (now >= resolve_again_) {
    addresses_ = net::Resolve(host_, deadline, halt);
    resolve_again_ = now + Spread(kResolvePause);
  }
  if (!addresses_.ok()) return addresses_.status();
  absl::StatusOr<net::Fd> fd = absl::UnavailableError("no address");
  for (const net::IpAddress& address : *addresses_) {
    fd =
        net::Dial(address, port, std::nullopt, std::min(deadline, MonotonicNow() + kOneDial), halt);
    if (fd.ok()) break;
  }
  return fd;
}

std::string MasterAddress::Where() const {
  // As users write IPv6 addresses in a URL.
  return absl::StrContains(host_.name(), ':') ? absl::StrCat("[", host_.name(), "]:", port_)
                                              : absl::StrCat(host_.name(), ":", port_);
}

std::string MasterAddress::SameOnAllRanks() const {
  return "their MASTER_ADDR, MASTER_PORT and RAILHEAD_JOB match those of rank 0";
}

absl::StatusOr<net::Fd> MasterAddress::Open(absl::Time /*deadline*/, const Halt& /*halt*/) {
  absl::StatusOr<net::Fd> opened = net::Listen(std::nullopt, port_);
  if (opened.ok()) return opened;
  const std::string text = absl::StrCat("cannot listen on MASTER_PORT ", port_, ": ");
  if (!absl::IsAlreadyExists(opened.status())) {
    return absl::Status(opened.status().code(), absl::StrCat(text, opened.status().message()));
  }
  return absl::AlreadyExistsError(
      absl::StrCat(text, net::OwnerOfPort("/", port_),
                   " listens there; choose a free port on all ranks (MASTER_PORT)"));
}

absl::StatusOr<net::Fd> MasterAddress::Dial(absl::Time deadline, const Halt& halt) {
  return host_.Dial(port_, deadline, halt);
}

}  // namespace railhead::bootstrap
