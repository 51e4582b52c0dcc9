// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/rank_causes.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/printable_text.h"

namespace railhead {
namespace {

constexpr size_t kMostRanges = 8;
constexpr size_t kMostCauses = 8;
constexpr size_t kNameLimit = 100;
// Without separators, and without Text's note about omitted causes.
constexpr size_t kCausesBytes = RankCauses::kMostBytes - 200;

}  // namespace

std::string RankRanges(const std::set<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  size_t named = 0;
  size_t ranges = 0;
  for (auto first = ranks.begin(); first != ranks.end() && ranges < kMostRanges; ++ranges) {
    auto behind = std::next(first);
    int last = *first;
    while (behind != ranks.end() && *behind == last + 1) last = *behind++;
    absl::StrAppend(&text, ranges == 0 ? "" : ", ", *first);
    if (last > *first) absl::StrAppend(&text, "-", last);
    named += static_cast<size_t>(last - *first) + 1;
    first = behind;
  }
  if (named < ranks.size()) absl::StrAppend(&text, " and ", ranks.size() - named, " more");
  return text;
}

void RankCauses::Add(int rank, absl::string_view name, absl::string_view cause) {
  cause = absl::StripPrefix(cause, name);
  const bool continues = !cause.empty() && (cause.front() == ':' || cause.front() == ' ');
  std::string text = absl::StrCat(continues ? "" : ": ", cause);
  auto same = std::find_if(causes_.begin(), causes_.end(),
                           [&text](const Cause& one) { return one.text == text; });
  if (same == causes_.end()) same = causes_.insert(same, {std::move(text), {}});
  same->names[rank] = std::string(name);
}

std::string RankCauses::Ranks(const Cause& cause) {
  const auto& first = *cause.names.begin();
  const auto& last = *cause.names.rbegin();
  std::string name = PrintableText(first.second, kNameLimit);
  if (cause.names.size() == 1) return name;
  if (cause.names.size() == 2) {
    return absl::StrCat("each of ", name, " and ", PrintableText(last.second, kNameLimit));
  }
  std::set<int> ranks;
  for (const auto& [rank, unused] : cause.names) ranks.insert(rank);
  return absl::StrCat("each of ", RankRanges(ranks));
}

std::string RankCauses::Text() const {
  std::vector<const Cause*> causes;
  causes.reserve(causes_.size());
  for (const Cause& cause : causes_) causes.push_back(&cause);
  std::stable_sort(causes.begin(), causes.end(), [](const Cause* a, const Cause* b) {
    return a->names.begin()->first < b->names.begin()->first;
  });
  const size_t shown = std::min(causes.size(), kMostCauses);
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    const std::string ranks = Ranks(*causes[i]);
    absl::StrAppend(&text, i == 0 ? "" : "; ", ranks,
                    PrintableText(causes[i]->text, kCausesBytes / shown - ranks.size()));
  }
  if (shown == causes.size()) return text;
  std::set<int> others;
  for (size_t i = shown; i < causes.size(); ++i) {
    for (const auto& [rank, unused] : causes[i]->names) others.insert(rank);
  }
  return absl::StrCat(text, "; and ", causes.size() - shown, " more causes (", RankRanges(others),
                      ")");
}

}  // namespace railhead
