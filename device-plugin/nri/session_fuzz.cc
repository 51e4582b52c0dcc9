// SPDX-License-Identifier: Apache-2.0
//
// Whatever a container runtime sends, and in whatever pieces: it is refused, or answered by
// messages that can be read.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "device-plugin/nri/frames.h"
#include "device-plugin/nri/session.h"

namespace railhead::device_plugin::nri {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

// The first byte says how long the pieces are.
void Run(absl::string_view bytes) {
  if (bytes.empty()) return;
  const size_t length = 1 + static_cast<uint8_t>(bytes[0]);
  bytes.remove_prefix(1);
  Session whole;
  Session pieces;
  const absl::StatusOr<std::string> at_once = whole.Take(bytes);
  absl::StatusOr<std::string> in_pieces = std::string();
  while (!bytes.empty() && in_pieces.ok()) {
    const absl::StatusOr<std::string> answers = pieces.Take(bytes.substr(0, length));
    bytes.remove_prefix(std::min(length, bytes.size()));
    in_pieces = answers.ok() ? absl::StatusOr<std::string>(*in_pieces + *answers) : answers;
  }
  Require(at_once.status() == in_pieces.status());
  Require(whole.runtime() == pieces.runtime() && whole.TakeRaised() == pieces.TakeRaised());
  if (!at_once.ok()) return;
  Require(*at_once == *in_pieces);
  MessageReader reader;
  Require(reader
              .Take(*at_once,
                    [](const Message& message) {
                      Require(message.connection == kPluginService);
                      Require(message.type == MessageType::kResponse);
                      return absl::OkStatus();
                    })
              .ok());
}

}  // namespace
}  // namespace railhead::device_plugin::nri

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  railhead::device_plugin::nri::Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
