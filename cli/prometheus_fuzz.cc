// SPDX-License-Identifier: Apache-2.0
//
// Whatever answers in Prometheus's place, there is a table or a reason why not, and nothing in it
// controls a terminal.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "absl/strings/string_view.h"
#include "base/printable_text.h"
#include "cli/rails.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  std::ostringstream out;
  std::ostringstream err;
  railhead::cli::RunRails(
      {}, [&](const std::string&) { return text; }, [] { return false; }, out, err);
  for (const std::string& shown : {out.str(), err.str()}) {
    if (railhead::PrintableLines(shown) != shown) std::abort();
  }
  return 0;
}
