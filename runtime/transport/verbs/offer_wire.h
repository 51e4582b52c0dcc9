// SPDX-License-Identifier: Apache-2.0
//
// Exchange of connection information (offer.h) over the authenticated socket. Each message is
// signed with the socket's keys, so that a man in the middle cannot replace queue pairs, PSNs or
// memory keys. Pure.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_OFFER_WIRE_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_OFFER_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/mac.h"
#include "runtime/base/wire.h"

namespace railhead::transport::verbs {

inline constexpr size_t kLongestOffer = 1024;

// The first message.
inline std::string SignedOffer(absl::string_view key, absl::string_view address) {
  WireWriter writer;
  writer.String(address);
  writer.Raw(Mac(key, "railhead rail: offer", {address}));
  return writer.Take();
}
// The second message, after the other side's information was accepted: ready.
inline std::string SignedReady(absl::string_view key) {
  return Mac(key, "railhead rail: ready", {});
}

// Reads the other side's messages.
class OfferReader {
 public:
  explicit OfferReader(std::string key) : key_(std::move(key)) {}

  // Buffer for arriving bytes, and how many more it takes.
  std::string* buffer() { return &heard_; }
  size_t room() const { return kLongest - heard_.size(); }

  // Returns the other side's information; "" if it is incomplete. An error if the signature is
  // wrong.
  absl::StatusOr<std::string> Offer() const {
    WireReader reader(heard_);
    std::string address = reader.String(kLongestOffer);
    const absl::string_view mac = reader.Raw(kMacSize);
    if (!reader.ok()) {
      if (room() > 0) return "";
      return absl::InternalError("the peer's offer is too long; run the same version of Railhead");
    }
    if (SameMac(mac, Mac(key_, "railhead rail: offer", {address}))) return address;
    return Changed("offer");
  }
  // Returns true if the other side is ready; call after Offer().
  absl::StatusOr<bool> Ready() const {
    WireReader reader(heard_);
    reader.String(kLongestOffer);
    reader.Raw(kMacSize);
    const absl::string_view mac = reader.Raw(kMacSize);
    if (!reader.ok()) return false;
    if (SameMac(mac, SignedReady(key_))) return true;
    return Changed("word that it is ready");
  }

 private:
  static constexpr size_t kLongest = sizeof(uint32_t) + kLongestOffer + 2 * kMacSize;

  static absl::Status Changed(absl::string_view what) {
    return absl::UnavailableError(
        absl::StrCat("the peer's ", what, " was changed on its way: its signature is wrong"));
  }

  std::string key_;
  std::string heard_;
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_OFFER_WIRE_H_
