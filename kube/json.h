// SPDX-License-Identifier: Apache-2.0
//
// JSON for Kubernetes: a value type, a parser that returns errors, and views of documents of
// unknown shape. No function throws on any input. Used by everything that reads or writes API
// objects.
#ifndef RAILHEAD_KUBE_JSON_H_
#define RAILHEAD_KUBE_JSON_H_

#include <cstddef>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace railhead::kube {

using Json = nlohmann::json;

// Maximum nesting: writing a document is recursive.
inline constexpr int kMaxJsonDepth = 200;

// Parses one document. InvalidArgument if `text` is not JSON in UTF-8 or nests deeper than
// kMaxJsonDepth. The caller bounds the size of `text`.
absl::StatusOr<Json> ParseJson(absl::string_view text);

// As ParseJson, for an object with a list in its member `list`: calls `visit` with each object of
// the list and returns the document without them. So only one of them is in memory as a tree at a
// time. Stops at the first error of `visit` and returns it. Objects before an error have been
// visited.
absl::StatusOr<Json> ParseJsonList(absl::string_view text, absl::string_view list,
                                   absl::FunctionRef<absl::Status(const Json& object)> visit);

// Returns an upper bound of the memory of ParseJson's result in bytes, by a scan. A text of 4 MiB
// may need 100 MiB.
size_t JsonTreeBytes(absl::string_view text);

// Returns the document in one line; replaces invalid UTF-8.
std::string DumpJson(const Json& value);

// Returns the member `key`, or null if `object` is not an object or has no such member.
const Json* Find(const Json& object, absl::string_view key);

// Returns the member at a path, or null.
const Json* FindPath(const Json& object, std::initializer_list<absl::string_view> path);

// Returns the string at a path; empty if absent or not a string.
std::string StringAt(const Json& object, std::initializer_list<absl::string_view> path);

// Escapes a member's name ('~' and '/') as one token of a JSON Pointer.
std::string PointerToken(absl::string_view key);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_JSON_H_
