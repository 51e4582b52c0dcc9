// SPDX-License-Identifier: Apache-2.0
#include "kube/rest_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kube/curl_time.h"
#include "kube/monotonic.h"

namespace railhead::kube {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxHeaderBytes = 64U << 10U;
constexpr size_t kMaxErrorBytes = 64U << 10U;  // of a stream's answer that is not 2xx
constexpr size_t kMaxIdleConnections = 4;
// A stream may be idle for minutes: TCP keepalive checks whether its other end still exists.
constexpr int64_t kKeepAliveIdleSeconds = 20;
constexpr int64_t kKeepAliveIntervalSeconds = 5;

// State of one transfer; libcurl passes it to the callbacks below.
struct Transfer {
  CURL* curl = nullptr;
  std::string body;
  size_t header_bytes = 0;
  size_t max_bytes = 0;
  bool too_large = false;
  const std::atomic<bool>* cancelled = nullptr;
  ServerClock* server_clock = nullptr;
  absl::Time sent = MonotonicNow();

  // For streams only.
  const std::function<absl::Status(absl::string_view)>* on_bytes = nullptr;
  const std::stop_token* stop = nullptr;
  absl::Status refused;  // error of on_bytes
  absl::Duration silence = absl::InfiniteDuration();
  Clock::time_point heard = Clock::now();
  bool silent = false;

  int HttpStatus() const {
    int64_t http_status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &http_status);
    return static_cast<int>(http_status);
  }
};

bool IsSuccess(int http_status) { return http_status >= 200 && http_status <= 299; }

size_t OnBody(char* data, size_t size, size_t count, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  const size_t bytes = size * count;
  if (transfer->on_bytes != nullptr && IsSuccess(transfer->HttpStatus())) {
    transfer->refused = (*transfer->on_bytes)(absl::string_view(data, bytes));
    // After on_bytes, since the receiver's time is not idle time of the server.
    transfer->heard = Clock::now();
    return transfer->refused.ok() ? bytes : 0;
  }
  if (bytes > transfer->max_bytes - transfer->body.size()) {
    transfer->too_large = true;
    return 0;
  }
  transfer->body.append(data, bytes);
  return bytes;
}

size_t OnHeader(char* data, size_t size, size_t count, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  absl::string_view line(data, size * count);
  if (constexpr absl::string_view kDate = "date:";
      transfer->server_clock != nullptr && absl::StartsWithIgnoreCase(line, kDate)) {
    line.remove_prefix(kDate.size());
    transfer->server_clock->Hear(absl::StripAsciiWhitespace(line), transfer->sent);
  }
  transfer->heard = Clock::now();
  transfer->header_bytes += size * count;
  if (transfer->header_bytes > kMaxHeaderBytes) {
    transfer->too_large = true;
    return 0;
  }
  return size * count;
}

// libcurl calls this at least once a second.
int OnProgress(void* user, curl_off_t /*down_total*/, curl_off_t /*down*/, curl_off_t /*up_total*/,
               curl_off_t /*up*/) {
  auto* transfer = static_cast<Transfer*>(user);
  if (transfer->cancelled->load()) return 1;
  if (transfer->stop != nullptr && transfer->stop->stop_requested()) return 1;
  if (absl::FromChrono(Clock::now() - transfer->heard) > transfer->silence) {
    transfer->silent = true;
    return 1;
  }
  return 0;
}

// `text` must live as long as the transfer.
void SetBlob(CURL* curl, CURLoption option, const std::string& text) {
  curl_blob blob{const_cast<char*>(text.data()), text.size(), CURL_BLOB_NOCOPY};
  curl_easy_setopt(curl, option, &blob);
}

struct Answer {
  int http_status = 0;
  std::string body;
};

// A list of libcurl's that frees itself. Appending to it can fail only for want of memory.
class CurlList {
 public:
  ~CurlList() { curl_slist_free_all(list_); }
  CurlList() = default;
  CurlList(const CurlList&) = delete;
  CurlList& operator=(const CurlList&) = delete;
  void Add(const std::string& line) { list_ = curl_slist_append(list_, line.c_str()); }
  curl_slist* get() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

// Route to the server. libcurl sends the URL's name to the server and checks the certificate
// against it, so the URL has the configured name, and the address is in `connect_to`.
struct Route {
  std::string base;        // of URLs
  std::string connect_to;  // CURLOPT_CONNECT_TO; empty: the URL's host
  std::string host;        // header Host; empty: the URL's
  std::string proxy;       // CURLOPT_PROXY; empty: none
  std::string told;        // in errors: server and proxy
};

std::string UrlPart(CURLU* url, CURLUPart part, unsigned int flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return "";
  std::string value = text;
  curl_free(text);
  return value;
}

// The proxy of `options`, as libcurl takes it and as errors name it.
void AddProxy(const std::string& proxy, Route& route) {
  if (proxy.empty()) return;
  const std::unique_ptr<CURLU, void (*)(CURLU*)> url(curl_url(), curl_url_cleanup);
  if (curl_url_set(url.get(), CURLUPART_URL, proxy.c_str(), CURLU_NON_SUPPORT_SCHEME) !=
      CURLUE_OK) {
    route.proxy = proxy;  // libcurl reports what is wrong
    absl::StrAppend(&route.told, " through its proxy");
    return;
  }
  const std::string scheme = UrlPart(url.get(), CURLUPART_SCHEME);
  std::string port = UrlPart(url.get(), CURLUPART_PORT);
  // libcurl's own default is 1080 for all kinds.
  if (port.empty()) port = scheme == "http" ? "80" : scheme == "https" ? "443" : "1080";
  curl_url_set(url.get(), CURLUPART_PORT, port.c_str(), 0);
  // The proxy resolves the server's name.
  if (scheme == "socks5") {
    curl_url_set(url.get(), CURLUPART_SCHEME, "socks5h", CURLU_NON_SUPPORT_SCHEME);
  }
  route.proxy = UrlPart(url.get(), CURLUPART_URL);
  // Without user and password, which are not printed.
  absl::StrAppend(&route.told, " through the proxy ", scheme, "://",
                  UrlPart(url.get(), CURLUPART_HOST), ":", port);
}

Route MakeRoute(const ClientOptions& options) {
  Route route = {options.server, "", "", "", options.server};
  AddProxy(options.proxy, route);
  if (options.server_name.empty()) return route;
  const std::unique_ptr<CURLU, void (*)(CURLU*)> url(curl_url(), curl_url_cleanup);
  if (curl_url_set(url.get(), CURLUPART_URL, options.server.c_str(), 0) != CURLUE_OK) return route;
  const std::string port = UrlPart(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  const std::string host = UrlPart(url.get(), CURLUPART_HOST);
  const std::string name = absl::StrContains(options.server_name, ':')
                               ? absl::StrCat("[", options.server_name, "]")
                               : options.server_name;
  if (curl_url_set(url.get(), CURLUPART_HOST, name.c_str(), 0) != CURLUE_OK) return route;
  route.base = UrlPart(url.get(), CURLUPART_URL);
  while (absl::EndsWith(route.base, "/")) route.base.pop_back();
  route.connect_to = absl::StrCat("::", host, ":", port);
  route.host = absl::StrCat("Host: ", host, ":", port);
  return route;
}

}  // namespace

struct RestClient::State {
  ClientOptions options;
  Route route;  // of the options
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

  // `transfer` determines the use of the body; `timeout` bounds the whole call.
  absl::StatusOr<Answer> Transact(const ApiRequest& request, const std::string& token,
                                  absl::Duration timeout, Transfer transfer);

  // Transact, and once more when the server refused the token and there is a new one.
  absl::StatusOr<Answer> TransactWithToken(const ApiRequest& request, absl::Duration timeout,
                                           const Transfer& transfer);
  // The whole answer of a call.
  absl::StatusOr<Answer> Ask(const ApiRequest& request);
  // The error of a call whose answer does not parse.
  absl::Status Unreadable(const ApiRequest& request, const absl::Status& parsed) const;
};

absl::StatusOr<Answer> RestClient::State::Transact(const ApiRequest& request,
                                                   const std::string& token, absl::Duration timeout,
                                                   Transfer transfer) {
  CURL* curl = Take();
  if (curl == nullptr) return absl::InternalError("cannot create a curl handle");
  transfer.curl = curl;
  transfer.cancelled = &cancelled;
  transfer.heard = Clock::now();
  transfer.server_clock = options.server_clock;
  transfer.sent = MonotonicNow();
  CurlList headers;
  headers.Add("Accept: application/json");
  headers.Add("Expect:");
  if (!token.empty()) headers.Add(absl::StrCat("Authorization: Bearer ", token));
  if (!request.content_type.empty()) {
    headers.Add(absl::StrCat("Content-Type: ", request.content_type));
  }
  if (!route.host.empty()) headers.Add(route.host);
  CurlList connect_to;
  if (!route.connect_to.empty()) connect_to.Add(route.connect_to);
  const std::string url = absl::StrCat(route.base, request.path);
  char error[CURL_ERROR_SIZE] = "";

  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https");
  // Empty: the cluster is never behind the proxy of the environment.
  curl_easy_setopt(curl, CURLOPT_PROXY, route.proxy.c_str());
  curl_easy_setopt(curl, CURLOPT_NOPROXY, "");
  curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);  // a proxy has another clock
  curl_easy_setopt(curl, CURLOPT_CONNECT_TO, connect_to.get());
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
  if (options.ca_pem.empty()) {
    curl_easy_setopt(curl, CURLOPT_CAINFO, options.ca_file.c_str());
    curl_easy_setopt(curl, CURLOPT_PROXY_CAINFO, options.ca_file.c_str());
  } else {
    SetBlob(curl, CURLOPT_CAINFO_BLOB, options.ca_pem);
    SetBlob(curl, CURLOPT_PROXY_CAINFO_BLOB, options.ca_pem);
  }
  curl_easy_setopt(curl, CURLOPT_CAPATH, nullptr);
  curl_easy_setopt(curl, CURLOPT_PROXY_CAPATH, nullptr);
  if (!options.key_pem.empty()) {
    SetBlob(curl, CURLOPT_SSLCERT_BLOB, options.certificate_pem);
    SetBlob(curl, CURLOPT_SSLKEY_BLOB, options.key_pem);
  }
  curl_easy_setopt(curl, CURLOPT_CA_CACHE_TIMEOUT, 0L);  // the cluster's CA may be replaced
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
  curl_easy_setopt(curl, CURLOPT_SSLVERSION, static_cast<int64_t>(CURL_SSLVERSION_TLSv1_2));
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CurlMilliseconds(options.timeout));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, CurlMilliseconds(timeout));
  curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(curl, CURLOPT_TCP_KEEPIDLE, kKeepAliveIdleSeconds);
  curl_easy_setopt(curl, CURLOPT_TCP_KEEPINTVL, kKeepAliveIntervalSeconds);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, static_cast<char*>(error));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, OnBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, OnHeader);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, OnProgress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);

  const CURLcode result = curl_easy_perform(curl);
  const int http_status = transfer.HttpStatus();
  Return(curl);

  const auto failed = [&](absl::StatusCode code, absl::string_view why) {
    return absl::Status(code, absl::StrCat(request.subject, " at ", route.told, ": ", why));
  };
  if (cancelled.load()) return failed(absl::StatusCode::kCancelled, "the client is stopping");
  if (!transfer.refused.ok()) return transfer.refused;
  if (transfer.stop != nullptr && transfer.stop->stop_requested()) {
    return failed(absl::StatusCode::kCancelled, "stopped");
  }
  if (transfer.too_large) {
    return failed(absl::StatusCode::kResourceExhausted,
                  absl::StrCat("the response is larger than ", transfer.max_bytes, " bytes"));
  }
  if (transfer.silent) {
    return failed(absl::StatusCode::kDeadlineExceeded,
                  absl::StrCat("no data for ", absl::FormatDuration(transfer.silence)));
  }
  if (result == CURLE_OPERATION_TIMEDOUT) {
    return failed(absl::StatusCode::kDeadlineExceeded,
                  absl::StrCat("no complete response within ", absl::FormatDuration(timeout)));
  }
  if (result != CURLE_OK) {
    return failed(absl::StatusCode::kUnavailable,
                  error[0] != '\0' ? static_cast<const char*>(error) : curl_easy_strerror(result));
  }
  return Answer{http_status, std::move(transfer.body)};
}

absl::StatusOr<Answer> RestClient::State::TransactWithToken(const ApiRequest& request,
                                                            absl::Duration timeout,
                                                            const Transfer& transfer) {
  const auto ask = [this]() -> absl::StatusOr<std::string> {
    return options.token ? options.token() : std::string();
  };
  const absl::StatusOr<std::string> token = ask();
  if (!token.ok()) return token.status();
  absl::StatusOr<Answer> answer = Transact(request, *token, timeout, transfer);
  if (answer.ok() && answer->http_status == 401) {
    const absl::StatusOr<std::string> fresh = ask();
    if (fresh.ok() && *fresh != *token) answer = Transact(request, *fresh, timeout, transfer);
  }
  if (answer.ok() && !IsSuccess(answer->http_status)) {
    return StatusFromAnswer(request.subject, answer->http_status, answer->body);
  }
  return answer;
}

RestClient::RestClient(ClientOptions options) : state_(std::make_unique<State>()) {
  // Not thread-safe by itself in every build of libcurl, and needed once.
  static const CURLcode kInitialized = curl_global_init(CURL_GLOBAL_DEFAULT);
  static_cast<void>(kInitialized);
  state_->route = MakeRoute(options);
  state_->options = std::move(options);
}

RestClient::~RestClient() {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  for (CURL* handle : state_->idle) curl_easy_cleanup(handle);
}

void RestClient::Cancel() { state_->cancelled.store(true); }

absl::StatusOr<Answer> RestClient::State::Ask(const ApiRequest& request) {
  Transfer transfer;
  transfer.max_bytes = options.max_answer_bytes;
  return TransactWithToken(request, std::min(request.timeout, options.timeout), transfer);
}

absl::Status RestClient::State::Unreadable(const ApiRequest& request,
                                           const absl::Status& parsed) const {
  return absl::UnavailableError(
      absl::StrCat(request.subject, " at ", route.told, ": the response is ", parsed.message()));
}

absl::StatusOr<Json> RestClient::Call(const ApiRequest& request) {
  const absl::StatusOr<Answer> answer = state_->Ask(request);
  if (!answer.ok()) return answer.status();
  absl::StatusOr<Json> body = ParseJson(answer->body);
  if (!body.ok()) return state_->Unreadable(request, body.status());
  return body;
}

absl::StatusOr<Json> RestClient::CallList(
    const ApiRequest& request, absl::FunctionRef<absl::Status(const Json& object)> visit) {
  const absl::StatusOr<Answer> answer = state_->Ask(request);
  if (!answer.ok()) return answer.status();
  absl::Status visited;
  absl::StatusOr<Json> rest = ParseJsonList(answer->body, "items", [&](const Json& object) {
    visited = visit(object);
    return visited;
  });
  if (!rest.ok() && visited.ok()) return state_->Unreadable(request, rest.status());
  return rest;
}

absl::Status RestClient::Stream(const StreamRequest& request,
                                const std::function<absl::Status(absl::string_view)>& on_bytes) {
  Transfer transfer;
  transfer.max_bytes = kMaxErrorBytes;
  transfer.on_bytes = &on_bytes;
  transfer.stop = &request.stop;
  transfer.silence = request.silence;
  return state_
      ->TransactWithToken({"GET", request.path, "", "", request.subject}, request.timeout, transfer)
      .status();
}

}  // namespace railhead::kube
