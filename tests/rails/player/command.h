// SPDX-License-Identifier: Apache-2.0
//
// A line of a rank's part of a program: `verb name=value name=value`.
#ifndef RAILHEAD_TESTS_RAILS_PLAYER_COMMAND_H_
#define RAILHEAD_TESTS_RAILS_PLAYER_COMMAND_H_

#include <cstddef>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace railhead::player {

class Command {
 public:
  explicit Command(absl::string_view line) {
    for (const absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
      if (verb_.empty()) {
        verb_ = std::string(word);
        continue;
      }
      const std::pair<absl::string_view, absl::string_view> field =
          absl::StrSplit(word, absl::MaxSplits('=', 1));
      fields_[std::string(field.first)] = std::string(field.second);
    }
  }

  const std::string& verb() const { return verb_; }
  bool Has(const std::string& name) const { return fields_.count(name) != 0; }
  std::string Text(const std::string& name) const {
    const auto found = fields_.find(name);
    return found == fields_.end() ? "" : found->second;
  }
  long Number(const std::string& name, long otherwise = 0) const {
    const auto found = fields_.find(name);
    return found == fields_.end() ? otherwise : std::strtol(found->second.c_str(), nullptr, 10);
  }
  int Int(const std::string& name, int otherwise = 0) const {
    return static_cast<int>(Number(name, otherwise));
  }
  size_t Size(const std::string& name) const { return static_cast<size_t>(Number(name)); }
  std::vector<size_t> Sizes(const std::string& name) const {
    std::vector<size_t> sizes;
    for (const absl::string_view word : absl::StrSplit(Text(name), ',', absl::SkipEmpty())) {
      sizes.push_back(std::strtoull(std::string(word).c_str(), nullptr, 10));
    }
    return sizes;
  }

 private:
  std::string verb_;
  std::map<std::string, std::string> fields_;
};

}  // namespace railhead::player

#endif  // RAILHEAD_TESTS_RAILS_PLAYER_COMMAND_H_
