// SPDX-License-Identifier: Apache-2.0
//
// Causes of several ranks in one message: each cause once, with its ranks, in bounded length.
#ifndef RAILHEAD_RUNTIME_BASE_RANK_CAUSES_H_
#define RAILHEAD_RUNTIME_BASE_RANK_CAUSES_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace railhead {

// Returns "rank 3" or "ranks 0-5, 9"; of many ranges the first, "and 12 more" ranks.
std::string RankRanges(const std::set<int>& ranks);

// A thousand ranks with one cause need one line, not a thousand.
//
//   causes.Add(1, "rank 1 (pod b)", "no memory");
//   for (int rank : {2, 3, 4}) causes.Add(rank, Name(rank), " has no secret");
//   causes.Text();  // "rank 1 (pod b): no memory; each of ranks 2-4 has no secret"
class RankCauses {
 public:
  // `name` describes the rank, with its number. The cause may begin with it.
  void Add(int rank, absl::string_view name, absl::string_view cause);
  bool empty() const { return causes_.empty(); }

  // Returns the causes in the order of their first ranks, on one line of at most kMostBytes. Only
  // the first are named, and long ones are cut.
  std::string Text() const;
  static constexpr size_t kMostBytes = 3000;

 private:
  struct Cause {
    std::string text;                  // continues the names: ": no memory" or " has no secret"
    std::map<int, std::string> names;  // by rank
  };
  static std::string Ranks(const Cause& cause);
  std::vector<Cause> causes_;
};

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_RANK_CAUSES_H_
