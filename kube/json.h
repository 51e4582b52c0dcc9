// SPDX-License-Identifier: Apache-2.0
//
// JSON as Kubernetes speaks it: a value type, a parser that refuses instead of throwing, and views
// into documents whose shape is not known. Nothing here throws on any input.
#ifndef RAILHEAD_KUBE_JSON_H_
#define RAILHEAD_KUBE_JSON_H_

#include <cstddef>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace railhead::kube {

using Json = nlohmann::json;

// Deeper documents are refused: writing a document back is recursive.
inline constexpr int kMaxJsonDepth = 200;

// Parses one document. InvalidArgument for anything that is not JSON in UTF-8 or nests deeper than
// kMaxJsonDepth. The caller has bounded the size of `text`.
absl::StatusOr<Json> ParseJson(absl::string_view text);

// At most how many bytes of memory ParseJson's result takes: a scan, which builds nothing. A text
// of 4 MiB may need 100 MiB.
size_t JsonTreeBytes(absl::string_view text);

// The document in one line; strings that are not UTF-8 get replacement characters.
std::string DumpJson(const Json& value);

// The member `key`, or null when `object` is not an object or has no such member.
const Json* Find(const Json& object, absl::string_view key);

// The same along a path of members.
const Json* FindPath(const Json& object, std::initializer_list<absl::string_view> path);

// The string at a path; empty when there is none or it is not a string.
std::string StringAt(const Json& object, std::initializer_list<absl::string_view> path);

// A member's name as one token of a JSON Pointer ('~' and '/' escaped).
std::string PointerToken(absl::string_view key);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_JSON_H_
