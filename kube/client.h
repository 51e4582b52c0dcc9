// SPDX-License-Identifier: Apache-2.0
//
// Talks to a Kubernetes API server: JSON in, JSON out, one deadline per call.
#ifndef RAILHEAD_KUBE_CLIENT_H_
#define RAILHEAD_KUBE_CLIENT_H_

#include <functional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "kube/json.h"

namespace railhead::kube {

// Names one object of the API.
struct ObjectRef {
  std::string api;               // "v1" or "group/version"
  std::string resource;          // plural, as in RBAC: "secrets"
  std::string space;             // namespace; empty for a cluster-scoped object
  std::string name;              // empty for the collection
  std::string subresource = "";  // "status"

  // The path below the server's address, each part escaped.
  std::string Path() const;
  // For messages: "secrets namespace/name".
  std::string ToString() const;
};

struct ApiRequest {
  std::string method;  // "GET", "PATCH", ...
  std::string path;    // begins with '/'; a query is part of it
  std::string content_type;
  std::string body;
  std::string subject;  // for messages: what the call is about
  // The call takes no longer; nor longer than the client itself allows.
  absl::Duration timeout = absl::InfiniteDuration();
};

// An answer that is read while it is written: a watch.
struct StreamRequest {
  std::string path;        // begins with '/'; a query is part of it
  std::string subject;     // for messages
  absl::Duration timeout;  // of the whole
  absl::Duration silence;  // the longest time without a byte
  std::stop_token stop;    // ends it with Cancelled
};

// An API server. Implementations are thread-safe.
class Api {
 public:
  virtual ~Api() = default;
  // The body of a 2xx answer. Everything else is an error:
  //   NotFound (404), Aborted (409 Conflict: reload and try again), AlreadyExists (409),
  //   Unauthenticated (401), PermissionDenied (403), InvalidArgument (400, 415, 422),
  //   OutOfRange (410, an expired list or watch), ResourceExhausted (413, an answer too large),
  //   DeadlineExceeded (504, or no answer in time), Cancelled, and Unavailable for the rest (429,
  //   5xx, no connection, a certificate that is not the cluster's): trying again later may help.
  // The message has the server's own reason, and never a token.
  virtual absl::StatusOr<Json> Call(const ApiRequest& request) = 0;
  // Hands on the body of a 2xx answer as it comes, in pieces of any size, on the caller's thread.
  // OK when the server has ended it; the error of `on_bytes`, which ends it too; DeadlineExceeded
  // when it took too long or fell silent; else an error as of Call.
  virtual absl::Status Stream(const StreamRequest& request,
                              const std::function<absl::Status(absl::string_view)>& on_bytes) = 0;
};

enum class PatchType {
  kMerge,  // RFC 7386
  kJson,   // RFC 6902
};

absl::StatusOr<Json> Get(Api& api, const ObjectRef& ref);
// A patch that contains metadata.resourceVersion applies to exactly that version: Aborted
// otherwise.
// With `within` the server gives up after that time, too: what it has not done by then it never
// does.
absl::StatusOr<Json> Patch(Api& api, const ObjectRef& ref, PatchType type, const Json& patch,
                           absl::Duration within = absl::InfiniteDuration());

// Deletes exactly this version of exactly this object: Aborted when there is another one by now.
absl::Status Delete(Api& api, const ObjectRef& ref, absl::string_view uid,
                    absl::string_view resource_version);

// Evicts exactly this version of exactly this pod, as Delete does; the pod says that it was no
// failure of its own (the condition DisruptionTarget).
absl::Status Evict(Api& api, const ObjectRef& pod, absl::string_view uid,
                   absl::string_view resource_version);

struct ListOptions {
  int limit = 250;    // objects a page; the server may send fewer
  std::string go_on;  // from the page before; empty for the first one
};
struct ListPage {
  Json items;                    // an array of objects that have names
  std::string resource_version;  // of the whole list; a watch from here on misses nothing
  std::string go_on;             // empty after the last page
};
// One page of the latest state. All pages of a list are of one version, which the server keeps for
// some minutes: OutOfRange when it did not, and the list must begin anew. DataLoss when the answer
// is no list.
absl::StatusOr<ListPage> ListOnce(Api& api, const ObjectRef& collection,
                                  const ListOptions& options);
// Visits every object of a collection, page by page; ends at the first error.
absl::Status ForEach(Api& api, const ObjectRef& collection,
                     const std::function<absl::Status(const Json&)>& visit);
// Makes `object`, to which the server may give its name. `ref` names the collection. AlreadyExists
// when there is one of that name.
absl::StatusOr<Json> Create(Api& api, const ObjectRef& ref, const Json& object);
// Server-side apply: of what `manager` has said about the object before, exactly what is in
// `object` remains. Takes fields from other managers. `object` needs apiVersion and kind.
absl::StatusOr<Json> Apply(Api& api, const ObjectRef& ref, absl::string_view manager,
                           const Json& object);

// A part of a path, or a value of a query: all but letters, digits and "-._~" percent-encoded, so
// that it can never become another path or a query.
std::string Escape(absl::string_view part);

// The error for an answer that is not 2xx. `body` is the API server's Status object, if it sent
// one.
absl::Status StatusFromAnswer(absl::string_view what, int http_status, absl::string_view body);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_CLIENT_H_
