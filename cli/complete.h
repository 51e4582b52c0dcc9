// SPDX-License-Identifier: Apache-2.0
//
// Completion of command lines. The scripts for the shells call the program with kCompleteCommand
// and the words so far, as kubectl calls its plugins, so a script never needs an update.
#ifndef RAILHEAD_CLI_COMPLETE_H_
#define RAILHEAD_CLI_COMPLETE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace railhead::cli {

inline constexpr char kCompleteCommand[] = "__complete";

struct Completion {
  std::vector<std::pair<std::string, std::string>> words;  // and what each means
  bool files = false;                                      // names of files are meant
};

// `words` come after the program's name; the last one, which may be empty, is being typed. Pure.
Completion Complete(const CLI::App& app, std::vector<std::string> words);

// A line for each word, with its meaning after a tab; then ":0" if names of files may follow, or
// ":4" (as of cobra's ShellCompDirective, which kubectl reads).
std::string ToText(const Completion& completion);

// The script for "bash", "zsh" or "fish".
std::string CompletionScript(const std::string& shell);

}  // namespace railhead::cli

#endif  // RAILHEAD_CLI_COMPLETE_H_
