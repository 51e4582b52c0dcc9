// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/node_rules.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kube/elements.h"
#include "operator/objects/names.h"

namespace railhead::op::gangs {
namespace {

using kube::Find;
using kube::FindPath;
using kube::Json;
using kube::StringAt;

std::vector<NodeExpression> ReadExpressions(const Json& term, absl::string_view member,
                                            bool of_field) {
  std::vector<NodeExpression> expressions;
  for (const Json& entry : kube::ElementsAt(term, {member})) {
    NodeExpression expression;
    expression.of_field = of_field;
    expression.key = StringAt(entry, {"key"});
    expression.how = StringAt(entry, {"operator"});
    for (const Json& value : kube::ElementsAt(entry, {"values"})) {
      if (value.is_string()) expression.values.push_back(value.get<std::string>());
    }
    std::sort(expression.values.begin(), expression.values.end());
    expressions.push_back(std::move(expression));
  }
  return expressions;
}

bool Holds(const NodeExpression& expression, const std::string& name, const LabelSet& labels) {
  if (expression.of_field && expression.key != "metadata.name") return false;
  const std::string* found = labels.Find(expression.key);
  const bool has = expression.of_field || found != nullptr;
  const std::string& value = expression.of_field || !has ? name : *found;
  const bool listed =
      has && std::binary_search(expression.values.begin(), expression.values.end(), value);
  if (expression.how == "In") return listed;
  if (expression.how == "NotIn") return !listed;
  if (expression.how == "Exists") return has;
  if (expression.how == "DoesNotExist") return !has;
  int64_t is = 0;
  int64_t than = 0;
  if (!has || expression.values.size() != 1 || !absl::SimpleAtoi(value, &is) ||
      !absl::SimpleAtoi(expression.values[0], &than)) {
    return false;
  }
  if (expression.how == "Gt") return is > than;
  return expression.how == "Lt" && is < than;
}

// An integer as the scheduler takes it in a toleration: in decimal, without "+" and leading zeros.
std::optional<int64_t> CanonicalInteger(const std::string& text) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || absl::StrCat(value) != text) return std::nullopt;
  return value;
}

// Compares the taint's value with the toleration's: greater ("Gt") or less; both are integers.
bool ToleratesByValue(const Toleration& toleration, const Taint& taint) {
  const std::optional<int64_t> limit = CanonicalInteger(toleration.value);
  const std::optional<int64_t> value = CanonicalInteger(taint.value);
  if (!limit || !value) return false;
  return toleration.how == "Gt" ? *value > *limit : *value < *limit;
}

bool Tolerates(const Toleration& toleration, const Taint& taint) {
  if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
  if (!toleration.key.empty() && toleration.key != taint.key) return false;
  if (toleration.how == "Exists") return true;
  if (toleration.how == "Equal") return toleration.value == taint.value;
  // From Kubernetes 1.35 on (TaintTolerationComparisonOperators). The API server takes them only if
  // the scheduler knows them.
  if (toleration.how == "Gt" || toleration.how == "Lt") return ToleratesByValue(toleration, taint);
  return false;
}

}  // namespace

NodeRules ReadNodeRules(const Json& spec) {
  NodeRules rules;
  const Json* selector = Find(spec, "nodeSelector");
  if (selector != nullptr && selector->is_object()) {
    for (const auto& [key, value] : selector->items()) {
      if (value.is_string()) rules.selector[key] = value.get<std::string>();
    }
  }
  const Json* terms =
      FindPath(spec, {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
                      "nodeSelectorTerms"});
  if (terms != nullptr && terms->is_array()) {
    rules.has_terms = true;
    for (const Json& term : *terms) {
      std::vector<NodeExpression> all = ReadExpressions(term, "matchExpressions", false);
      for (NodeExpression& field : ReadExpressions(term, "matchFields", true)) {
        all.push_back(std::move(field));
      }
      // A term without anything in it matches nothing.
      if (!all.empty()) rules.terms.push_back(std::move(all));
    }
  }
  for (const Json& entry : kube::ElementsAt(spec, {"tolerations"})) {
    const std::string how = StringAt(entry, {"operator"});
    rules.tolerations.push_back({StringAt(entry, {"key"}), how.empty() ? "Equal" : how,
                                 StringAt(entry, {"value"}), StringAt(entry, {"effect"})});
  }
  return rules;
}

NodeRules ReadHostname(const Json& spec) {
  NodeRules rules;
  std::string hostname = StringAt(spec, {"nodeSelector", kHostname});
  if (!hostname.empty()) rules.selector[kHostname] = std::move(hostname);
  return rules;
}

std::vector<Taint> ReadTaints(const Json& node_spec) {
  std::vector<Taint> taints;
  for (const Json& entry : kube::ElementsAt(node_spec, {"taints"})) {
    taints.push_back(
        {StringAt(entry, {"key"}), StringAt(entry, {"value"}), StringAt(entry, {"effect"})});
  }
  return taints;
}

std::string WhyNot(const NodeRules& rules, const std::string& name, const LabelSet& labels,
                   const std::vector<Taint>& taints) {
  for (const Taint& taint : taints) {
    if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") continue;
    const bool tolerated =
        std::any_of(rules.tolerations.begin(), rules.tolerations.end(),
                    [&](const Toleration& toleration) { return Tolerates(toleration, taint); });
    if (!tolerated) {
      return absl::StrCat("taint ", taint.key, taint.value.empty() ? "" : "=", taint.value, ":",
                          taint.effect, " that the pods do not tolerate");
    }
  }
  for (const auto& [key, value] : rules.selector) {
    const std::string* found = labels.Find(key);
    if (found == nullptr || *found != value) {
      return absl::StrCat("no match for the pods' nodeSelector ", key, "=", value);
    }
  }
  if (!rules.has_terms) return "";
  const bool one = std::any_of(rules.terms.begin(), rules.terms.end(), [&](const auto& term) {
    return std::all_of(term.begin(), term.end(), [&](const NodeExpression& expression) {
      return Holds(expression, name, labels);
    });
  });
  return one ? "" : "no match for the pods' required node affinity";
}

}  // namespace railhead::op::gangs
