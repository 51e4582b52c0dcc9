// SPDX-License-Identifier: Apache-2.0
#include "kube/client.h"

#include <curl/curl.h>

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace railhead::kube {
namespace {

constexpr size_t kMaxHeaderBytes = 64U << 10U;
constexpr size_t kMaxIdleConnections = 4;
constexpr int kPageSize = 250;

// Percent-encodes everything but the unreserved characters, so that a name can never become another
// path or a query.
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
    case 429:
      return absl::StatusCode::kResourceExhausted;
    case 504:
      return absl::StatusCode::kDeadlineExceeded;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

// What one transfer collects; libcurl hands it back to the callbacks below.
struct Transfer {
  std::string body;
  size_t header_bytes = 0;
  size_t max_bytes = 0;
  bool too_large = false;
  const std::atomic<bool>* cancelled = nullptr;
};

size_t OnBody(char* data, size_t size, size_t count, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  const size_t bytes = size * count;
  if (bytes > transfer->max_bytes - transfer->body.size()) {
    transfer->too_large = true;
    return 0;
  }
  transfer->body.append(data, bytes);
  return bytes;
}

size_t OnHeader(char* /*data*/, size_t size, size_t count, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  transfer->header_bytes += size * count;
  if (transfer->header_bytes > kMaxHeaderBytes) {
    transfer->too_large = true;
    return 0;
  }
  return size * count;
}

int OnProgress(void* user, curl_off_t /*down_total*/, curl_off_t /*down*/, curl_off_t /*up_total*/,
               curl_off_t /*up*/) {
  return static_cast<Transfer*>(user)->cancelled->load() ? 1 : 0;
}

struct Answer {
  int http_status = 0;
  std::string body;
};

// A header list that frees itself. Appending to libcurl's list can fail only for want of memory.
class Headers {
 public:
  ~Headers() { curl_slist_free_all(list_); }
  Headers() = default;
  Headers(const Headers&) = delete;
  Headers& operator=(const Headers&) = delete;
  void Add(const std::string& line) { list_ = curl_slist_append(list_, line.c_str()); }
  curl_slist* get() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

}  // namespace

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

absl::StatusOr<Json> Patch(Api& api, const ObjectRef& ref, PatchType type, const Json& patch) {
  return api.Call(
      {"PATCH", ref.Path(),
       type == PatchType::kMerge ? "application/merge-patch+json" : "application/json-patch+json",
       DumpJson(patch), absl::StrCat("patch ", ref.ToString())});
}

absl::Status ForEach(Api& api, const ObjectRef& collection,
                     const std::function<absl::Status(const Json&)>& visit) {
  std::string next;
  do {
    const absl::StatusOr<Json> page =
        api.Call({"GET",
                  absl::StrCat(collection.Path(), "?limit=", kPageSize,
                               next.empty() ? "" : "&continue=", Escape(next)),
                  "", "", absl::StrCat("list ", collection.ToString())});
    if (!page.ok()) return page.status();
    const Json* items = Find(*page, "items");
    if (items == nullptr || !items->is_array()) {
      return absl::UnavailableError(
          absl::StrCat("list ", collection.ToString(), ": the answer is no list"));
    }
    for (const Json& item : *items) {
      if (absl::Status status = visit(item); !status.ok()) return status;
    }
    next = StringAt(*page, {"metadata", "continue"});
  } while (!next.empty());
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

struct RestClient::State {
  ClientOptions options;
  std::atomic<bool> cancelled{false};
  std::mutex mutex;  // guards idle
  std::vector<CURL*> idle;

  CURL* Take() {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (!idle.empty()) {
        CURL* handle = idle.back();
        idle.pop_back();
        return handle;
      }
    }
    return curl_easy_init();
  }

  void Return(CURL* handle) {
    // Forgets the options (and with them the token), keeps the connection.
    curl_easy_reset(handle);
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (idle.size() < kMaxIdleConnections) {
        idle.push_back(handle);
        return;
      }
    }
    curl_easy_cleanup(handle);
  }

  absl::StatusOr<Answer> Transact(const ApiRequest& request, const std::string& token);
};

absl::StatusOr<Answer> RestClient::State::Transact(const ApiRequest& request,
                                                   const std::string& token) {
  CURL* curl = Take();
  if (curl == nullptr) return absl::InternalError("cannot make a curl handle");
  Transfer transfer;
  transfer.max_bytes = options.max_answer_bytes;
  transfer.cancelled = &cancelled;
  Headers headers;
  headers.Add("Accept: application/json");
  headers.Add("Expect:");
  headers.Add(absl::StrCat("Authorization: Bearer ", token));
  if (!request.content_type.empty()) {
    headers.Add(absl::StrCat("Content-Type: ", request.content_type));
  }
  const std::string url = absl::StrCat(options.server, request.path);
  char error[CURL_ERROR_SIZE] = "";

  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https");
  curl_easy_setopt(curl, CURLOPT_PROXY, "");  // the cluster is never behind the pod's proxy
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  if (!request.body.empty()) {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.body.c_str());
  }
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "railhead/" RAILHEAD_VERSION);
  curl_easy_setopt(curl, CURLOPT_CAINFO, options.ca_file.c_str());
  curl_easy_setopt(curl, CURLOPT_CAPATH, nullptr);
  curl_easy_setopt(curl, CURLOPT_CA_CACHE_TIMEOUT, 0L);  // the cluster's CA may be replaced
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
  curl_easy_setopt(curl, CURLOPT_SSLVERSION, static_cast<int64_t>(CURL_SSLVERSION_TLSv1_2));
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, absl::ToInt64Milliseconds(options.timeout));
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, static_cast<char*>(error));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, OnBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, OnHeader);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, OnProgress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);

  const CURLcode result = curl_easy_perform(curl);
  int64_t http_status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &http_status);
  Return(curl);

  const auto failed = [&](absl::StatusCode code, absl::string_view why) {
    return absl::Status(code, absl::StrCat(request.subject, " at ", options.server, ": ", why));
  };
  if (cancelled.load()) return failed(absl::StatusCode::kCancelled, "the client is stopping");
  if (transfer.too_large) {
    return failed(absl::StatusCode::kResourceExhausted,
                  absl::StrCat("the answer is larger than ", transfer.max_bytes, " bytes"));
  }
  if (result == CURLE_OPERATION_TIMEDOUT) {
    return failed(
        absl::StatusCode::kDeadlineExceeded,
        absl::StrCat("no complete answer within ", absl::FormatDuration(options.timeout)));
  }
  if (result != CURLE_OK) {
    return failed(absl::StatusCode::kUnavailable,
                  error[0] != '\0' ? static_cast<const char*>(error) : curl_easy_strerror(result));
  }
  return Answer{static_cast<int>(http_status), std::move(transfer.body)};
}

RestClient::RestClient(ClientOptions options) : state_(std::make_unique<State>()) {
  // Not thread-safe by itself in every build of libcurl, and needed once.
  static const CURLcode kInitialized = curl_global_init(CURL_GLOBAL_DEFAULT);
  static_cast<void>(kInitialized);
  state_->options = std::move(options);
}

RestClient::~RestClient() {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  for (CURL* handle : state_->idle) curl_easy_cleanup(handle);
}

void RestClient::Cancel() { state_->cancelled.store(true); }

absl::StatusOr<Json> RestClient::Call(const ApiRequest& request) {
  absl::StatusOr<std::string> token = state_->options.token();
  if (!token.ok()) return token.status();
  absl::StatusOr<Answer> answer = state_->Transact(request, *token);
  if (answer.ok() && answer->http_status == 401) {
    const absl::StatusOr<std::string> fresh = state_->options.token();
    if (fresh.ok() && *fresh != *token) answer = state_->Transact(request, *fresh);
  }
  if (!answer.ok()) return answer.status();
  if (answer->http_status < 200 || answer->http_status > 299) {
    return StatusFromAnswer(request.subject, answer->http_status, answer->body);
  }
  absl::StatusOr<Json> body = ParseJson(answer->body);
  if (!body.ok()) {
    return absl::UnavailableError(absl::StrCat(request.subject, " at ", state_->options.server,
                                               ": the answer is ", body.status().message()));
  }
  return body;
}

}  // namespace railhead::kube
