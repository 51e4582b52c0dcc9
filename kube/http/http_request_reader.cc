// SPDX-License-Identifier: Apache-2.0
#include "kube/http/http_request_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace railhead::kube {
namespace {

constexpr size_t kMaxLineBytes = 256;  // of a chunk's size, with its extensions
constexpr size_t kMaxTrailerBytes = 4U << 10U;
constexpr size_t kLeastBodyBuffer = 16U << 10U;

bool IsTokenCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         absl::string_view("!#$%&'*+-.^_`|~").find(c) != absl::string_view::npos;
}

bool IsToken(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenCharacter);
}

bool HasControl(absl::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return c != '\t' && absl::ascii_iscntrl(static_cast<unsigned char>(c));
  });
}

// A size in decimal or hexadecimal digits alone: SimpleAtoi would take a sign and spaces.
bool ParseSize(absl::string_view text, bool hexadecimal, size_t& size) {
  if (text.empty() || text.size() > 15) return false;
  size = 0;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (!(hexadecimal ? absl::ascii_isxdigit(u) : absl::ascii_isdigit(u))) return false;
    const int digit = absl::ascii_isdigit(u) ? c - '0' : absl::ascii_tolower(u) - 'a' + 10;
    size = size * (hexadecimal ? 16 : 10) + static_cast<size_t>(digit);
  }
  return true;
}

}  // namespace

size_t HttpRequestReader::Take(absl::string_view bytes) {
  size_t taken = 0;
  while (taken < bytes.size() && (state_ == State::kHead || state_ == State::kBody)) {
    const absl::string_view rest = bytes.substr(taken);
    taken += state_ == State::kHead ? TakeHead(rest) : TakeBody(rest);
  }
  return taken;
}

size_t HttpRequestReader::TakeHead(absl::string_view bytes) {
  size_t skipped = 0;
  if (head_.empty()) {  // some clients end a body with a line of their own
    while (skipped < bytes.size() && (bytes[skipped] == '\r' || bytes[skipped] == '\n')) ++skipped;
    bytes.remove_prefix(skipped);
  }
  const size_t before = head_.size();
  const size_t room = limits_.head_bytes - before;
  head_.append(bytes.data(), std::min(bytes.size(), room));
  const size_t end = head_.find("\r\n\r\n", before < 3 ? 0 : before - 3);
  if (end == std::string::npos) {
    if (bytes.size() > room) Refuse(431, "the request's head is too large");
    return skipped + std::min(bytes.size(), room);
  }
  head_.resize(end + 2);
  ParseHead();
  std::string().swap(head_);
  return skipped + end + 4 - before;
}

void HttpRequestReader::ParseHead() {
  absl::string_view rest = head_;
  bool first = true;
  while (!rest.empty()) {
    const size_t end = rest.find("\r\n");
    const absl::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 2);
    if (!(first ? ParseRequestLine(line) : ParseField(line))) return;
    first = false;
  }
  BeginBody();
}

bool HttpRequestReader::ParseRequestLine(absl::string_view line) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == absl::string_view::npos || first == last) {
    Refuse(400, "the first line is not METHOD PATH VERSION");
    return false;
  }
  const absl::string_view method = line.substr(0, first);
  const absl::string_view target = line.substr(first + 1, last - first - 1);
  const absl::string_view version = line.substr(last + 1);
  if (!IsToken(method) || target.empty() || target.front() != '/' || HasControl(target) ||
      absl::StrContains(target, " ")) {
    Refuse(400, "the first line is not METHOD PATH VERSION");
    return false;
  }
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    Refuse(505, "use HTTP/1.1");
    return false;
  }
  if (method != "GET" && method != "HEAD" && method != "POST") {
    Refuse(405, "use GET or POST");
    return false;
  }
  is_head_ = method == "HEAD";
  keeps_connection_ = version == "HTTP/1.1";
  request_.method = method == "POST" ? "POST" : "GET";
  request_.path = std::string(target.substr(0, target.find('?')));
  return true;
}

bool HttpRequestReader::ParseField(absl::string_view line) {
  const size_t colon = line.find(':');
  const absl::string_view name = line.substr(0, colon);
  if (colon == absl::string_view::npos || !IsToken(name) || HasControl(line)) {
    Refuse(400, "a header field is not NAME: VALUE");
    return false;
  }
  const absl::string_view value = absl::StripAsciiWhitespace(line.substr(colon + 1));
  if (absl::EqualsIgnoreCase(name, "Content-Length")) {
    size_t length = 0;
    if (!ParseSize(value, false, length) || (has_length_ && length != length_)) {
      Refuse(400, "Content-Length is not one number");
      return false;
    }
    has_length_ = true;
    length_ = length;
  } else if (absl::EqualsIgnoreCase(name, "Transfer-Encoding")) {
    if (is_chunked_ || !absl::EqualsIgnoreCase(value, "chunked")) {
      Refuse(501, "unsupported Transfer-Encoding; use chunked");
      return false;
    }
    is_chunked_ = true;
  } else if (absl::EqualsIgnoreCase(name, "Content-Type")) {
    request_.content_type = std::string(value);
  } else if (absl::EqualsIgnoreCase(name, "Content-Encoding")) {
    has_encoding_ = true;
  } else if (absl::EqualsIgnoreCase(name, "Connection")) {
    if (absl::StrContains(absl::AsciiStrToLower(value), "close")) keeps_connection_ = false;
  } else if (absl::EqualsIgnoreCase(name, "Expect")) {
    wants_continue_ = absl::EqualsIgnoreCase(value, "100-continue");
  }
  return true;
}

void HttpRequestReader::BeginBody() {
  if (has_encoding_ || (!request_.content_type.empty() &&
                        !absl::StartsWithIgnoreCase(request_.content_type, "application/json"))) {
    Refuse(415, "unsupported body; use application/json without encoding");
    return;
  }
  if (has_length_ && is_chunked_) {
    Refuse(400, "the body has both Content-Length and Transfer-Encoding");
    return;
  }
  if (has_length_ && length_ > limits_.body_bytes) {
    Refuse(413, absl::StrCat("the body has more than ", limits_.body_bytes, " bytes"));
    return;
  }
  left_ = length_;
  chunk_ = is_chunked_ ? Chunk::kSize : Chunk::kNone;
  state_ = is_chunked_ || left_ > 0 ? State::kBody : State::kDone;
}

size_t HttpRequestReader::TakeBody(absl::string_view bytes) {
  if (chunk_ != Chunk::kNone && chunk_ != Chunk::kData) return TakeChunkLine(bytes);
  const size_t taken = std::min(bytes.size(), left_);
  Append(bytes.substr(0, taken));
  left_ -= taken;
  if (left_ == 0) {
    if (chunk_ == Chunk::kNone) {
      state_ = State::kDone;
    } else {
      chunk_ = Chunk::kDataEnd;
    }
  }
  return taken;
}

size_t HttpRequestReader::TakeChunkLine(absl::string_view bytes) {
  const size_t end = bytes.find('\n');
  const size_t taken = end == absl::string_view::npos ? bytes.size() : end + 1;
  if (line_.size() + taken > kMaxLineBytes) {
    Refuse(400, "a line of the chunked body is too long");
    return taken;
  }
  line_.append(bytes.data(), taken);
  if (end == absl::string_view::npos) return taken;
  const std::string line = std::exchange(line_, std::string());
  if (!absl::EndsWith(line, "\r\n")) {
    Refuse(400, "a line of the chunked body does not end with CR LF");
    return taken;
  }
  EndChunkLine(absl::string_view(line).substr(0, line.size() - 2));
  return taken;
}

void HttpRequestReader::EndChunkLine(absl::string_view line) {
  switch (chunk_) {
    case Chunk::kSize: {
      const absl::string_view digits =
          absl::StripTrailingAsciiWhitespace(line.substr(0, line.find(';')));
      if (!ParseSize(digits, true, left_)) {
        Refuse(400, "the size of a chunk is not a hexadecimal number");
      } else if (left_ > limits_.body_bytes - request_.body.size()) {
        Refuse(413, absl::StrCat("the body has more than ", limits_.body_bytes, " bytes"));
      } else {
        chunk_ = left_ == 0 ? Chunk::kTrailer : Chunk::kData;
      }
      break;
    }
    case Chunk::kDataEnd:
      if (!line.empty()) {
        Refuse(400, "a chunk is longer than its size");
      } else {
        chunk_ = Chunk::kSize;
      }
      break;
    case Chunk::kTrailer:
      trailer_bytes_ += line.size();
      if (line.empty()) {
        state_ = State::kDone;
      } else if (trailer_bytes_ > kMaxTrailerBytes) {
        Refuse(431, "the trailer of the chunked body is too large");
      }
      break;
    case Chunk::kNone:
    case Chunk::kData:
      break;
  }
}

// Grows by doubling, but not beyond the body's known or greatest length.
void HttpRequestReader::Append(absl::string_view bytes) {
  std::string& body = request_.body;
  const size_t size = body.size() + bytes.size();
  if (size > body.capacity()) {
    const size_t most = has_length_ ? length_ : limits_.body_bytes;
    body.reserve(std::max(size, std::min(most, std::max(kLeastBodyBuffer, 2 * body.size()))));
  }
  body.append(bytes.data(), bytes.size());
}

size_t HttpRequestReader::held_bytes() const {
  return head_.capacity() + request_.body.capacity() + line_.capacity();
}

HttpRequest HttpRequestReader::Release() {
  HttpRequest request = std::move(request_);
  Reset();
  return request;
}

void HttpRequestReader::Reset() { *this = HttpRequestReader(limits_); }

void HttpRequestReader::Refuse(int status, absl::string_view reason) {
  state_ = State::kRefused;
  refusal_ = status;
  reason_ = std::string(reason);
  std::string().swap(request_.body);
  std::string().swap(line_);
}

}  // namespace railhead::kube
