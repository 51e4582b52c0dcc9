// SPDX-License-Identifier: Apache-2.0
//
// How two sides that connect tell each other their offers (offer.h), over the socket on which they
// have proven who they are: what each says is signed with the socket's keys, so that nobody between
// them can put other queue pairs, PSNs or keys of memory in. Pure.
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

// First this.
inline std::string SignedOffer(absl::string_view key, absl::string_view address) {
  WireWriter writer;
  writer.String(address);
  writer.Raw(Mac(key, "railhead rail: offer", {address}));
  return writer.Take();
}
// And when this side has taken the other's: that it is ready.
inline std::string SignedReady(absl::string_view key) {
  return Mac(key, "railhead rail: ready", {});
}

// What the other side says.
class OfferReader {
 public:
  explicit OfferReader(std::string key) : key_(std::move(key)) {}

  // Where arriving bytes are appended, and how many may still come.
  std::string* buffer() { return &heard_; }
  size_t room() const { return kLongest - heard_.size(); }

  // Its offer; "" before that is here. An error: it is not the other side's.
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
  // Whether it is ready, once its offer is here.
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
