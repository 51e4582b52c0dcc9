// SPDX-License-Identifier: Apache-2.0
//
// Tokens of a line of ibnetdiscover's output.
#ifndef RAILHEAD_FABRIC_DISCOVERY_IBNETDISCOVER_LINE_H_
#define RAILHEAD_FABRIC_DISCOVERY_IBNETDISCOVER_LINE_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace railhead::fabric {

// Consumes a line from its start.
class IbLine {
 public:
  explicit IbLine(absl::string_view text) : rest_(text) {}

  void Space();
  bool Mark(absl::string_view mark);
  // Reads "..." without the quotes. A description may contain quotes; `last` ends at the last one.
  std::optional<std::string> Quoted(bool last);
  // Reads [12].
  std::optional<int> Port();
  // Skips (100001), if present.
  void Guid();
  absl::string_view rest() const { return rest_; }

 private:
  absl::string_view rest_;
};

// Returns the Gbit/s of "4xNDR" at the end of a line; 0 if absent or unknown.
double LinkGbps(absl::string_view comment);

// Splits "n0 mlx5_0" into host and HCA. An adapter's default description ("MT4129 ConnectX7
// Mellanox Technologies") gives an empty host.
std::pair<std::string, std::string> HostAndHca(absl::string_view description);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_DISCOVERY_IBNETDISCOVER_LINE_H_
