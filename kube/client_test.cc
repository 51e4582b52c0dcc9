// SPDX-License-Identifier: Apache-2.0
#include "kube/client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
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

// A collection of which at most `most` objects fit into an answer.
class LargeObjectsApi final : public Api {
 public:
  absl::StatusOr<Json> Call(const ApiRequest& request) override {
    ++calls;
    const int limit = Number(request.path, "?limit=");
    const int from = Number(request.path, "&continue=");
    if (limit > most) return absl::ResourceExhaustedError("the response is too large");
    Json page = {{"items", Json::array()}, {"metadata", {{"resourceVersion", "7"}}}};
    const int end = std::min(from + limit, objects);
    for (int i = from; i < end; ++i) {
      page["items"].push_back({{"metadata", {{"name", std::to_string(i)}}}});
    }
    if (end < objects) page["metadata"]["continue"] = std::to_string(end);
    return page;
  }
  absl::Status Stream(const StreamRequest& /*request*/,
                      const std::function<absl::Status(absl::string_view)>& /*unused*/) override {
    return absl::UnavailableError("no watch");
  }

  int objects = 60;
  int most = 10;  // in an answer
  int calls = 0;

 private:
  static int Number(const std::string& path, const std::string& key) {
    const size_t at = path.find(key);
    return at == std::string::npos ? 0 : std::stoi(path.substr(at + key.size()));
  }
};

TEST(ForEachTest, VisitsObjectsOfWhichFewFitIntoAnAnswer) {
  for (const int most : {1, 10, 1000}) {
    LargeObjectsApi api;
    api.most = most;
    std::vector<std::string> visited;
    EXPECT_EQ(ForEach(api, {"v1", "nodes", "", ""},
                      [&visited](const Json& object) {
                        visited.push_back(StringAt(object, {"metadata", "name"}));
                        return absl::OkStatus();
                      }),
              absl::OkStatus());
    ASSERT_EQ(visited.size(), 60U) << most;
    for (int i = 0; i < 60; ++i) EXPECT_EQ(visited[static_cast<size_t>(i)], std::to_string(i));
  }
}

TEST(ForEachTest, AnObjectThatFitsIntoNoAnswerIsAnError) {
  LargeObjectsApi api;
  api.most = 0;
  EXPECT_EQ(ForEach(api, {"v1", "nodes", "", ""}, [](const Json&) { return absl::OkStatus(); }),
            absl::ResourceExhaustedError("the response is too large"));
  EXPECT_EQ(api.calls, 8);
}

TEST(ForEachTest, TheVisitorsErrorIsNotTakenForTheServers) {
  LargeObjectsApi api;
  api.most = 1000;
  const auto refuse = [](const Json&) { return absl::ResourceExhaustedError("no room"); };
  EXPECT_EQ(ForEach(api, {"v1", "nodes", "", ""}, refuse), absl::ResourceExhaustedError("no room"));
  EXPECT_EQ(api.calls, 1);
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
