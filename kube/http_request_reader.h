// SPDX-License-Identifier: Apache-2.0
//
// Reads HTTP/1.1 requests out of the bytes of a connection, in pieces of any size. Pure: no socket,
// no clock. Used by HttpServer, which decides how long a request may take and how much memory all
// of them may hold.
//
//   HttpRequestReader reader(limits);
//   bytes.remove_prefix(reader.Take(bytes));
//   if (reader.state() == HttpRequestReader::State::kDone) Answer(reader.Release());
#ifndef RAILHEAD_KUBE_HTTP_REQUEST_READER_H_
#define RAILHEAD_KUBE_HTTP_REQUEST_READER_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace railhead::kube {

struct HttpRequest {
  std::string method;  // "GET" (of HEAD too: the server leaves out the answer's body) or "POST"
  std::string path;    // without the query, not decoded
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

  // Takes bytes up to the end of the request and returns how many; 0 when the request has ended or
  // is refused.
  size_t Take(absl::string_view bytes);

  State state() const { return state_; }
  bool begun() const { return state_ != State::kHead || !head_.empty(); }
  // Valid once the head has been read:
  bool is_head() const { return is_head_; }
  bool wants_continue() const { return wants_continue_; }  // "Expect: 100-continue"
  bool keeps_connection() const { return keeps_connection_; }
  // Valid in kRefused: the status of the answer, and its text. Nothing more can be read from the
  // connection, as it is not known where the next request begins.
  int refusal() const { return refusal_; }
  const std::string& reason() const { return reason_; }

  // Memory taken by what was read, in bytes.
  size_t held_bytes() const;

  const HttpRequest& request() const { return request_; }  // complete in kDone
  // The request; call it in kDone. The reader then begins anew.
  HttpRequest Release();
  void Reset();

 private:
  // Where in a chunked body the next byte belongs.
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
  size_t length_ = 0;  // of the body, or of the chunk that is being read
  size_t left_ = 0;    // of that, still to come
  Chunk chunk_ = Chunk::kNone;
  std::string line_;  // of a chunked body, in part
  size_t trailer_bytes_ = 0;
  int refusal_ = 0;
  std::string reason_;
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_HTTP_REQUEST_READER_H_
