// SPDX-License-Identifier: Apache-2.0
#include "operator/verdict/prometheus_text.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace railhead::op::verdict {
namespace {

// More labels than any series of ours has.
constexpr size_t kMostLabels = 32;

absl::string_view TakeName(absl::string_view& rest, bool colons) {
  size_t end = 0;
  while (end < rest.size()) {
    const auto letter = static_cast<unsigned char>(rest[end]);
    const bool fits = absl::ascii_isalpha(letter) || letter == '_' || (colons && letter == ':') ||
                      (end > 0 && absl::ascii_isdigit(letter));
    if (!fits) break;
    ++end;
  }
  const absl::string_view name = rest.substr(0, end);
  rest.remove_prefix(end);
  return name;
}

void SkipBlanks(absl::string_view& rest) {
  while (absl::ConsumePrefix(&rest, " ") || absl::ConsumePrefix(&rest, "\t")) {
  }
}

// From the opening quote to the closing one. False when it does not end, or escapes what needs
// none.
bool TakeQuoted(absl::string_view& rest, std::string& value) {
  if (!absl::ConsumePrefix(&rest, "\"")) return false;
  while (!rest.empty()) {
    const char letter = rest.front();
    rest.remove_prefix(1);
    if (letter == '"') return true;
    if (letter != '\\') {
      value.push_back(letter);
      continue;
    }
    if (rest.empty()) return false;
    const char escaped = rest.front();
    rest.remove_prefix(1);
    if (escaped != 'n' && escaped != '\\' && escaped != '"') return false;
    value.push_back(escaped == 'n' ? '\n' : escaped);
  }
  return false;
}

absl::Status TakeLabels(absl::string_view& rest, Sample& sample) {
  SkipBlanks(rest);
  while (!absl::ConsumePrefix(&rest, "}")) {
    const std::string name(TakeName(rest, false));
    if (name.empty()) return absl::InvalidArgumentError("a label has no name");
    SkipBlanks(rest);
    std::string value;
    const bool equals = absl::ConsumePrefix(&rest, "=");
    SkipBlanks(rest);
    if (!equals || !TakeQuoted(rest, value)) {
      return absl::InvalidArgumentError(absl::StrCat("label ", name, " has no quoted value"));
    }
    if (sample.labels.size() == kMostLabels) {
      return absl::InvalidArgumentError(absl::StrCat("it has more than ", kMostLabels, " labels"));
    }
    if (!sample.labels.emplace(name, std::move(value)).second) {
      return absl::InvalidArgumentError(absl::StrCat("label ", name, " appears twice"));
    }
    SkipBlanks(rest);
    if (absl::ConsumePrefix(&rest, ",")) {
      SkipBlanks(rest);
    } else if (rest.empty() || rest.front() != '}') {
      return absl::InvalidArgumentError(
          absl::StrCat("no closing brace of the labels after ", name));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::string_view Sample::Label(absl::string_view label) const {
  const auto found = labels.find(label);
  return found == labels.end() ? absl::string_view() : absl::string_view(found->second);
}

absl::string_view NameOfSample(absl::string_view line) { return TakeName(line, true); }

absl::StatusOr<Sample> ParseSample(absl::string_view line) {
  Sample sample;
  sample.name = std::string(TakeName(line, true));
  if (sample.name.empty()) {
    return absl::InvalidArgumentError("it does not begin with a metric name");
  }
  SkipBlanks(line);
  if (absl::ConsumePrefix(&line, "{")) {
    absl::Status labels = TakeLabels(line, sample);
    if (!labels.ok()) return labels;
  }
  SkipBlanks(line);
  const absl::string_view value = line.substr(0, line.find_first_of(" \t"));
  if (!absl::SimpleAtod(value, &sample.value)) {
    return absl::InvalidArgumentError("its value is not a number");
  }
  line.remove_prefix(value.size());
  SkipBlanks(line);
  int64_t time = 0;
  if (!line.empty() && !absl::SimpleAtoi(line, &time)) {
    return absl::InvalidArgumentError("the text after its value is not a timestamp");
  }
  return sample;
}

}  // namespace railhead::op::verdict
