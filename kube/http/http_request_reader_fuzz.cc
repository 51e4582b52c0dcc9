// SPDX-License-Identifier: Apache-2.0
//
// The first byte is a seed for where the bytes are cut. However they are cut, the same requests
// come out, or the same refusal; and no more memory is held than limits and arrived bytes allow.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kube/http/http_request_reader.h"

namespace railhead::kube {
namespace {

constexpr HttpReadLimits kLimits = {.head_bytes = 256, .body_bytes = 64};

void Require(bool condition) {
  if (!condition) std::abort();
}

// `piece` gives the size of the next piece.
template <typename Piece>
std::vector<std::string> Read(absl::string_view text, Piece piece) {
  std::vector<std::string> seen;
  HttpRequestReader reader(kLimits);
  while (!text.empty()) {
    absl::string_view bytes = text.substr(0, piece());
    text.remove_prefix(bytes.size());
    while (!bytes.empty()) {
      const size_t taken = reader.Take(bytes);
      bytes.remove_prefix(taken);
      Require(reader.held_bytes() <= 1024 + (32U << 10U));
      if (reader.state() == HttpRequestReader::State::kRefused) {
        Require(reader.refusal() >= 400 && !reader.reason().empty());
        seen.push_back(absl::StrCat("refused ", reader.refusal()));
        return seen;
      }
      if (reader.state() == HttpRequestReader::State::kDone) {
        const HttpRequest request = reader.Release();
        Require(request.method == "GET" || request.method == "POST");
        Require(request.path.substr(0, 1) == "/" && request.body.size() <= kLimits.body_bytes);
        seen.push_back(absl::StrCat(request.method, " ", request.path, " ", request.content_type,
                                    " ", request.body));
      } else {
        Require(bytes.empty());  // it stops for no other reason
      }
    }
  }
  return seen;
}

void Run(absl::string_view data) {
  if (data.empty()) return;
  auto seed = static_cast<unsigned char>(data[0]);
  const absl::string_view text = data.substr(1);
  const auto whole = Read(text, [&text] { return text.size(); });
  const auto cut = Read(text, [&seed] { return size_t{1} + (seed = seed * 5 + 3) % 7; });
  Require(whole == cut);
}

}  // namespace
}  // namespace railhead::kube

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  railhead::kube::Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
