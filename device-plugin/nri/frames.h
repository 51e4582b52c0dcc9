// SPDX-License-Identifier: Apache-2.0
//
// What goes over NRI's socket: several connections in one, and in each of them messages of ttrpc.
// All numbers are big-endian.
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

// The connections that there are: the runtime calls us on one, we call it on the other.
inline constexpr uint32_t kPluginService = 1;
inline constexpr uint32_t kRuntimeService = 2;

// Of a payload; ttrpc allows no more.
inline constexpr size_t kLongestPayload = size_t{4} << 20;

enum class MessageType : uint8_t { kRequest = 1, kResponse = 2, kData = 3 };

struct Message {
  uint32_t connection = 0;  // one of the two
  uint32_t stream = 0;      // a call and its answer have the same, an odd number
  MessageType type = MessageType::kRequest;
  std::string payload;
};

// The message as it goes over the socket.
std::string Encode(const Message& message);

// Finds messages in what comes from the socket, in pieces of any size. Keeps no more than one
// message of each connection.
class MessageReader {
 public:
  // Calls `take` for each message that is complete with these bytes. InvalidArgument when they are
  // not of the protocol, or the error of `take`: nothing that follows can be understood then.
  absl::Status Take(absl::string_view bytes,
                    absl::FunctionRef<absl::Status(const Message& message)> take);

 private:
  absl::Status BeginPiece();
  absl::Status TakeMessage(std::string& begun,
                           absl::FunctionRef<absl::Status(const Message& message)> take) const;

  std::string header_;                // of the next piece, as far as it has come
  uint32_t connection_ = 0;           // of the piece that is coming
  size_t left_ = 0;                   // of it, bytes
  std::array<std::string, 2> begun_;  // what each connection has brought of its next message
};

}  // namespace railhead::device_plugin::nri

#endif  // RAILHEAD_DEVICE_PLUGIN_NRI_FRAMES_H_
