// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/session.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/wire.h"

namespace railhead::bootstrap {

absl::string_view Session::Add(FrameKind kind, absl::string_view payload) {
  return kept_.emplace_back(EncodeFrame(kind, payload));
}

absl::Status Session::Forget(uint64_t arrived) {
  const uint64_t sent = forgotten_ + kept_.size();
  if (arrived < forgotten_ || arrived > sent) {
    return absl::InternalError(
        absl::StrCat("the peer has ", arrived, " frames, of ", sent, " that were sent"));
  }
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<ptrdiff_t>(arrived - forgotten_));
  forgotten_ = arrived;
  return absl::OkStatus();
}

absl::StatusOr<bool> Session::Receive(const Frame& frame) {
  if (frame.kind == FrameKind::kReceived) {
    WireReader reader(frame.payload);
    const uint64_t arrived = reader.U64();
    if (!reader.Complete()) return absl::InternalError("a malformed report of arrived frames");
    if (absl::Status forgotten = Forget(arrived); !forgotten.ok()) return forgotten;
    return false;
  }
  // Earlier frames belong to the set-up of the tree, and to its socket.
  if (received_ == 0 && frame.kind != FrameKind::kMeet) return true;
  ++received_;
  bytes_not_reported_ += frame.payload.size();
  return true;
}

std::string Session::TakeReport() {
  if (received_ - reported_ < kReportFrames && bytes_not_reported_ < kReportBytes) return "";
  reported_ = received_;
  bytes_not_reported_ = 0;
  WireWriter writer;
  writer.U64(received_);
  return EncodeFrame(FrameKind::kReceived, writer.Take());
}

absl::StatusOr<std::string> Session::Resume(uint64_t arrived) {
  if (absl::Status forgotten = Forget(arrived); !forgotten.ok()) return forgotten;
  // kResume has reported them.
  reported_ = received_;
  bytes_not_reported_ = 0;
  std::string bytes;
  for (const std::string& frame : kept_) bytes += frame;
  return bytes;
}

}  // namespace railhead::bootstrap
