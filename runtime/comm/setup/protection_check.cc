// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/protection_check.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace railhead::comm {
namespace {

using config::FrameWish;
using transport::FrameProtection;

bool IsEnough(FrameWish wish, const Decision& decision) {
  switch (wish) {
    case FrameWish::kPlain:
      return true;
    case FrameWish::kSigned:  // of frames over TCP
      return decision.shm || decision.verbs || decision.protection != FrameProtection::kNone;
    case FrameWish::kEncrypted:
      return decision.shm || (!decision.verbs && decision.protection > FrameProtection::kSigned);
  }
  return false;
}

absl::string_view Decided(const Decision& decision) {
  if (decision.verbs) return "RDMA, which carries data unencrypted";
  return decision.protection == FrameProtection::kNone ? "TCP without signatures"
                                                       : "TCP with signatures and no encryption";
}

}  // namespace

absl::Status CheckProtection(const config::Settings& own, const Decision& decision,
                             int world_size) {
  if (world_size == 1 || IsEnough(own.frames, decision)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "RAILHEAD_AUTH=", own.frames == FrameWish::kEncrypted ? "encrypt" : "frames",
      " is set on this rank, but rank 0 decided on ", Decided(decision),
      ". Rank 0 takes the strictest value of all ranks, so a program between the ranks has changed "
      "the data of their rendezvous: find what forwards connections to MASTER_ADDR and "
      "MASTER_PORT, and remove it"));
}

}  // namespace railhead::comm
