// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/agent_store_wire.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/printable_text.h"
#include "runtime/base/wire.h"

namespace railhead::bootstrap {
namespace {

enum Query : uint8_t { kGreeting = 0, kSet = 1, kGet = 3, kCheck = 5, kWait = 6 };
constexpr uint32_t kGreetingNumber = 0x3C85F7CE;
constexpr absl::string_view kValueMagic = "railhead";
constexpr size_t kLongestShown = 100;  // of a value, in messages

void Text(WireWriter& writer, absl::string_view text) {
  writer.U64(text.size());
  writer.Raw(text);
}

std::string ForOneKey(Query query, absl::string_view key) {
  WireWriter writer;
  writer.U8(query);
  writer.U64(1);
  Text(writer, key);
  return writer.Take();
}

absl::Status OtherProtocol(absl::string_view answer) {
  return absl::UnimplementedError(
      absl::StrCat("it answered '", PrintableText(answer.substr(0, kLongestShown)), "'"));
}

// Returns the answer's only byte, which must be at most `highest`.
absl::StatusOr<std::optional<uint8_t>> ParseByte(absl::string_view bytes, uint8_t highest) {
  if (bytes.empty()) return std::nullopt;
  const auto byte = static_cast<uint8_t>(bytes.front());
  // Queries are sent one at a time: nothing follows an answer.
  if (byte > highest || bytes.size() > 1) return OtherProtocol(bytes);
  return byte;
}

}  // namespace

std::string StoreGreeting() {
  WireWriter writer;
  writer.U8(kGreeting);
  writer.U32(kGreetingNumber);
  return writer.Take();
}

std::string StoreSet(absl::string_view key, absl::string_view value) {
  WireWriter writer;
  writer.U8(kSet);
  Text(writer, key);
  Text(writer, value);
  return writer.Take();
}

std::string StoreGet(absl::string_view key) {
  WireWriter writer;
  writer.U8(kGet);
  Text(writer, key);
  return writer.Take();
}

std::string StoreCheck(absl::string_view key) { return ForOneKey(kCheck, key); }
std::string StoreWait(absl::string_view key) { return ForOneKey(kWait, key); }

absl::StatusOr<std::optional<bool>> ParseStoreCheck(absl::string_view bytes) {
  const absl::StatusOr<std::optional<uint8_t>> byte = ParseByte(bytes, 1);
  if (!byte.ok()) return byte.status();
  if (!byte->has_value()) return std::nullopt;
  return **byte == 0;
}

absl::StatusOr<std::optional<bool>> ParseStoreWait(absl::string_view bytes) {
  const absl::StatusOr<std::optional<uint8_t>> byte = ParseByte(bytes, 0);
  if (!byte.ok()) return byte.status();
  if (!byte->has_value()) return std::nullopt;
  return true;
}

absl::StatusOr<std::optional<std::string>> ParseStoreValue(absl::string_view bytes) {
  constexpr size_t kHead = 8;
  if (bytes.size() < kHead) return std::nullopt;
  WireReader reader(bytes);
  const uint64_t size = reader.U64();
  if (size > kStoreValueLimit || bytes.size() - kHead > size) return OtherProtocol(bytes);
  if (bytes.size() - kHead < size) return std::nullopt;
  return std::string(bytes.substr(kHead));
}

std::string EncodeStoredAddress(const StoredAddress& stored) {
  return absl::StrCat(kValueMagic, " ", stored.port, stored.address.has_value() ? " " : "",
                      stored.address.has_value() ? stored.address->ToString() : "");
}

absl::StatusOr<StoredAddress> ParseStoredAddress(absl::string_view value) {
  const std::vector<std::string> parts = absl::StrSplit(value, ' ');
  StoredAddress stored;
  uint32_t port = 0;
  bool valid = (parts.size() == 2 || parts.size() == 3) && parts[0] == kValueMagic &&
               absl::SimpleAtoi(parts[1], &port) && port > 0 && port <= 0xffff;
  stored.port = static_cast<uint16_t>(port);
  if (valid && parts.size() == 3) {
    const absl::StatusOr<net::IpAddress> address = net::IpAddress::Parse(parts[2]);
    valid = address.ok();
    if (valid) stored.address = *address;
  }
  if (valid) return stored;
  return absl::InvalidArgumentError(
      absl::StrCat("'", PrintableText(value.substr(0, kLongestShown)), "' is not an address"));
}

}  // namespace railhead::bootstrap
