// SPDX-License-Identifier: Apache-2.0
//
// Property of every finding, for the tests of its makers: all of its fields are set, and both
// printers show the same values.
#ifndef RAILHEAD_BASE_TESTING_FINDING_CHECKS_H_
#define RAILHEAD_BASE_TESTING_FINDING_CHECKS_H_

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/finding.h"
#include "base/printable_text.h"

namespace railhead {

inline void ExpectWhole(const Finding& finding) {
  const nlohmann::ordered_json json = nlohmann::ordered_json::parse(
      ToJson(finding).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  const auto field = [&json](const char* name) { return json.at(name).get<std::string>(); };
  for (const char* name : {"severity", "check", "object", "observed"}) {
    EXPECT_FALSE(field(name).empty()) << name << " of " << json;
  }
  EXPECT_EQ(field("fix").empty(), finding.severity == Severity::kOk) << json;
  EXPECT_EQ(absl::StripAsciiWhitespace(field("fix")), field("fix")) << json;
  // Bytes that are not UTF-8 are replaced in JSON and escaped for people.
  if (field("object") != finding.object || field("observed") != finding.observed) return;
  const std::string row =
      absl::StrCat(field("check"), "  ", PrintableText(field("object")), ": ",
                   PrintableText(field("observed")), "\n",
                   field("fix").empty() ? ""
                                        : absl::StrCat(std::string(8 + field("check").size(), ' '),
                                                       "fix: ", PrintableText(field("fix")), "\n"));
  std::string table = FindingsTable({&finding, 1});
  EXPECT_EQ(absl::AsciiStrToLower(table.substr(0, 4)),
            absl::StrCat(field("severity"), std::string(4 - field("severity").size(), ' ')));
  EXPECT_EQ(table.substr(6), row);
  EXPECT_EQ(FindingLine(finding), absl::StrCat(field("object"), ": ", field("observed"),
                                               field("fix").empty() ? "" : "; ", field("fix")));
}

}  // namespace railhead

#endif  // RAILHEAD_BASE_TESTING_FINDING_CHECKS_H_
