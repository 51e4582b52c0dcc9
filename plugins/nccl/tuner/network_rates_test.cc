// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/tuner/network_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace railhead::nccl {
namespace {

using ::testing::HasSubstr;

TEST(NetworkRatesTest, AreSumsOfTheRails) {
  struct Case {
    const char* text;
    NetworkRates rates;
  };
  for (const Case& one :
       {Case{"400/400", {400, 400}}, Case{"400/400,0/400", {400, 800}}, Case{"4/10, 1/10", {5, 20}},
        Case{" 0.5/2.5 ,2/2.5,1/1", {3.5, 6}}, Case{"0/200,50/200,0/200", {50, 600}}}) {
    const auto rates = ParseNetworkRates(one.text);
    ASSERT_TRUE(rates.ok()) << rates.status();
    EXPECT_EQ(*rates, one.rates) << one.text;
  }
}

TEST(NetworkRatesTest, WrongOnesAreQuotedWithWhatIsAllowed) {
  std::string many = "1/1";
  for (int i = 0; i < 64; ++i) many += ",1/1";
  for (const std::string& text : {std::string("on"),          std::string("400"),
                                  std::string("400/"),        std::string("/400"),
                                  std::string("500/400"),     std::string("0/400"),
                                  std::string("0/0"),         std::string("0/400,0/400"),
                                  std::string("-1/400"),      std::string("1e2/400"),
                                  std::string("nan/400"),     std::string("inf/inf"),
                                  std::string("0x10/400"),    std::string("400/400,"),
                                  std::string("400/400/400"), std::string("1/1000000"),
                                  std::string("4 00/400"),    std::string("\x01/\xff"),
                                  std::string(1 << 20, '9'),  many}) {
    const auto rates = ParseNetworkRates(text);
    ASSERT_FALSE(rates.ok()) << text;
    EXPECT_THAT(std::string(rates.status().message()), HasSubstr("RAILHEAD_NCCL_TUNER='"));
    EXPECT_THAT(std::string(rates.status().message()), HasSubstr("such as 400/400,100/400"));
    EXPECT_LT(rates.status().message().size(), 1000U);
  }
}

TEST(NetworkRatesTest, TheTunerIsOffUnlessRequested) {
  for (const char* off : {"", " ", "off", " off "}) EXPECT_FALSE(RequestsTuner(off)) << off;
  for (const char* on : {"1/2", "wrong", "OFF"}) EXPECT_TRUE(RequestsTuner(on)) << on;
}

}  // namespace
}  // namespace railhead::nccl
