// SPDX-License-Identifier: Apache-2.0
#include "kube/client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace railhead::kube {
namespace {

absl::StatusCode CodeFor(int http_status, absl::string_view reason) {
  switch (http_status) {
    case 400:
    case 415:
    case 422:
      return absl::StatusCode::kInvalidArgument;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 409:
      return reason == "AlreadyExists" ? absl::StatusCode::kAlreadyExists
                                       : absl::StatusCode::kAborted;
    case 410:
      return absl::StatusCode::kOutOfRange;
    case 413:
      return absl::StatusCode::kResourceExhausted;
    case 504:
      return absl::StatusCode::kDeadlineExceeded;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

}  // namespace

std::string Escape(absl::string_view part) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : part) {
    const auto byte = static_cast<unsigned char>(c);
    const bool unreserved = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                            (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '~' ||
                            (c == '.' && part != "." && part != "..");
    if (unreserved) {
      out.push_back(c);
    } else {
      out.push_back('%');
      out.push_back(kHex[byte >> 4U]);
      out.push_back(kHex[byte & 15U]);
    }
  }
  return out;
}

std::string ObjectRef::Path() const {
  std::string path = absl::StrContains(api, '/') ? "/apis" : "/api";
  const size_t slash = api.find('/');
  if (slash == std::string::npos) {
    absl::StrAppend(&path, "/", Escape(api));
  } else {
    absl::StrAppend(&path, "/", Escape(api.substr(0, slash)), "/", Escape(api.substr(slash + 1)));
  }
  if (!space.empty()) absl::StrAppend(&path, "/namespaces/", Escape(space));
  absl::StrAppend(&path, "/", Escape(resource));
  if (!name.empty()) absl::StrAppend(&path, "/", Escape(name));
  if (!subresource.empty()) absl::StrAppend(&path, "/", Escape(subresource));
  return path;
}

std::string ObjectRef::ToString() const {
  return absl::StrCat(resource, subresource.empty() ? "" : "/", subresource, " ", space,
                      space.empty() ? "" : "/", name);
}

absl::StatusOr<Json> Get(Api& api, const ObjectRef& ref) {
  return api.Call({"GET", ref.Path(), "", "", absl::StrCat("get ", ref.ToString())});
}

absl::StatusOr<Json> Patch(Api& api, const ObjectRef& ref, PatchType type, const Json& patch,
                           absl::Duration within) {
  const std::string limit =
      within == absl::InfiniteDuration()
          ? ""
          : absl::StrCat("?timeout=", absl::ToInt64Milliseconds(within), "ms");
  return api.Call(
      {"PATCH", ref.Path() + limit,
       type == PatchType::kMerge ? "application/merge-patch+json" : "application/json-patch+json",
       DumpJson(patch), absl::StrCat("patch ", ref.ToString())});
}

absl::Status Delete(Api& api, const ObjectRef& ref, absl::string_view uid,
                    absl::string_view resource_version) {
  const Json options = {
      {"apiVersion", "v1"},
      {"kind", "DeleteOptions"},
      {"preconditions",
       {{"uid", std::string(uid)}, {"resourceVersion", std::string(resource_version)}}}};
  return api
      .Call({"DELETE", ref.Path(), "application/json", DumpJson(options),
             absl::StrCat("delete ", ref.ToString())})
      .status();
}

absl::Status Evict(Api& api, const ObjectRef& pod, absl::string_view uid,
                   absl::string_view resource_version) {
  const Json eviction = {
      {"apiVersion", "policy/v1"},
      {"kind", "Eviction"},
      {"metadata", {{"name", pod.name}, {"namespace", pod.space}}},
      {"deleteOptions",
       {{"preconditions",
         {{"uid", std::string(uid)}, {"resourceVersion", std::string(resource_version)}}}}}};
  return api
      .Call({"POST", absl::StrCat(pod.Path(), "/eviction"), "application/json", DumpJson(eviction),
             absl::StrCat("evict ", pod.ToString())})
      .status();
}

absl::StatusOr<Json> Api::CallList(const ApiRequest& request,
                                   absl::FunctionRef<absl::Status(const Json& object)> visit) {
  absl::StatusOr<Json> answer = Call(request);
  if (!answer.ok() || !answer->is_object()) return answer;
  const auto items = answer->find("items");
  if (items == answer->end() || !items->is_array()) return answer;
  Json others = Json::array();
  for (Json& item : *items) {
    if (!item.is_object()) {
      others.push_back(std::move(item));
    } else if (absl::Status visited = visit(item); !visited.ok()) {
      return visited;
    }
  }
  *items = std::move(others);
  return answer;
}

absl::StatusOr<ListPage> ListOnce(Api& api, const ObjectRef& collection, const ListOptions& options,
                                  absl::FunctionRef<absl::Status(const Json& object)> visit) {
  const std::string what = absl::StrCat("list ", collection.ToString());
  absl::Status nameless =
      absl::DataLossError(absl::StrCat(what, ": an object has no metadata.name"));
  const absl::StatusOr<Json> answer =
      api.CallList({"GET",
                    absl::StrCat(collection.Path(), "?limit=", options.limit,
                                 options.selector.empty() ? "" : "&", options.selector,
                                 options.go_on.empty() ? "" : "&continue=", Escape(options.go_on)),
                    "", "", what},
                   [&](const Json& item) {
                     return StringAt(item, {"metadata", "name"}).empty() ? nameless : visit(item);
                   });
  if (!answer.ok()) return answer.status();
  const Json* items = Find(*answer, "items");
  if (items == nullptr || !items->is_array()) {
    return absl::DataLossError(absl::StrCat(what, ": the response is not a list"));
  }
  if (!items->empty()) return nameless;  // elements that are not objects were not visited
  ListPage page;
  page.resource_version = StringAt(*answer, {"metadata", "resourceVersion"});
  page.go_on = StringAt(*answer, {"metadata", "continue"});
  if (page.resource_version.empty()) {
    return absl::DataLossError(absl::StrCat(what, ": no metadata.resourceVersion"));
  }
  return page;
}

absl::StatusOr<ListPage> ListWhatFits(Api& api, const ObjectRef& collection, ListOptions& options,
                                      absl::FunctionRef<absl::Status(const Json& object)> visit) {
  for (;;) {
    bool visited = false;
    absl::StatusOr<ListPage> page = ListOnce(api, collection, options, [&](const Json& object) {
      visited = true;
      return visit(object);
    });
    // After a visit, the error is that of `visit`.
    if (!absl::IsResourceExhausted(page.status()) || visited || options.limit <= 1) return page;
    options.limit /= 2;
  }
}

absl::Status ForEach(Api& api, const ObjectRef& collection,
                     const std::function<absl::Status(const Json&)>& visit,
                     absl::string_view selector) {
  ListOptions options;
  const int longest = options.limit;
  options.selector = std::string(selector);
  do {
    const absl::StatusOr<ListPage> page = ListWhatFits(api, collection, options, visit);
    if (!page.ok()) return page.status();
    options.go_on = page->go_on;
    options.limit = std::min(longest, 2 * options.limit);
  } while (!options.go_on.empty());
  return absl::OkStatus();
}

absl::StatusOr<Json> Create(Api& api, const ObjectRef& ref, const Json& object) {
  return api.Call({"POST", ref.Path(), "application/json", DumpJson(object),
                   absl::StrCat("create ", ref.ToString())});
}

absl::StatusOr<Json> Apply(Api& api, const ObjectRef& ref, absl::string_view manager,
                           const Json& object) {
  return api.Call({"PATCH", absl::StrCat(ref.Path(), "?force=true&fieldManager=", Escape(manager)),
                   "application/apply-patch+yaml", DumpJson(object),
                   absl::StrCat("apply ", ref.ToString())});
}

absl::Status StatusFromAnswer(absl::string_view what, int http_status, absl::string_view body) {
  std::string reason;
  std::string message;
  if (const absl::StatusOr<Json> status = ParseJson(body); status.ok()) {
    reason = StringAt(*status, {"reason"});
    message = StringAt(*status, {"message"});
  }
  return absl::Status(CodeFor(http_status, reason),
                      absl::StrCat(what, ": the API server answered ", http_status,
                                   reason.empty() ? "" : " ", reason, message.empty() ? "" : ": ",
                                   absl::string_view(message).substr(0, 1024)));
}

}  // namespace railhead::kube
