// SPDX-License-Identifier: Apache-2.0
//
// Whatever stands in a log, there is a diagnosis, and nothing in its text controls a terminal.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/finding.h"
#include "base/printable_text.h"
#include "cli/nccl_log/log_rules.h"
#include "cli/nccl_log/nccl_log.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<railhead::Finding> findings =
      railhead::cli::Diagnose(railhead::cli::ParseNcclLog(text));
  if (findings.empty()) std::abort();
  const std::string shown = railhead::FindingsTable(findings);
  if (railhead::PrintableLines(shown) != shown) std::abort();
  return 0;
}
