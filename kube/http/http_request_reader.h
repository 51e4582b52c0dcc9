// SPDX-License-Identifier: Apache-2.0
//
// Parser of HTTP/1.1 requests from bytes in pieces of any size. Pure: no socket, no clock. Used by
// HttpServer, which limits the time of a request and the memory of all requests.
//
//   HttpRequestReader reader(limits);
//   bytes.remove_prefix(reader.Take(bytes));
//   if (reader.state() == HttpRequestReader::State::kDone) Answer(reader.Release());
#ifndef RAILHEAD_KUBE_HTTP_HTTP_REQUEST_READER_H_
#define RAILHEAD_KUBE_HTTP_HTTP_REQUEST_READER_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace railhead::kube {

struct HttpRequest {
  std::string method;  // "GET" (also for HEAD: the server omits the body) or "POST"
  std::string path;    // without query, not decoded
  std::string content_type;
  std::string body;
};

struct HttpReadLimits {
  size_t head_bytes = 16U << 10U;
  size_t body_bytes = 4U << 20U;
};

class HttpRequestReader {
 public:
  enum class State { kHead, kBody, kDone, kRefused };

  explicit HttpRequestReader(HttpReadLimits limits) : limits_(limits) {}

  // Consumes bytes up to the end of the request and returns their number; 0 if the request is
  // complete or rejected.
  size_t Take(absl::string_view bytes);

  State state() const { return state_; }
  bool begun() const { return state_ != State::kHead || !head_.empty(); }
  // Valid after the head:
  bool is_head() const { return is_head_; }
  bool wants_continue() const { return wants_continue_; }  // "Expect: 100-continue"
  bool keeps_connection() const { return keeps_connection_; }
  // Valid in kRefused: HTTP status and text of the response. The connection cannot be used further,
  // because the start of the next request is unknown.
  int refusal() const { return refusal_; }
  const std::string& reason() const { return reason_; }

  // Memory held, in bytes.
  size_t held_bytes() const;

  const HttpRequest& request() const { return request_; }  // complete in kDone
  // Returns the request and resets the reader. Call it in kDone.
  HttpRequest Release();
  void Reset();

 private:
  // Part of a chunked body that the next byte belongs to.
  enum class Chunk { kNone, kSize, kData, kDataEnd, kTrailer };

  size_t TakeHead(absl::string_view bytes);
  size_t TakeBody(absl::string_view bytes);
  size_t TakeChunkLine(absl::string_view bytes);
  void ParseHead();
  bool ParseRequestLine(absl::string_view line);
  bool ParseField(absl::string_view line);
  void BeginBody();
  void EndChunkLine(absl::string_view line);
  void Append(absl::string_view bytes);
  void Refuse(int status, absl::string_view reason);

  HttpReadLimits limits_;
  State state_ = State::kHead;
  std::string head_;
  HttpRequest request_;
  bool is_head_ = false;
  bool wants_continue_ = false;
  bool keeps_connection_ = true;
  bool has_encoding_ = false;
  bool has_length_ = false;
  bool is_chunked_ = false;
  size_t length_ = 0;  // of the body, or of the current chunk
  size_t left_ = 0;    // remaining bytes of it
  Chunk chunk_ = Chunk::kNone;
  std::string line_;  // partial line of a chunked body
  size_t trailer_bytes_ = 0;
  int refusal_ = 0;
  std::string reason_;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_HTTP_HTTP_REQUEST_READER_H_
