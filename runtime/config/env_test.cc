// SPDX-License-Identifier: Apache-2.0
#include "runtime/config/env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace railhead::config {
namespace {

using ::testing::HasSubstr;

// An environment of the test's own.
struct Environment {
  std::map<std::string, std::string> values;
  std::optional<std::string> operator()(absl::string_view name) const {
    const auto found = values.find(std::string(name));
    if (found == values.end()) return std::nullopt;
    return found->second;
  }
};

absl::StatusOr<Settings> Read(const Environment& env) {
  Settings settings;
  absl::Status status = ReadSettings(env, settings);
  status.Update(CheckSettings(settings));
  if (!status.ok()) return status;
  return settings;
}

TEST(EnvTest, DefaultsAreThoseOfTheContract) {
  const Environment empty;
  const absl::StatusOr<Settings> settings = Read(empty);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->rails_file, "/run/railhead/rails.json");
  EXPECT_EQ(settings->transport, TransportChoice::kAuto);
  EXPECT_FALSE(settings->require_rdma);
  EXPECT_EQ(settings->fallback, Fallback::kWarn);
  EXPECT_EQ(settings->metrics_port, 9402);
  EXPECT_EQ(settings->ib_traffic_class, 0);
  EXPECT_EQ(settings->ib_service_level, 0);
  EXPECT_EQ(settings->ib_pkey, 0);
  EXPECT_EQ(settings->ib_qps_per_rail, 1);
  EXPECT_EQ(settings->timeout, absl::Seconds(60));
  EXPECT_EQ(settings->log_level, LogLevel::kWarn);
}

TEST(EnvTest, EveryVariableIsRead) {
  const Environment env{{{"RANK", "3"},
                         {"WORLD_SIZE", "8"},
                         {"MASTER_ADDR", "job-0.train"},
                         {"MASTER_PORT", "29555"},
                         {"RAILHEAD_JOB", "job"},
                         {"RAILHEAD_SECRET_FILE", "/run/secrets/job/key"},
                         {"RAILHEAD_AUTH", "encrypt,frames, require"},
                         {"RAILHEAD_POD", "job-3"},
                         {"RAILHEAD_NODE", "node-1"},
                         {"RAILHEAD_RAILS_FILE", "/x/rails.json"},
                         {"RAILHEAD_TRANSPORT", "verbs"},
                         {"RAILHEAD_REQUIRE_RDMA", "1"},
                         {"RAILHEAD_FALLBACK", "fail"},
                         {"RAILHEAD_RAILS", "4-6, 0,5"},
                         {"RAILHEAD_SOCKET_IFNAME", "eth7, eth8,eth9"},
                         {"RAILHEAD_IB_TC", "106"},
                         {"RAILHEAD_IB_SL", "3"},
                         {"RAILHEAD_IB_PKEY", "0x8001"},
                         {"RAILHEAD_IB_QPS_PER_RAIL", "4"},
                         {"RAILHEAD_METRICS_PORT", "0"},
                         {"RAILHEAD_TIMEOUT_SECONDS", "7"},
                         {"RAILHEAD_START_TIMEOUT_SECONDS", "300"},
                         {"RAILHEAD_LOG", "debug"}}};
  const absl::StatusOr<Rendezvous> rendezvous = ReadRendezvous(env);
  ASSERT_TRUE(rendezvous.ok()) << rendezvous.status();
  EXPECT_EQ(rendezvous->rank, 3);
  EXPECT_EQ(rendezvous->world_size, 8);
  EXPECT_EQ(rendezvous->master_addr, "job-0.train");
  EXPECT_EQ(rendezvous->master_port, 29555);
  const absl::StatusOr<Settings> settings = Read(env);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->job, "job");
  EXPECT_EQ(settings->secret_file, "/run/secrets/job/key");
  EXPECT_EQ(settings->frames, FrameWish::kEncrypted);
  EXPECT_TRUE(settings->require_secret);
  EXPECT_EQ(settings->pod, "job-3");
  EXPECT_EQ(settings->node, "node-1");
  EXPECT_EQ(settings->rails_file, "/x/rails.json");
  EXPECT_EQ(settings->transport, TransportChoice::kVerbs);
  EXPECT_TRUE(settings->require_rdma);
  EXPECT_EQ(settings->fallback, Fallback::kFail);
  EXPECT_EQ(settings->rails, (std::vector<int>{0, 4, 5, 6}));
  EXPECT_EQ(settings->socket_ifname, "eth7");
  EXPECT_EQ(settings->more_socket_ifnames, (std::vector<std::string>{"eth8", "eth9"}));
  EXPECT_EQ(settings->ib_traffic_class, 106);
  EXPECT_EQ(settings->ib_service_level, 3);
  EXPECT_EQ(settings->ib_pkey, 0x8001);
  EXPECT_EQ(settings->ib_qps_per_rail, 4);
  EXPECT_EQ(settings->metrics_port, 0);
  EXPECT_EQ(settings->timeout, absl::Seconds(7));
  EXPECT_EQ(settings->log_level, LogLevel::kDebug);
}

// Off is no policy that could be added to others.
TEST(EnvTest, AuthenticationIsSwitchedOffByOneWordAlone) {
  Environment env{{{"RAILHEAD_AUTH", " off"}}};
  absl::StatusOr<Settings> settings = Read(env);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_FALSE(settings->use_secret);
  EXPECT_FALSE(settings->require_secret);
  EXPECT_EQ(settings->frames, FrameWish::kPlain);
  env.values["RAILHEAD_AUTH"] = "handshake";
  settings = Read(env);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_TRUE(settings->use_secret);
}

struct Wrong {
  const char* name;
  const char* value;
  const char* allowed;
};

class WrongValueTest : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongValueTest, IsRefusedByNameWithWhatIsAllowed) {
  Environment env{{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}};
  env.values[GetParam().name] = GetParam().value;
  const absl::Status rendezvous = ReadRendezvous(env).status();
  const absl::Status settings = Read(env).status();
  ASSERT_NE(rendezvous.ok(), settings.ok()) << "exactly one of the two reads the variable";
  const std::string message(rendezvous.ok() ? settings.message() : rendezvous.message());
  EXPECT_THAT(message, HasSubstr(absl::StrCat(GetParam().name, "='", GetParam().value, "'")));
  EXPECT_THAT(message, HasSubstr(GetParam().allowed));
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongValueTest,
    ::testing::Values(
        Wrong{"RANK", "-1", "from 0 to"}, Wrong{"RANK", "1x", "whole number"},
        Wrong{"WORLD_SIZE", "0", "from 1 to"}, Wrong{"WORLD_SIZE", "99999999999", "from 1 to"},
        Wrong{"RAILHEAD_WORLD", "pods", "auto, launcher or pod"},
        Wrong{"RAILHEAD_AUTH", "frames,off", "off alone, or handshake, frames, encrypt"},
        Wrong{"MASTER_PORT", "65536", "to 65535"},
        Wrong{"RAILHEAD_TRANSPORT", "rdma", "auto, verbs, tcp or shm"},
        Wrong{"RAILHEAD_REQUIRE_RDMA", "yes", "0 or 1"},
        Wrong{"RAILHEAD_IB_TC", "256", "from 0 to 255"},
        Wrong{"RAILHEAD_IB_SL", "16", "from 0 to 15"},
        Wrong{"RAILHEAD_IB_PKEY", "0x8000", "0x0001 to 0xffff"},
        Wrong{"RAILHEAD_IB_PKEY", "0x10001", "0x0001 to 0xffff"},
        Wrong{"RAILHEAD_IB_PKEY", "8001h", "0x0001 to 0xffff"},
        Wrong{"RAILHEAD_IB_QPS_PER_RAIL", "0", "from 1 to 8"},
        Wrong{"RAILHEAD_IB_QPS_PER_RAIL", "9", "from 1 to 8"},
        Wrong{"RAILHEAD_FALLBACK", "never", "fail, warn or allow"},
        Wrong{"RAILHEAD_METRICS_PORT", "http", "from 0 to 65535"},
        Wrong{"RAILHEAD_TIMEOUT_SECONDS", "0", "from 1 to"},
        Wrong{"RAILHEAD_START_TIMEOUT_SECONDS", "0", "from 1 to"},
        Wrong{"RAILHEAD_RAILS", "0,,1", "rails such as 0,2 or 0-3"},
        Wrong{"RAILHEAD_RAILS", "3-1", "from 0 to 63"},
        Wrong{"RAILHEAD_RAILS", "-1", "from 0 to 63"},
        Wrong{"RAILHEAD_RAILS", "0-64", "from 0 to 63"},
        Wrong{"RAILHEAD_RAILS", "mlx5_0", "from 0 to 63"},
        Wrong{"RAILHEAD_JOB", "a\nb", "control characters"},
        Wrong{"RAILHEAD_JOB", "a\x7f", "control characters"},
        Wrong{"RAILHEAD_POD", "a\xc2\x9b", "control characters"},
        Wrong{"RAILHEAD_POD", "\xe2\x80\xae", "invisible"},
        Wrong{"RAILHEAD_NODE", "n\xff", "in UTF-8"}, Wrong{"RAILHEAD_NODE", "n\xc3", "in UTF-8"},
        Wrong{"RAILHEAD_SOCKET_IFNAME", "eth0,e\x80", "in UTF-8"},
        Wrong{"RAILHEAD_SOCKET_IFNAME", "averyverylongname", "at most 15"},
        Wrong{"RAILHEAD_SOCKET_IFNAME", "eth0,averyverylongname", "at most 15"},
        Wrong{"RAILHEAD_SOCKET_IFNAME", "eth0,,eth1", "separated by commas"},
        Wrong{"RAILHEAD_LOG", "trace", "error, warn, info or debug"}));

TEST(EnvTest, APkeyMayBeHexadecimalOrDecimal) {
  EXPECT_EQ(Read(Environment{{{"RAILHEAD_IB_PKEY", "0x7FFF"}}})->ib_pkey, 0x7fff);
  EXPECT_EQ(Read(Environment{{{"RAILHEAD_IB_PKEY", "32769"}}})->ib_pkey, 0x8001);
}

TEST(EnvTest, MissingRankTeaches) {
  const Environment env{{{"WORLD_SIZE", "2"}}};
  EXPECT_THAT(std::string(ReadRendezvous(env).status().message()),
              ::testing::AllOf(HasSubstr("RANK is not set"), HasSubstr("MASTER_ADDR")));
}

TEST(EnvTest, MissingRankNamesWhatTheOperatorSaysOfIt) {
  const Environment env{
      {{"RAILHEAD_NOT_DONE", "NoIndex: no RANK: the Job is not Indexed; set it\x1b[31m\nGang: x"}}};
  EXPECT_THAT(std::string(ReadRendezvous(env).status().message()),
              ::testing::EndsWith("the Railhead operator has not set them. NoIndex: no RANK: the "
                                  "Job is not Indexed; set it\\x1b[31m"));
}

// world_test.cc has all launchers.
TEST(EnvTest, TheWorldIsThatOfTheLauncher) {
  Environment env{{{"PMI_RANK", "3"},
                   {"PMI_SIZE", "4"},
                   {"RANK", "0"},
                   {"WORLD_SIZE", "1"},
                   {"MASTER_ADDR", "a"}}};
  const absl::StatusOr<Rendezvous> rendezvous = ReadRendezvous(env);
  ASSERT_TRUE(rendezvous.ok()) << rendezvous.status();
  EXPECT_EQ(rendezvous->rank, 3);
  EXPECT_EQ(rendezvous->world_size, 4);
  EXPECT_THAT(rendezvous->world_note, HasSubstr("PMI_RANK=3"));
  env.values.erase("MASTER_ADDR");
  EXPECT_THAT(std::string(ReadRendezvous(env).status().message()),
              ::testing::AllOf(HasSubstr("MASTER_ADDR is not set on a rank of PMI_RANK=3"),
                               HasSubstr("mpirun -x MASTER_ADDR=")));
}

TEST(EnvTest, RankMustBeBelowWorldSize) {
  const Environment env{{{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}};
  EXPECT_THAT(std::string(ReadRendezvous(env).status().message()),
              HasSubstr("RANK=2 is not below WORLD_SIZE=2"));
}

TEST(EnvTest, OnlyRankZeroMayLackTheMasterAddress) {
  const Environment zero{{{"RANK", "0"}, {"WORLD_SIZE", "2"}}};
  EXPECT_TRUE(ReadRendezvous(zero).ok());
  const Environment one{{{"RANK", "1"}, {"WORLD_SIZE", "2"}}};
  EXPECT_THAT(std::string(ReadRendezvous(one).status().message()), HasSubstr("MASTER_ADDR"));
}

TEST(EnvTest, AnIPv6AddressMayBeInBrackets) {
  for (const auto& [text, address] : {std::pair("[::1]", "::1"), std::pair("::1", "::1"),
                                      std::pair("[fd00::2%eth0]", "fd00::2%eth0"),
                                      std::pair("a", "a"), std::pair("[::1", "[::1")}) {
    const Environment env{{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", text}}};
    EXPECT_EQ(ReadRendezvous(env)->master_addr, address);
  }
}

TEST(EnvTest, ContradictionIsRefused) {
  const Environment env{{{"RAILHEAD_TRANSPORT", "tcp"}, {"RAILHEAD_REQUIRE_RDMA", "1"}}};
  EXPECT_THAT(std::string(Read(env).status().message()), HasSubstr("contradict"));
}

TEST(EnvTest, OneWrongValueDoesNotHideTheOthers) {
  const Environment env{
      {{"RAILHEAD_JOB", "j"}, {"RAILHEAD_TRANSPORT", "x"}, {"RAILHEAD_TIMEOUT_SECONDS", "9"}}};
  Settings settings;
  EXPECT_FALSE(ReadSettings(env, settings).ok());
  EXPECT_EQ(settings.job, "j");
  EXPECT_EQ(settings.timeout, absl::Seconds(9));
}

TEST(EnvTest, TheManPageHasWhatTheHelpHas) {
  // troff's own characters: escaped in text, and alone at the start of a line.
  std::string page = EnvManPage();
  page = absl::StrReplaceAll(page, {{"\\-", "-"}});
  const std::string help = EnvHelp();
  int variables = 0;
  for (const absl::string_view line : absl::StrSplit(help, '\n', absl::SkipWhitespace())) {
    if (absl::StartsWith(line, "    ")) {
      EXPECT_THAT(page, HasSubstr(std::string(absl::StripAsciiWhitespace(line))));
      continue;
    }
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(" (default: ", 1));
    EXPECT_THAT(page, HasSubstr(absl::StrCat("\n.B ", parts.first, "\n")));
    EXPECT_THAT(
        page, HasSubstr(absl::StrCat("\nDefault: ", absl::StripSuffix(parts.second, ")"), ".\n")));
    ++variables;
  }
  EXPECT_GT(variables, 20);
}

TEST(EnvTest, HelpNamesEveryVariable) {
  const std::string help = EnvHelp();
  for (const char* name : {"RANK",
                           "WORLD_SIZE",
                           "RAILHEAD_WORLD",
                           "MASTER_ADDR",
                           "MASTER_PORT",
                           "RAILHEAD_NOT_DONE",
                           "RAILHEAD_JOB",
                           "RAILHEAD_SECRET_FILE",
                           "RAILHEAD_JOB_SECRET",
                           "RAILHEAD_POD",
                           "RAILHEAD_NODE",
                           "RAILHEAD_RAILS_FILE",
                           "RAILHEAD_TRANSPORT",
                           "RAILHEAD_REQUIRE_RDMA",
                           "RAILHEAD_FALLBACK",
                           "RAILHEAD_RAILS",
                           "RAILHEAD_SOCKET_IFNAME",
                           "RAILHEAD_IB_TC",
                           "RAILHEAD_IB_SL",
                           "RAILHEAD_IB_PKEY",
                           "RAILHEAD_IB_QPS_PER_RAIL",
                           "RAILHEAD_METRICS_PORT",
                           "RAILHEAD_TIMEOUT_SECONDS",
                           "RAILHEAD_START_TIMEOUT_SECONDS",
                           "RAILHEAD_NCCL_TUNER",
                           "RAILHEAD_NCCL_GPU_MEMORY",
                           "RAILHEAD_NCCL_PROFILER",
                           "RAILHEAD_NCCL_KERNEL_EVENTS",
                           "RAILHEAD_FLIGHT_RECORDER",
                           "RAILHEAD_LOG"}) {
    EXPECT_THAT(help, HasSubstr(absl::StrCat(name, " (default: ")));
  }
}

TEST(ConfigureTest, WhatAProgramSetsCountsMoreThanTheEnvironment) {
  Settings settings = *Read(Environment{{{"RAILHEAD_TIMEOUT_SECONDS", "7"},
                                         {"RAILHEAD_TRANSPORT", "tcp"},
                                         {"RAILHEAD_SECRET_FILE", "/a"},
                                         {"RAILHEAD_JOB", "job"}}});
  const Fields fields = {
      {"timeoutSeconds", "9"}, {"transport", "verbs"},  {"secretFile", ""},
      {"commName", "tp"},      {"rails", "3,0-1,1"},    {"metrics", "0"},
      {"fallback", "fail"},    {"socketIfname", "e,f"}, {"startTimeoutSeconds", "8"}};
  ASSERT_TRUE(Configure(fields, settings).ok());
  EXPECT_EQ(settings.timeout, absl::Seconds(9));
  EXPECT_EQ(settings.StartTimeout(), absl::Seconds(8));
  EXPECT_EQ(settings.transport, TransportChoice::kVerbs);
  EXPECT_EQ(settings.fallback, Fallback::kFail);
  EXPECT_EQ(settings.secret_file, "");
  EXPECT_EQ(settings.comm_name, "tp");
  EXPECT_EQ(settings.rails, (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(settings.socket_ifname, "e");
  EXPECT_FALSE(settings.metrics);
  EXPECT_EQ(settings.job, "job") << "what it does not set stays";
  EXPECT_EQ(settings.SetAlike(), (Fields{{"timeoutSeconds", "9"},
                                         {"startTimeoutSeconds", "8"},
                                         {"transport", "verbs"},
                                         {"fallback", "fail"},
                                         {"commName", "tp"},
                                         {"rails", "0,1,3"}}));
  EXPECT_EQ(settings.SetBy("transport"), "rhConfig_t.transport");
  EXPECT_EQ(Settings().SetBy("transport"), "RAILHEAD_TRANSPORT");
}

TEST(ConfigureTest, AWrongFieldIsNamedAndSetsNothing) {
  const auto wrong = [](const std::string& field, const std::string& text) {
    Settings settings;
    const absl::Status set = Configure({{"commName", "tp"}, {field, text}}, settings);
    EXPECT_EQ(settings.comm_name, "");
    return std::string(set.message());
  };
  EXPECT_EQ(wrong("transport", "rdma"),
            "transport='rdma' is not allowed: set it to auto, verbs, tcp or shm");
  EXPECT_THAT(wrong("timeoutSeconds", "0"), HasSubstr("from 1 to 86400"));
  EXPECT_THAT(wrong("metrics", "2"), HasSubstr("0 or 1"));
  EXPECT_THAT(wrong("rails", ""), HasSubstr("rails such as"));
  EXPECT_THAT(wrong("nonsense", "1"), HasSubstr("there is no such field"));
  Settings settings;
  EXPECT_THAT(std::string(Configure({{"commName", std::string(65, 'x')}}, settings).message()),
              HasSubstr("at most 64 bytes"));
}

TEST(ConfigureTest, AContradictionWithTheEnvironmentNamesBoth) {
  Settings settings = *Read(Environment{{{"RAILHEAD_REQUIRE_RDMA", "1"}}});
  ASSERT_TRUE(Configure({{"transport", "tcp"}}, settings).ok());
  EXPECT_EQ(
      CheckSettings(settings).message(),
      "rhConfig_t.transport=tcp and RAILHEAD_REQUIRE_RDMA=1 contradict each other: unset one");
}

TEST(SettingsTest, TheStartHasATimeOfItsOwnWhereItIsSet) {
  EXPECT_EQ(Read(Environment{{{"RAILHEAD_TIMEOUT_SECONDS", "7"}}})->StartTimeout(),
            absl::Seconds(7));
  const absl::StatusOr<Settings> both = Read(
      Environment{{{"RAILHEAD_TIMEOUT_SECONDS", "7"}, {"RAILHEAD_START_TIMEOUT_SECONDS", "300"}}});
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->timeout, absl::Seconds(7));
  EXPECT_EQ(both->StartTimeout(), absl::Seconds(300));
}

}  // namespace
}  // namespace railhead::config
