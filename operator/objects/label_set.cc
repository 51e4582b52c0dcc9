// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/label_set.h"

#include <algorithm>

namespace railhead::op {

LabelSet::LabelSet(const Labels& labels) {
  labels_.reserve(labels.size());
  for (const auto& [key, value] : labels) labels_.emplace_back(Label(key, value));
}

const std::string* LabelSet::Find(absl::string_view key) const {
  const auto at = std::lower_bound(
      labels_.begin(), labels_.end(), key,
      [](const SharedValue<Label>& label, absl::string_view name) { return label->first < name; });
  return at == labels_.end() || (*at)->first != key ? nullptr : &(*at)->second;
}

LabelSet LabelSet::SharedIn(Pool& pool) const {
  LabelSet shared;
  shared.labels_.reserve(labels_.size());
  for (const SharedValue<Label>& label : labels_) shared.labels_.push_back(pool.Share(label));
  return shared;
}

bool Matches(const LabelSelector& selector, const LabelSet& labels) {
  return selector.MatchesValues([&labels](const std::string& key) { return labels.Find(key); });
}

}  // namespace railhead::op
