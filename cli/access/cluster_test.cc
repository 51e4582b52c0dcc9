// SPDX-License-Identifier: Apache-2.0
#include "cli/access/cluster.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/folder_for_test.h"
#include "kube/auth/certificates.h"
#include "kube/auth/tls_identity.h"
#include "kube/http/http_server.h"

namespace railhead::cli {
namespace {

TEST(ClusterClock, IsTheApiServers) {
  const auto authority = kube::MakeAuthority("cluster", absl::Now(), absl::Hours(1));
  ASSERT_TRUE(authority.ok()) << authority.status();
  const auto leaf =
      kube::SignServingCertificate(*authority, {"localhost"}, absl::Now(), absl::Hours(1));
  ASSERT_TRUE(leaf.ok()) << leaf.status();
  kube::TlsIdentity identity;
  ASSERT_TRUE(identity.Set(*leaf).ok());
  const absl::Duration shift = absl::Hours(3);
  kube::HttpServerOptions options;
  options.address = "127.0.0.1";
  options.identity = &identity;
  kube::HttpServer server(options, [&](const kube::HttpRequest&) {
    // The server writes no other header than this one.
    return kube::HttpResponse{
        200,
        absl::StrCat("application/json\r\nDate: ",
                     absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", absl::Now() + shift,
                                      absl::UTCTimeZone())),
        R"({"metadata": {"resourceVersion": "1"}, "items": []})"};
  });
  ASSERT_TRUE(server.Start().ok());
  const FolderForTest folder;
  ClusterFlags flags;
  flags.kubeconfig =
      folder.Write("config", absl::StrCat(R"(apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: t}}]
clusters:
- name: c
  cluster:
    server: https://localhost:)",
                                          server.port(), R"(
    certificate-authority-data: )",
                                          absl::Base64Escape(authority->certificate), "\n"));
  const absl::StatusOr<ReachedCluster> reached = ReachCluster(flags);
  ASSERT_TRUE(reached.ok()) << reached.status();
  const auto ahead = [&] { return reached->clock->Now() - absl::Now(); };
  EXPECT_LT(absl::AbsDuration(ahead()), absl::Minutes(1)) << "nothing is known of the server's";
  const auto objects = AskCluster(*reached->api);
  ASSERT_TRUE(objects.ok()) << objects.status();
  EXPECT_LT(absl::AbsDuration(ahead() - shift), absl::Minutes(1));
}

}  // namespace
}  // namespace railhead::cli
