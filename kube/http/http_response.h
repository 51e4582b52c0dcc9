// SPDX-License-Identifier: Apache-2.0
//
// Responses of an HTTP server (http_server.h), and their bytes on the connection.
#ifndef RAILHEAD_KUBE_HTTP_HTTP_RESPONSE_H_
#define RAILHEAD_KUBE_HTTP_HTTP_RESPONSE_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "kube/http/http_request_reader.h"

namespace railhead::kube {

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// Called concurrently on the server's threads.
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

// One line of text.
HttpResponse PlainResponse(int status, absl::string_view text);

// The bytes of the response (RFC 9112); without its body for HEAD. `closes`: the connection ends
// after it.
std::string EncodeResponse(const HttpResponse& response, bool with_body, bool closes);

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_HTTP_HTTP_RESPONSE_H_
