// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/nri/frames.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace railhead::device_plugin::nri {
namespace {

constexpr size_t kPieceHeader = 8;
constexpr size_t kMessageHeader = 10;

uint32_t Number(absl::string_view bytes) {
  uint32_t number = 0;
  for (const char byte : bytes.substr(0, 4)) number = number << 8U | static_cast<uint8_t>(byte);
  return number;
}

void Append(std::string& bytes, uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<char>(number >> static_cast<unsigned>(shift) & 0xffU));
  }
}

}  // namespace

std::string Encode(const Message& message) {
  std::string bytes;
  bytes.reserve(kPieceHeader + kMessageHeader + message.payload.size());
  Append(bytes, message.connection);
  Append(bytes, static_cast<uint32_t>(kMessageHeader + message.payload.size()));
  Append(bytes, static_cast<uint32_t>(message.payload.size()));
  Append(bytes, message.stream);
  bytes.push_back(static_cast<char>(message.type));
  bytes.push_back('\0');
  bytes += message.payload;
  return bytes;
}

absl::Status MessageReader::Take(absl::string_view bytes,
                                 absl::FunctionRef<absl::Status(const Message& message)> take) {
  while (!bytes.empty()) {
    if (left_ == 0) {
      const size_t taken = std::min(bytes.size(), kPieceHeader - header_.size());
      absl::StrAppend(&header_, bytes.substr(0, taken));
      bytes.remove_prefix(taken);
      if (header_.size() < kPieceHeader) break;
      if (absl::Status begun = BeginPiece(); !begun.ok()) return begun;
      continue;
    }
    // Stores at most one message, so that memory is bounded.
    std::string& begun = begun_[connection_ - 1];
    const size_t missing = begun.size() < kMessageHeader
                               ? kMessageHeader - begun.size()
                               : kMessageHeader + Number(begun) - begun.size();
    const size_t taken = std::min({bytes.size(), left_, missing});
    absl::StrAppend(&begun, bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    left_ -= taken;
    if (absl::Status all = TakeMessage(begun, take); !all.ok()) return all;
  }
  return absl::OkStatus();
}

absl::Status MessageReader::BeginPiece() {
  connection_ = Number(header_);
  left_ = Number(absl::string_view(header_).substr(4));
  header_.clear();
  if (connection_ == kPluginService || connection_ == kRuntimeService) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("NRI: bytes for connection ", connection_, ", which does not exist"));
}

// Consumes the current message, if it is complete.
absl::Status MessageReader::TakeMessage(
    std::string& begun, absl::FunctionRef<absl::Status(const Message& message)> take) const {
  if (begun.size() < kMessageHeader) return absl::OkStatus();
  const size_t length = Number(begun);
  if (length > kLongestPayload) {
    return absl::InvalidArgumentError(absl::StrCat(
        "NRI: a message of ", length, " bytes exceeds the limit of ", kLongestPayload));
  }
  if (begun.size() < kMessageHeader + length) return absl::OkStatus();
  Message message;
  message.connection = connection_;
  message.stream = Number(absl::string_view(begun).substr(4));
  const auto type = static_cast<uint8_t>(begun[8]);
  if (type < static_cast<uint8_t>(MessageType::kRequest) ||
      type > static_cast<uint8_t>(MessageType::kData)) {
    return absl::InvalidArgumentError(absl::StrCat("NRI: a message of unknown type ", type));
  }
  message.type = static_cast<MessageType>(type);
  message.payload = begun.substr(kMessageHeader);
  begun = std::string();  // frees the memory of a large message
  return take(message);
}

}  // namespace railhead::device_plugin::nri
