// SPDX-License-Identifier: Apache-2.0
#include "kube/http/http_response.h"

#include "absl/strings/str_cat.h"

namespace railhead::kube {
namespace {

absl::string_view PhraseOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Status";
  }
}

}  // namespace

HttpResponse PlainResponse(int status, absl::string_view text) {
  return {status, "text/plain; charset=utf-8", absl::StrCat(text, "\n")};
}

std::string EncodeResponse(const HttpResponse& response, bool with_body, bool closes) {
  return absl::StrCat("HTTP/1.1 ", response.status, " ", PhraseOf(response.status),
                      "\r\nContent-Type: ", response.content_type,
                      "\r\nContent-Length: ", response.body.size(),
                      response.status == 405 ? "\r\nAllow: GET, HEAD, POST" : "",
                      "\r\nConnection: ", closes ? "close" : "keep-alive", "\r\n\r\n",
                      with_body ? response.body : "");
}

}  // namespace railhead::kube
