// SPDX-License-Identifier: Apache-2.0
//
// The words of a line of ibnetdiscover's output.
#ifndef RAILHEAD_FABRIC_DISCOVERY_IBNETDISCOVER_LINE_H_
#define RAILHEAD_FABRIC_DISCOVERY_IBNETDISCOVER_LINE_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace railhead::fabric {

// An InfiniBand port's number is a byte, and 255 is none.
inline constexpr int kMaxIbPort = 254;

// What stands at the beginning of a line, taken off piece by piece.
class IbLine {
 public:
  explicit IbLine(absl::string_view text) : rest_(text) {}

  void Space();
  bool Mark(absl::string_view mark);
  // "..." without the quotes. A description may hold quotes itself, so `last` takes the last one.
  std::optional<std::string> Quoted(bool last);
  // [12]
  std::optional<int> Port();
  // (100001), where it is there.
  void Guid();
  absl::string_view rest() const { return rest_; }

 private:
  absl::string_view rest_;
};

// The Gbit/s of "4xNDR" at the end of a line; 0 where there is none that is known.
double LinkGbps(absl::string_view comment);

// "n0 mlx5_0" to the host and its HCA. What adapters call themselves before somebody has told them
// their host ("MT4129 ConnectX7   Mellanox Technologies") names none.
std::pair<std::string, std::string> HostAndHca(absl::string_view description);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_IBNETDISCOVER_LINE_H_
