// SPDX-License-Identifier: Apache-2.0
//
// Plurals and counts of nouns in the messages of the CLI.
#ifndef RAILHEAD_CLI_OUTPUT_WORDS_H_
#define RAILHEAD_CLI_OUTPUT_WORDS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace railhead::cli {

// Return "leaves"; "1 leaf" or "2 leaves".
std::string Plural(absl::string_view noun);
std::string Counted(int64_t count, absl::string_view noun);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_OUTPUT_WORDS_H_
