// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_OPERATOR_LABEL_SELECTOR_H_
#define RAILHEAD_OPERATOR_LABEL_SELECTOR_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/json.h"

namespace railhead::op {

using Labels = std::map<std::string, std::string>;

// The LabelSelector of the Kubernetes API (meta/v1): all of it must hold. Without anything in it,
// it matches everything.
struct LabelSelector {
  enum class Operator { kIn, kNotIn, kExists, kDoesNotExist };
  struct Expression {
    std::string key;
    Operator how = Operator::kExists;
    std::set<std::string> values;  // of kIn and kNotIn

    bool operator==(const Expression&) const = default;
  };

  Labels labels;
  std::vector<Expression> expressions;

  // An absent label is "not in" any values.
  bool Matches(const Labels& candidate) const;

  bool operator==(const LabelSelector&) const = default;
};

// Whether there are labels that both match. Exact: keys do not depend on each other, and there are
// always more values than a selector can name.
bool CanBothMatch(const LabelSelector& a, const LabelSelector& b);

// Whether `wide` matches all labels that both match. Exact, too.
bool MatchesAllOfBoth(const LabelSelector& wide, const LabelSelector& a, const LabelSelector& b);

// Reads {matchLabels, matchExpressions}. InvalidArgument begins with the path of the wrong field
// below `path`.
absl::StatusOr<LabelSelector> ParseLabelSelector(const kube::Json& value, absl::string_view path);

// The labels of an object's metadata; those that are no text are left out.
Labels LabelsOf(const kube::Json& object);

}  // namespace railhead::op

#endif  // RAILHEAD_OPERATOR_LABEL_SELECTOR_H_
