// SPDX-License-Identifier: Apache-2.0
//
// Client of the Kubernetes API: JSON in, JSON out, one deadline per call. Used by the agent, the
// operator and the command line; implemented by RestClient.
#ifndef RAILHEAD_KUBE_CLIENT_H_
#define RAILHEAD_KUBE_CLIENT_H_

#include <functional>
#include <stop_token>
#include <string>

#include "absl/functional/function_ref.h"
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

  // Returns the path below the server's address, each part escaped.
  std::string Path() const;
  // Returns "secrets namespace/name", for messages.
  std::string ToString() const;
};

struct ApiRequest {
  std::string method;  // "GET", "PATCH", ...
  std::string path;    // starts with '/'; includes the query
  std::string content_type;
  std::string body;
  std::string subject;  // for messages: the object of the call
  // Limit of this call; the client's own limit applies, too.
  absl::Duration timeout = absl::InfiniteDuration();
};

// A response that is read while it is written, such as a watch.
struct StreamRequest {
  std::string path;        // starts with '/'; includes the query
  std::string subject;     // for messages
  absl::Duration timeout;  // of the whole response
  absl::Duration silence;  // maximum time without a byte
  std::stop_token stop;    // ends the stream with Cancelled
};

// An API server. Implementations are thread-safe.
class Api {
 public:
  virtual ~Api() = default;
  // Returns the body of a 2xx response. Errors:
  //   NotFound (404), Aborted (409 Conflict: reload and try again), AlreadyExists (409),
  //   Unauthenticated (401), PermissionDenied (403), InvalidArgument (400, 415, 422),
  //   OutOfRange (410, an expired list or watch), ResourceExhausted (413, an answer too large),
  //   DeadlineExceeded (504, or no response in time), Cancelled, and Unavailable for all others
  //   (429, 5xx, no connection, an untrusted server certificate): a retry may help.
  // The message contains the server's reason, and never a token.
  virtual absl::StatusOr<Json> Call(const ApiRequest& request) = 0;
  // As Call, for a list: calls `visit` with each object in the answer's `items` and returns the
  // answer without them. Stops at the first error of `visit` and returns it. RestClient reads one
  // object at a time, so a page of large objects takes little memory.
  virtual absl::StatusOr<Json> CallList(const ApiRequest& request,
                                        absl::FunctionRef<absl::Status(const Json& object)> visit);
  // Passes on the body of a 2xx response as it arrives, in pieces of any size, on the caller's
  // thread. Returns OK if the server ended it; the error of `on_bytes`, which ends the stream;
  // DeadlineExceeded after either time limit of the request; else the errors of Call.
  virtual absl::Status Stream(const StreamRequest& request,
                              const std::function<absl::Status(absl::string_view)>& on_bytes) = 0;
};

enum class PatchType {
  kMerge,  // RFC 7386
  kJson,   // RFC 6902
};

absl::StatusOr<Json> Get(Api& api, const ObjectRef& ref);
// Patches an object. A patch that contains metadata.resourceVersion applies to that version only:
// Aborted otherwise. `within` limits the server, too: it does not apply the patch after that
// time.
absl::StatusOr<Json> Patch(Api& api, const ObjectRef& ref, PatchType type, const Json& patch,
                           absl::Duration within = absl::InfiniteDuration());

// Deletes this version of this object only: Aborted if it has changed.
absl::Status Delete(Api& api, const ObjectRef& ref, absl::string_view uid,
                    absl::string_view resource_version);

// Evicts this version of this pod only, as Delete does. The pod gets the condition
// DisruptionTarget, which marks its end as a disruption, not a failure.
absl::Status Evict(Api& api, const ObjectRef& pod, absl::string_view uid,
                   absl::string_view resource_version);

struct ListOptions {
  int limit = 250;    // objects per page; the server may send fewer
  std::string go_on;  // continue token of the previous page; empty for the first
  // Part of the query, such as "labelSelector=app%3Dnccl", escaped; empty: all objects.
  std::string selector = {};
};
struct ListPage {
  std::string resource_version;  // of the whole list; a watch from here misses nothing
  std::string go_on;             // continue token; empty after the last page
};
// Visits the objects of one page of the latest state; each has a name. All pages of a list have one
// version, which the server keeps for some minutes: OutOfRange after that; restart the list then.
// DataLoss if the response is not a list. Objects before an error have been visited.
absl::StatusOr<ListPage> ListOnce(Api& api, const ObjectRef& collection, const ListOptions& options,
                                  absl::FunctionRef<absl::Status(const Json& object)> visit);
// As ListOnce, for objects of any size: while the page is too large an answer, halves
// `options.limit` and requests it again.
absl::StatusOr<ListPage> ListWhatFits(Api& api, const ObjectRef& collection, ListOptions& options,
                                      absl::FunctionRef<absl::Status(const Json& object)> visit);
// Visits the objects of a collection that a selector of ListOptions leaves, of any size, page by
// page; stops at the first error.
absl::Status ForEach(Api& api, const ObjectRef& collection,
                     const std::function<absl::Status(const Json&)>& visit,
                     absl::string_view selector = "");
// Creates `object`; the server may generate its name. `ref` names the collection. AlreadyExists if
// the name is taken.
absl::StatusOr<Json> Create(Api& api, const ObjectRef& ref, const Json& object);
// Server-side apply: replaces all fields that `manager` applied before by those of `object`. Takes
// fields from other managers. `object` needs apiVersion and kind.
absl::StatusOr<Json> Apply(Api& api, const ObjectRef& ref, absl::string_view manager,
                           const Json& object);

// Percent-encodes a path segment or query value: all but letters, digits and "-._~", so that it
// cannot change the path or the query.
std::string Escape(absl::string_view part);

// Returns the error for a response other than 2xx. `body` is the API server's Status object, if it
// sent one.
absl::Status StatusFromAnswer(absl::string_view what, int http_status, absl::string_view body);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_CLIENT_H_
