// SPDX-License-Identifier: Apache-2.0
//
// Label selectors of the Kubernetes API: parsing, matching, overlap. Pure. Used by profiles and
// gangs.
#ifndef RAILHEAD_OPERATOR_OBJECTS_LABEL_SELECTOR_H_
#define RAILHEAD_OPERATOR_OBJECTS_LABEL_SELECTOR_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/json.h"

namespace railhead::op {

using Labels = std::map<std::string, std::string>;

// A LabelSelector of the Kubernetes API (meta/v1): all requirements must hold. An empty one matches
// everything.
struct LabelSelector {
  enum class Operator { kIn, kNotIn, kExists, kDoesNotExist };
  struct Expression {
    std::string key;
    Operator how = Operator::kExists;
    std::set<std::string> values;  // for kIn and kNotIn

    bool operator==(const Expression&) const = default;
  };

  Labels labels;
  std::vector<Expression> expressions;

  // An absent label satisfies kNotIn.
  bool Matches(const Labels& candidate) const;
  // Returns the same for labels of any type. `value_of`: the value of a key, null if absent.
  bool MatchesValues(absl::FunctionRef<const std::string*(const std::string& key)> value_of) const;

  bool operator==(const LabelSelector&) const = default;
};

// Returns true if some set of labels matches both. Exact: keys are independent, and there are
// always more values than a selector lists.
bool CanBothMatch(const LabelSelector& a, const LabelSelector& b);

// Returns true if `wide` matches all labels that match both `a` and `b`. Exact.
bool MatchesAllOfBoth(const LabelSelector& wide, const LabelSelector& a, const LabelSelector& b);

// Parses {matchLabels, matchExpressions}. Returns InvalidArgument, beginning with the path of the
// invalid field below `path`.
absl::StatusOr<LabelSelector> ParseLabelSelector(const kube::Json& value, absl::string_view path);

// Returns the labels in an object's metadata; drops values that are not strings.
Labels LabelsOf(const kube::Json& object);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_OBJECTS_LABEL_SELECTOR_H_
