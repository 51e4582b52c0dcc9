// SPDX-License-Identifier: Apache-2.0
#include "cli/nccl_log/command.h"

#include <cstddef>
#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/finding.h"
#include "base/printable_text.h"
#include "cli/nccl_log/log_rules.h"
#include "cli/nccl_log/nccl_log.h"
#include "cli/output/diagnosis.h"

namespace railhead::cli {
namespace {

constexpr size_t kMostLogBytes = size_t{1} << 30;  // of a file

std::string JsonText(const NcclLog& log, const std::vector<Finding>& findings) {
  nlohmann::ordered_json json;
  json["result"] = SeverityName(Worst(findings));
  json["version"] = log.version;
  json["processes"] = log.processes.size();
  json["findings"] = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) json["findings"].push_back(ToJson(finding));
  return json.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

int RunNcclLog(const NcclLogOptions& options, std::ostream& out, std::ostream& err) {
  std::string text;
  for (const std::string& file : options.files) {
    const absl::StatusOr<std::string> read = ReadInput(file, kMostLogBytes);
    if (!read.ok()) {
      err << "railhead nccl-log: " << PrintableText(read.status().message()) << "\n";
      return kFailed;
    }
    // The first line of the next file is not part of this one's last.
    absl::StrAppend(&text, *read, "\n");
  }
  const NcclLog log = ParseNcclLog(text);
  const std::vector<Finding> findings = Diagnose(log);
  out << (options.json ? JsonText(log, findings)
                       : FindingsTable(findings, options.colours, kMostOfACheck));
  out.flush();
  if (!out) {
    err << "railhead nccl-log: cannot write the output\n";
    return kFailed;
  }
  return ExitCodeOf(findings);
}

}  // namespace railhead::cli
