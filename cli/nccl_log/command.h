// SPDX-License-Identifier: Apache-2.0
//
// `railhead nccl-log`: logs of NCCL in, a diagnosis out.
#ifndef RAILHEAD_CLI_NCCL_LOG_COMMAND_H_
#define RAILHEAD_CLI_NCCL_LOG_COMMAND_H_

#include <ostream>
#include <string>
#include <vector>

namespace railhead::cli {

struct NcclLogOptions {
  std::vector<std::string> files;  // read as one log; "-" is standard input
  bool json = false;
  bool colours = false;
};

// Prints the findings to `out` and errors, one per line, to `err`. Returns the exit code
// (output/diagnosis.h).
int RunNcclLog(const NcclLogOptions& options, std::ostream& out, std::ostream& err);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_NCCL_LOG_COMMAND_H_
