// SPDX-License-Identifier: Apache-2.0
#include "kube/client.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace railhead::kube {
namespace {

const ObjectRef kTeamSecret = {"v1", "secrets", "team", "authority"};

TEST(ObjectRefTest, PathsNameOneObject) {
  EXPECT_EQ(kTeamSecret.Path(), "/api/v1/namespaces/team/secrets/authority");
  const ObjectRef configuration = {"admissionregistration.k8s.io/v1",
                                   "mutatingwebhookconfigurations", "", "hook"};
  EXPECT_EQ(configuration.Path(),
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/hook");
  EXPECT_EQ((ObjectRef{"v1", "secrets", "..", "a/../b?c=%20#"}).Path(),
            "/api/v1/namespaces/%2E%2E/secrets/a%2F..%2Fb%3Fc%3D%2520%23");
}

TEST(ObjectRefTest, ASubresourceIsPartOfThePath) {
  const ObjectRef status = {"v1", "nodes", "", "n1", "status"};
  EXPECT_EQ(status.Path(), "/api/v1/nodes/n1/status");
  EXPECT_EQ(status.ToString(), "nodes/status n1");
}

TEST(StatusFromAnswerTest, KeepsTheServersReason) {
  const absl::Status conflict = StatusFromAnswer(
      "patch x", 409, R"({"reason": "Conflict", "message": "the object has been modified"})");
  EXPECT_EQ(conflict.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(conflict.message(),
            "patch x: the API server answered 409 Conflict: the object has been modified");
  const std::vector<std::pair<int, absl::StatusCode>> codes = {
      {400, absl::StatusCode::kInvalidArgument},  {401, absl::StatusCode::kUnauthenticated},
      {403, absl::StatusCode::kPermissionDenied}, {404, absl::StatusCode::kNotFound},
      {410, absl::StatusCode::kOutOfRange},       {422, absl::StatusCode::kInvalidArgument},
      {429, absl::StatusCode::kUnavailable},      {500, absl::StatusCode::kUnavailable},
      {503, absl::StatusCode::kUnavailable},      {504, absl::StatusCode::kDeadlineExceeded},
      {302, absl::StatusCode::kUnavailable}};
  for (const auto& [http, code] : codes) {
    EXPECT_EQ(StatusFromAnswer("x", http, "<html>").code(), code) << http;
  }
  EXPECT_EQ(StatusFromAnswer("x", 409, R"({"reason": "AlreadyExists"})").code(),
            absl::StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace railhead::kube
