// SPDX-License-Identifier: Apache-2.0
//
// Framing of NRI's socket: a multiplexer of several connections, each with ttrpc messages. Numbers
// are big-endian. Used by Session.
//
//   multiplexer:  connection (4 bytes), length (4 bytes), that many bytes of the connection
//   ttrpc:        length (4 bytes), stream (4 bytes), type (1 byte), flags (1 byte), payload
//
// Sources: github.com/containerd/nri pkg/net/multiplex, github.com/containerd/ttrpc PROTOCOL.md.
#ifndef RAILHEAD_DEVICE_PLUGIN_NRI_FRAMES_H_
#define RAILHEAD_DEVICE_PLUGIN_NRI_FRAMES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace railhead::device_plugin::nri {

// The two connections: the runtime calls the plugin on the first, the plugin the runtime on the
// second.
inline constexpr uint32_t kPluginService = 1;
inline constexpr uint32_t kRuntimeService = 2;

// Maximum payload of ttrpc.
inline constexpr size_t kLongestPayload = size_t{4} << 20;

enum class MessageType : uint8_t { kRequest = 1, kResponse = 2, kData = 3 };

struct Message {
  uint32_t connection = 0;  // one of the two above
  uint32_t stream = 0;      // odd; the same in a call and its response
  MessageType type = MessageType::kRequest;
  std::string payload;
};

// Returns the message as bytes of the socket.
std::string Encode(const Message& message);

// Parses messages from bytes in pieces of any size. Buffers at most one message per connection.
class MessageReader {
 public:
  // Calls `take` for each message that these bytes complete. InvalidArgument for bytes outside the
  // protocol, or the error of `take`; the reader cannot be used after an error.
  absl::Status Take(absl::string_view bytes,
                    absl::FunctionRef<absl::Status(const Message& message)> take);

 private:
  absl::Status BeginPiece();
  absl::Status TakeMessage(std::string& begun,
                           absl::FunctionRef<absl::Status(const Message& message)> take) const;

  std::string header_;                // partial header of the next piece
  uint32_t connection_ = 0;           // of the current piece
  size_t left_ = 0;                   // remaining bytes of the current piece
  std::array<std::string, 2> begun_;  // partial message of each connection
};

}  // namespace railhead::device_plugin::nri

#endif  // RAILHEAD_DEVICE_PLUGIN_NRI_FRAMES_H_
