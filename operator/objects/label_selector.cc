// SPDX-License-Identifier: Apache-2.0
#include "operator/objects/label_selector.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "operator/objects/fields.h"

namespace railhead::op {
namespace {

using kube::Json;

// `value`: null if there is no such label.
bool Holds(const LabelSelector::Expression& expression, const std::string* value) {
  const bool there = value != nullptr;
  const bool listed = there && expression.values.count(*value) > 0;
  switch (expression.how) {
    case LabelSelector::Operator::kIn:
      return listed;
    case LabelSelector::Operator::kNotIn:
      return !listed;
    case LabelSelector::Operator::kExists:
      return there;
    case LabelSelector::Operator::kDoesNotExist:
      return !there;
  }
  return false;
}

// Values of one key that all expressions about it allow.
struct Room {
  bool present = false;  // the label must be there
  bool absent = false;   // it must not
  std::optional<std::set<std::string>> only;
  std::set<std::string> never;

  void Restrict(const LabelSelector::Expression& expression) {
    switch (expression.how) {
      case LabelSelector::Operator::kIn:
        present = true;
        if (!only) only = expression.values;
        std::erase_if(*only, [&](const auto& value) { return !expression.values.contains(value); });
        return;
      case LabelSelector::Operator::kNotIn:
        never.insert(expression.values.begin(), expression.values.end());
        return;
      case LabelSelector::Operator::kExists:
        present = true;
        return;
      case LabelSelector::Operator::kDoesNotExist:
        absent = true;
        return;
    }
  }
  bool Any() const {
    if (absent) return !present;
    return !only || std::any_of(only->begin(), only->end(),
                                [&](const auto& value) { return !never.contains(value); });
  }
};

// All of it as expressions.
std::vector<LabelSelector::Expression> AllOf(const LabelSelector& selector) {
  std::vector<LabelSelector::Expression> all = selector.expressions;
  for (const auto& [key, value] : selector.labels) {
    all.push_back({key, LabelSelector::Operator::kIn, {value}});
  }
  return all;
}

// By key; a key that no expression is about may be anything.
std::map<std::string, Room> RoomsOf(std::initializer_list<const LabelSelector*> selectors) {
  std::map<std::string, Room> rooms;
  for (const LabelSelector* selector : selectors) {
    for (const LabelSelector::Expression& expression : AllOf(*selector)) {
      rooms[expression.key].Restrict(expression);
    }
  }
  return rooms;
}

LabelSelector::Expression Opposite(LabelSelector::Expression expression) {
  switch (expression.how) {
    case LabelSelector::Operator::kIn:
      expression.how = LabelSelector::Operator::kNotIn;
      break;
    case LabelSelector::Operator::kNotIn:
      expression.how = LabelSelector::Operator::kIn;
      break;
    case LabelSelector::Operator::kExists:
      expression.how = LabelSelector::Operator::kDoesNotExist;
      break;
    case LabelSelector::Operator::kDoesNotExist:
      expression.how = LabelSelector::Operator::kExists;
      break;
  }
  return expression;
}

absl::StatusOr<LabelSelector::Operator> ParseOperator(const Json* value, absl::string_view path) {
  const std::string word = value != nullptr && value->is_string() ? value->get<std::string>() : "";
  if (word == "In") return LabelSelector::Operator::kIn;
  if (word == "NotIn") return LabelSelector::Operator::kNotIn;
  if (word == "Exists") return LabelSelector::Operator::kExists;
  if (word == "DoesNotExist") return LabelSelector::Operator::kDoesNotExist;
  return FieldError(path, "must be In, NotIn, Exists or DoesNotExist");
}

absl::StatusOr<std::string> ParseKey(const Json* value, absl::string_view path) {
  if (value == nullptr) return FieldError(path, "is missing");
  absl::StatusOr<std::string> key = ReadString(*value, path);
  if (key.ok() && key->empty()) return FieldError(path, "must not be empty");
  return key;
}

absl::StatusOr<LabelSelector::Expression> ParseExpression(const Json& value,
                                                          const std::string& path) {
  if (absl::Status known = CheckMembers(value, path, {"key", "operator", "values"}); !known.ok()) {
    return known;
  }
  LabelSelector::Expression expression;
  absl::StatusOr<std::string> key = ParseKey(Member(value, "key"), path + ".key");
  if (!key.ok()) return key.status();
  expression.key = *std::move(key);
  const absl::StatusOr<LabelSelector::Operator> how =
      ParseOperator(Member(value, "operator"), path + ".operator");
  if (!how.ok()) return how.status();
  expression.how = *how;

  const std::string values_path = path + ".values";
  if (const Json* values = Member(value, "values"); values != nullptr) {
    if (!values->is_array()) return FieldError(values_path, "must be a list");
    for (size_t i = 0; i < values->size(); ++i) {
      absl::StatusOr<std::string> entry =
          ReadString((*values)[i], absl::StrCat(values_path, "[", i, "]"));
      if (!entry.ok()) return entry.status();
      expression.values.insert(*std::move(entry));
    }
  }
  const bool wants_values = expression.how == LabelSelector::Operator::kIn ||
                            expression.how == LabelSelector::Operator::kNotIn;
  if (wants_values && expression.values.empty()) {
    return FieldError(values_path, "must not be empty for In and NotIn");
  }
  if (!wants_values && !expression.values.empty()) {
    return FieldError(values_path, "must be empty for Exists and DoesNotExist");
  }
  return expression;
}

}  // namespace

bool LabelSelector::Matches(const Labels& candidate) const {
  return MatchesValues([&candidate](const std::string& key) {
    const auto found = candidate.find(key);
    return found == candidate.end() ? nullptr : &found->second;
  });
}

bool LabelSelector::MatchesValues(
    absl::FunctionRef<const std::string*(const std::string& key)> value_of) const {
  return std::all_of(labels.begin(), labels.end(),
                     [&](const auto& label) {
                       const std::string* value = value_of(label.first);
                       return value != nullptr && *value == label.second;
                     }) &&
         std::all_of(expressions.begin(), expressions.end(), [&](const Expression& expression) {
           return Holds(expression, value_of(expression.key));
         });
}

absl::StatusOr<LabelSelector> ParseLabelSelector(const Json& value, absl::string_view path) {
  if (absl::Status known = CheckMembers(value, path, {"matchLabels", "matchExpressions"});
      !known.ok()) {
    return known;
  }
  LabelSelector selector;
  if (const Json* labels = Member(value, "matchLabels"); labels != nullptr) {
    const std::string labels_path = JoinPath(path, "matchLabels");
    if (!labels->is_object()) return FieldError(labels_path, "must be an object of labels");
    for (const auto& [key, entry] : labels->items()) {
      absl::StatusOr<std::string> text =
          ReadString(entry, absl::StrCat(labels_path, "[", key, "]"));
      if (!text.ok()) return text.status();
      selector.labels[key] = *std::move(text);
    }
  }
  if (const Json* expressions = Member(value, "matchExpressions"); expressions != nullptr) {
    const std::string list_path = JoinPath(path, "matchExpressions");
    if (!expressions->is_array()) return FieldError(list_path, "must be a list");
    for (size_t i = 0; i < expressions->size(); ++i) {
      absl::StatusOr<LabelSelector::Expression> expression =
          ParseExpression((*expressions)[i], absl::StrCat(list_path, "[", i, "]"));
      if (!expression.ok()) return expression.status();
      selector.expressions.push_back(*std::move(expression));
    }
  }
  return selector;
}

bool CanBothMatch(const LabelSelector& a, const LabelSelector& b) {
  const std::map<std::string, Room> rooms = RoomsOf({&a, &b});
  return std::all_of(rooms.begin(), rooms.end(),
                     [](const auto& room) { return room.second.Any(); });
}

bool MatchesAllOfBoth(const LabelSelector& wide, const LabelSelector& a, const LabelSelector& b) {
  if (!CanBothMatch(a, b)) return true;
  const std::map<std::string, Room> rooms = RoomsOf({&a, &b});
  // Keys do not depend on each other: what both match can fail one requirement, or it meets all.
  const std::vector<LabelSelector::Expression> all = AllOf(wide);
  return std::none_of(all.begin(), all.end(), [&](const LabelSelector::Expression& expression) {
    const auto at = rooms.find(expression.key);
    Room room = at == rooms.end() ? Room() : at->second;
    room.Restrict(Opposite(expression));
    return room.Any();
  });
}

Labels LabelsOf(const Json& object) {
  Labels labels;
  const Json* found = kube::FindPath(object, {"metadata", "labels"});
  if (found == nullptr || !found->is_object()) return labels;
  for (const auto& [key, value] : found->items()) {
    if (value.is_string()) labels[key] = value.get<std::string>();
  }
  return labels;
}

}  // namespace railhead::op
