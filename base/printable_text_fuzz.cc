// SPDX-License-Identifier: Apache-2.0
//
// The first byte is the greatest length. What comes out is UTF-8 without control characters, fits,
// and stays as it is when it is made printable again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/string_view.h"
#include "base/printable_text.h"

namespace railhead {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void Check(const std::string& shown) {
  Require(PrintableText(shown) == shown && IsPrintableText(shown));
  for (const char c : shown) Require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  // Another opinion on whether it is UTF-8: this throws if it is not.
  Require(nlohmann::json::parse(nlohmann::json(shown).dump()) == shown);
}

void Run(absl::string_view data) {
  if (data.empty()) return;
  const size_t most = 3 + static_cast<unsigned char>(data[0]);
  data.remove_prefix(1);
  Check(PrintableText(data));
  const std::string cut = PrintableText(data, most);
  Require(cut.size() <= most);
  Check(cut);
  std::string lines = PrintableLines(data);
  for (size_t at = lines.find('\n'); at != std::string::npos; at = lines.find('\n')) {
    lines.replace(at, 1, " ");
  }
  Check(lines);
}

}  // namespace
}  // namespace railhead

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  railhead::Run(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
