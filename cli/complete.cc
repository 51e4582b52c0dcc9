// SPDX-License-Identifier: Apache-2.0
#include "cli/complete.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace railhead::cli {
namespace {

constexpr size_t kMostMeaning = 72;  // bytes

constexpr char kBash[] = R"(# Completion of railhead and kubectl-railhead for bash.
_railhead_complete() {
  local line
  local -a lines
  mapfile -t lines < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  COMPREPLY=()
  for line in "${lines[@]}"; do
    case $line in
      :0) compopt -o default 2>/dev/null ;;
      :*) ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done
}
complete -F _railhead_complete railhead kubectl-railhead
)";

constexpr char kZsh[] = R"(#compdef railhead kubectl-railhead
# Completion of railhead and kubectl-railhead for zsh.
_railhead() {
  local line
  local -a lines described
  lines=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for line in $lines; do
    case $line in
      :0) _files ;;
      :*) ;;
      *) described+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
    esac
  done
  (( $#described )) && _describe railhead described
}
if [[ $funcstack[1] == _railhead ]]; then
  _railhead "$@"
else
  compdef _railhead railhead kubectl-railhead
fi
)";

constexpr char kFish[] = R"(# Completion of railhead and kubectl-railhead for fish.
function __railhead_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  for line in ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
    switch $line
      case ':0'
        __fish_complete_path "$current"
      case ':*'
      case '*'
        echo $line
    end
  end
end
complete -c railhead -f -a '(__railhead_complete)'
complete -c kubectl-railhead -f -a '(__railhead_complete)'
)";

const CLI::App* CommandOf(const CLI::App& app, const std::string& word) {
  const auto found =
      app.get_subcommands([&](const CLI::App* command) { return command->get_name() == word; });
  return found.empty() ? nullptr : found.front();
}

const CLI::Option* OptionOf(const CLI::App& command, absl::string_view word) {
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      if (word == absl::StrCat("--", name)) return option;
    }
    for (const std::string& name : option->get_snames()) {
      if (word == absl::StrCat("-", name)) return option;
    }
  }
  return nullptr;
}

bool TakesValue(const CLI::Option* option) {
  return option != nullptr && option->get_items_expected_max() > 0;
}

// The first line of a description.
std::string MeaningOf(const std::string& text) {
  const std::string line = text.substr(0, text.find('\n'));
  return line.size() <= kMostMeaning ? line : line.substr(0, kMostMeaning - 3) + "...";
}

// Adds the possible values of an option: the words that its help shows in braces.
void AddValues(const CLI::Option& option, absl::string_view before, absl::string_view typed,
               Completion& completion) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{');
  const size_t close = type.find('}');
  if (open != std::string::npos && close != std::string::npos && open < close) {
    for (const absl::string_view value :
         absl::StrSplit(absl::string_view(type).substr(open + 1, close - open - 1), ',')) {
      if (absl::StartsWith(value, typed)) {
        completion.words.push_back({absl::StrCat(before, value), ""});
      }
    }
  }
  completion.files = absl::StrContains(type, "FILE") || absl::StrContains(type, "SOURCE");
}

void AddFlags(const CLI::App& command, absl::string_view typed, Completion& completion) {
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      const std::string flag = absl::StrCat("--", name);
      if (absl::StartsWith(flag, typed)) {
        completion.words.emplace_back(flag, MeaningOf(option->get_description()));
      }
    }
  }
}

}  // namespace

Completion Complete(const CLI::App& app, std::vector<std::string> words) {
  Completion completion;
  if (words.empty()) words.emplace_back();
  // bash makes three words of --output=text.
  if (words.back() == "=") words.emplace_back();
  words.erase(std::remove(words.begin(), words.end(), "="), words.end());
  const std::string typed = words.back();
  words.pop_back();

  const CLI::App* command = &app;
  const CLI::Option* waiting = nullptr;  // for its value
  size_t positionals = 0;
  for (const std::string& word : words) {
    if (waiting != nullptr) {
      waiting = nullptr;
    } else if (absl::StartsWith(word, "-")) {
      const CLI::Option* option = OptionOf(*command, word);
      if (TakesValue(option)) waiting = option;
    } else if (command == &app) {
      command = CommandOf(app, word);
      if (command == nullptr) return completion;
    } else {
      ++positionals;
    }
  }
  const size_t equals = typed.find('=');
  if (waiting != nullptr) {
    AddValues(*waiting, "", typed, completion);
  } else if (absl::StartsWith(typed, "--") && equals != std::string::npos) {
    const CLI::Option* option = OptionOf(*command, typed.substr(0, equals));
    if (TakesValue(option)) {
      AddValues(*option, typed.substr(0, equals + 1), typed.substr(equals + 1), completion);
    }
  } else if (absl::StartsWith(typed, "-")) {
    AddFlags(*command, typed, completion);
  } else if (command == &app) {
    for (const CLI::App* other : app.get_subcommands([](const CLI::App*) { return true; })) {
      if (!absl::StartsWith(other->get_name(), typed)) continue;
      completion.words.emplace_back(other->get_name(), MeaningOf(other->get_description()));
    }
  } else if (positionals == 0) {
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_positional()) AddValues(*option, "", typed, completion);
    }
  }
  return completion;
}

std::string ToText(const Completion& completion) {
  std::string text;
  for (const auto& [word, meaning] : completion.words) {
    absl::StrAppend(&text, word, meaning.empty() ? "" : "\t", meaning, "\n");
  }
  absl::StrAppend(&text, completion.files ? ":0" : ":4", "\n");
  return text;
}

std::string CompletionScript(const std::string& shell) {
  if (shell == "zsh") return kZsh;
  return shell == "fish" ? kFish : kBash;
}

}  // namespace railhead::cli
