// SPDX-License-Identifier: Apache-2.0
//
// Command line completion. The shell scripts call the program with kCompleteCommand and the words
// typed, as kubectl calls plugins. So the scripts need no updates.
#ifndef RAILHEAD_CLI_COMPLETE_H_
#define RAILHEAD_CLI_COMPLETE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace railhead::cli {

inline constexpr char kCompleteCommand[] = "__complete";

struct Completion {
  std::vector<std::pair<std::string, std::string>> words;  // words with their descriptions
  bool files = false;                                      // complete with file names
};

// Completes the last of `words`, which may be empty. `words` excludes the program's name. Pure.
Completion Complete(const CLI::App& app, std::vector<std::string> words);

// Formats one line per word, with the description after a tab. The last line is ":0" if file names
// may follow, else ":4" (ShellCompDirective of cobra, which kubectl reads).
std::string ToText(const Completion& completion);

// Returns the script for "bash", "zsh" or "fish".
std::string CompletionScript(const std::string& shell);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_COMPLETE_H_
