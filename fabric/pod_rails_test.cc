// SPDX-License-Identifier: Apache-2.0
#include "fabric/pod_rails.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace railhead::fabric {
namespace {

using ::testing::HasSubstr;

PodRails Example() {
  PodRails pod_rails;
  pod_rails.node = "node-1";
  PodRail rail;
  rail.device = "rxe0";
  rail.link_layer = "Ethernet";
  rail.rate_gbps = 2.5;
  rail.pci_address = "0000:00:03.0";
  rail.netdev = "eth1";
  rail.char_devices = {"/dev/infiniband/uverbs0"};
  pod_rails.rails.push_back(rail);
  rail.rail = 1;
  rail.device = "rxe1";
  rail.port = 2;
  rail.numa_node = 1;
  rail.nearest_gpus = {"0000:19:00.0"};
  pod_rails.rails.push_back(rail);
  return pod_rails;
}

// A document with one rail whose text is `rail`.
std::string Document(const std::string& rail) {
  return absl::StrCat(
      R"({"apiVersion":"railhead.io/v1alpha1","kind":"PodRails","node":"n","rails":[)", rail, "]}");
}

TEST(PodRails, RoundTrip) {
  EXPECT_EQ(ParsePodRails(ToJson(Example())).value(), Example());
  EXPECT_EQ(ToJson(Example()), ToJson(ParsePodRails(ToJson(Example())).value()));
  EXPECT_EQ(ParsePodRails(ToJson(PodRails{"n", {}})).value(), (PodRails{"n", {}}));
}

TEST(PodRails, ReadsTheContractsExample) {
  const absl::StatusOr<PodRails> read = ParsePodRails(R"(
    {"apiVersion":"railhead.io/v1alpha1","kind":"PodRails","node":"node-1","future":{"a":[1]},
     "rails":[{"rail":0,"device":"rxe0","port":1,"linkLayer":"Ethernet","rateGbps":2.5,
     "pciAddress":"0000:00:03.0","numaNode":-1,"netdev":"eth1","other":null,
     "charDevices":["/dev/infiniband/uverbs0"],"nearestGpus":[]}]})");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->rails.at(0), Example().rails[0]);
}

TEST(PodRails, OptionalFieldsTakeDefaults) {
  const absl::StatusOr<PodRails> read =
      ParsePodRails(Document(R"({"rail":3,"device":"d","port":1})"));
  ASSERT_TRUE(read.ok()) << read.status();
  PodRail expected;
  expected.rail = 3;
  expected.device = "d";
  EXPECT_EQ(read->rails.at(0), expected);
}

TEST(PodRails, BadFieldsAreNamed) {
  const struct {
    const char* rail;
    const char* message;
  } cases[] = {
      {R"(7)", "rails[0]"},
      {R"({"device":"d","port":1})", "rails[0].rail is missing"},
      {R"({"rail":0,"port":1})", "rails[0].device is missing"},
      {R"({"rail":0,"device":"","port":1})", "device must not be empty"},
      {R"({"rail":0,"device":"d"})", "port is missing"},
      {R"({"rail":-1,"device":"d","port":1})", "rail must be"},
      {R"({"rail":1.5,"device":"d","port":1})", "rail must be"},
      {R"({"rail":"0","device":"d","port":1})", "rail must be"},
      {R"({"rail":18446744073709551615,"device":"d","port":1})", "rail must be"},
      {R"({"rail":18446744073709551616,"device":"d","port":1})", "rail must be"},
      {R"({"rail":0,"device":"d","port":0})", "port must be"},
      {R"({"rail":0,"device":"d","port":256})", "port must be"},
      {R"({"rail":0,"device":["d"],"port":1})", "device must be a string"},
      {R"({"rail":0,"device":"d","port":1,"rateGbps":-1})", "rateGbps"},
      {R"({"rail":0,"device":"d","port":1,"rateGbps":"x"})", "rateGbps"},
      {R"({"rail":0,"device":"d","port":1,"numaNode":-2})", "numaNode"},
      {R"({"rail":0,"device":"d","port":1,"charDevices":"x"})", "charDevices"},
      {R"({"rail":0,"device":"d","port":1,"charDevices":[1]})", "charDevices"},
      {R"({"rail":0,"device":"d","port":1},{"rail":0,"device":"e","port":1})", "rail 0 appears"},
  };
  for (const auto& test : cases) {
    const absl::Status status = ParsePodRails(Document(test.rail)).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << test.rail;
    EXPECT_THAT(status.message(), HasSubstr(test.message)) << test.rail;
  }
}

TEST(PodRails, OtherDocumentsAreRefused) {
  const std::string good = ToJson(Example());
  for (const std::string& text :
       {std::string(), std::string("null"), std::string("[]"), std::string("{}"), good + "x",
        good.substr(0, good.size() / 2), std::string(100000, '['),
        absl::StrReplaceAll(good, {{"v1alpha1", "v2"}}),
        absl::StrReplaceAll(good, {{"PodRails", "Pod"}}),
        absl::StrReplaceAll(good, {{"\"rails\"", "\"rail\""}}),
        absl::StrReplaceAll(good, {{"node-1", ""}}), good + std::string(1 << 20, ' ')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParsePodRails(text).status())) << text.substr(0, 200);
  }
}

TEST(PodRails, TooManyRails) {
  std::string rails;
  for (int i = 0; i < 65; ++i) {
    absl::StrAppend(&rails, i == 0 ? "" : ",", R"({"rail":)", i, R"(,"device":"d","port":1})");
  }
  EXPECT_THAT(ParsePodRails(Document(rails)).status().message(), HasSubstr("at most 64"));
}

TEST(PodRails, WritesBytesThatAreNotUtf8) {
  PodRails odd = Example();
  odd.rails[0].netdev = "eth\xff";
  EXPECT_TRUE(ParsePodRails(ToJson(odd)).ok());
}

// Any damage to a good file gives either an error or a value that itself can be written and read.
TEST(PodRails, RandomDamage) {
  const std::string good = ToJson(Example());
  std::mt19937 random(5);
  for (int round = 0; round < 20000; ++round) {
    std::string text = good;
    for (unsigned changes = 1 + random() % 4; changes > 0; --changes) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 16));
      }
    }
    const absl::StatusOr<PodRails> read = ParsePodRails(text);
    if (read.ok()) {
      ASSERT_EQ(ParsePodRails(ToJson(*read)).value(), *read) << text;
    }
  }
}

}  // namespace
}  // namespace railhead::fabric
