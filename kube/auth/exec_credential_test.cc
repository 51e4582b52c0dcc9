// SPDX-License-Identifier: Apache-2.0
#include "kube/auth/exec_credential.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kube/yaml.h"

namespace railhead::kube {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kVersion[] = "client.authentication.k8s.io/v1";

absl::StatusOr<ExecPlugin> Parse(absl::string_view fields) {
  const std::string text = absl::StrCat("{apiVersion: ", kVersion, fields, "}");
  return ParseExecPlugin(ParseYaml(text).value().at(0), "/home", false);
}

TEST(ExecPluginTest, PathsAreRelativeToTheKubeconfigAndNamesAreNot) {
  EXPECT_EQ(Parse(", command: aws")->command.program, "aws");
  EXPECT_EQ(Parse(", command: bin/aws")->command.program, "/home/bin/aws");
  EXPECT_EQ(Parse(", command: /bin/aws")->command.program, "/bin/aws");
}

TEST(ExecPluginTest, NamesTheFieldThatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"", ".command is missing"},
      {", command: [a]", ".command is not a string"},
      {", command: \"a\\0b\"", ".command is not a string"},
      {", command: a, args: b", ".args is not a list"},
      {", command: a, args: [1]", ".args is not a list of strings"},
      {", command: a, env: {A: b}", ".env is not a list"},
      {", command: a, env: [{value: b}]", ".env is not a list of {name: NAME, value: TEXT}"},
      {", command: a, env: [{name: 'A=B', value: b}]", ".env is not a list of"},
      {", command: a, interactiveMode: Sometimes", ".interactiveMode is \"Sometimes\", not Never"},
      {", command: a, installHint: 7", ".installHint is not a string"},
  };
  for (const auto& [fields, message] : wrong) {
    const absl::Status status = Parse(fields).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << fields;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << fields;
  }
  const Json old = {{"apiVersion", "client.authentication.k8s.io/v1alpha1"}, {"command", "aws"}};
  EXPECT_THAT(std::string(ParseExecPlugin(old, "/", false).status().message()),
              HasSubstr(".apiVersion is \"client.authentication.k8s.io/v1alpha1\""));
}

TEST(ExecCredentialTest, SaysWhatIsWrongButNotTheSecret) {
  const auto answer = [](absl::string_view status, absl::string_view version = kVersion) {
    return absl::StrCat(R"({"apiVersion": ")", version,
                        R"(", "kind": "ExecCredential", "status": )", status, "}");
  };
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"sesame", "did not print an ExecCredential in JSON"},
      {R"("sesame")", "whose kind is not ExecCredential"},
      {R"({"kind": "Status", "token": "sesame"})", "whose kind is not ExecCredential"},
      {answer(R"({"token": "sesame"})", "v1"),
       "whose apiVersion is not client.authentication.k8s.io/v1"},
      {answer(R"("sesame")"), "without status"},
      {answer("{}"), "with neither a token nor a certificate"},
      {answer(R"({"token": "sesame\nX: y"})"), "status.token that is not one word"},
      {answer(R"({"token": ["sesame"]})"), "status.token that is not a string"},
      {answer(R"({"clientKeyData": "sesame"})"), "printed only one of"},
      {answer(R"({"token": "sesame", "expirationTimestamp": "soon"})"), "RFC 3339"},
  };
  for (const auto& [text, message] : wrong) {
    const absl::Status status = ParseExecCredential(text, kVersion).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << text;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("sesame"))) << text;
  }
}

TEST(ExecCredentialTest, ReadsTheTimeOfItsEnd) {
  const auto credential = ParseExecCredential(
      R"({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
          "status": {"token": "t", "expirationTimestamp": "2026-11-26T12:00:00+01:00"}})",
      kVersion);
  ASSERT_TRUE(credential.ok()) << credential.status();
  EXPECT_EQ(credential->token, "t");
  EXPECT_EQ(credential->expires,
            absl::FromCivil(absl::CivilSecond(2026, 11, 26, 11, 0, 0), absl::UTCTimeZone()));
}

}  // namespace
}  // namespace railhead::kube
