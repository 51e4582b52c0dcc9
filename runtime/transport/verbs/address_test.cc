// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "runtime/transport/verbs/pkey.h"
#include "runtime/transport/verbs/settings.h"
#include "runtime/transport/verbs/slot.h"

namespace railhead::transport::verbs {
namespace {

VerbsAddress Sample() {
  VerbsAddress address;
  address.mtu = IBV_MTU_4096;
  address.qp_numbers = {0x1234, 0x1235};
  address.psn = 0xabcdef;
  address.slots = 16;
  address.slot_payload = 65536;
  address.ring_address = 0x7f0000001000;
  address.ring_key = 0xdeadbeef;
  address.gids = {
      {GidKind::kRoceV2Ipv4, 3, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, 1}},
      {GidKind::kRoceV2LinkLocal, 1, {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7}}};
  address.pkeys = {0xffff, 0x0001};
  return address;
}

std::string With(size_t offset, const std::string& bytes) {
  std::string blob = EncodeAddress(Sample());
  blob.replace(offset, bytes.size(), bytes);
  return blob;
}

TEST(Address, SurvivesTheTrip) {
  const VerbsAddress sent = Sample();
  const absl::StatusOr<VerbsAddress> got = ParseAddress(EncodeAddress(sent));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_FALSE(got->infiniband);
  EXPECT_FALSE(got->needs_grh);
  EXPECT_EQ(got->mtu, sent.mtu);
  EXPECT_EQ(got->qp_numbers, sent.qp_numbers);
  EXPECT_EQ(got->psn, sent.psn);
  EXPECT_EQ(got->slots, sent.slots);
  EXPECT_EQ(got->slot_payload, sent.slot_payload);
  EXPECT_EQ(got->ring_address, sent.ring_address);
  EXPECT_EQ(got->ring_key, sent.ring_key);
  ASSERT_EQ(got->gids.size(), 2u);
  EXPECT_EQ(got->gids[0].gid, sent.gids[0].gid);
  EXPECT_EQ(got->gids[1].kind, GidKind::kRoceV2LinkLocal);
  EXPECT_EQ(got->pkeys, sent.pkeys);
}

TEST(Address, InfinibandSurvivesTheTrip) {
  VerbsAddress sent = Sample();
  sent.infiniband = true;
  sent.needs_grh = true;
  sent.lid = 0x4711;
  sent.gids = {{GidKind::kInfiniband, 0, {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}}};
  const absl::StatusOr<VerbsAddress> got = ParseAddress(EncodeAddress(sent));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(got->infiniband);
  EXPECT_TRUE(got->needs_grh);
  EXPECT_EQ(got->lid, 0x4711);
}

VerbsAddress IwarpSample() {
  VerbsAddress address = Sample();
  address.gids.clear();
  address.pkeys.clear();
  address.qp_numbers.clear();
  address.psn = 0;
  address.iwarp = {*net::IpAddress::Parse("10.0.0.1"), 4711, {1, 2, 3}};
  return address;
}

TEST(Address, IwarpSurvivesTheTrip) {
  for (const char* ip : {"10.0.0.1", "2001:db8::7"}) {
    VerbsAddress sent = IwarpSample();
    sent.iwarp->ip = *net::IpAddress::Parse(ip);
    const absl::StatusOr<VerbsAddress> got = ParseAddress(EncodeAddress(sent));
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(got->iwarp.has_value());
    EXPECT_EQ(got->iwarp->ip, sent.iwarp->ip);
    EXPECT_EQ(got->iwarp->port, 4711);
    EXPECT_EQ(got->iwarp->token, sent.iwarp->token);
    EXPECT_EQ(got->ring_key, sent.ring_key);
  }
}

TEST(Address, EveryFieldOfIwarpIsChecked) {
  const std::string whole = EncodeAddress(IwarpSample());
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(ParseAddress(whole.substr(0, length)).ok()) << length;
  }
  EXPECT_FALSE(ParseAddress(whole + "x").ok());
  struct Case {
    const char* field;
    size_t offset;
    std::string bytes;
  };
  for (const Case& c : {
           Case{"flags", 7, "\x03"},            // needs a global route
           Case{"flags", 5, "\x01"},            // InfiniBand
           Case{"flags", 10, "\x01"},           // has a GID
           Case{"queue pairs", 12, "\x01"},     // has one
           Case{"size of its IP", 40, "\x05"},  // neither 4 nor 16
           Case{"size of its IP", 45, "\x01"},  // 4, and more behind
           Case{"size of its IP", 40, std::string("\x10\0\0\0\0\0\0\0\0\0\0\xff\xff", 13)},
           Case{"port", 57, std::string(2, '\0')},
       }) {
    std::string bytes = whole;
    bytes.replace(c.offset, c.bytes.size(), c.bytes);
    const absl::Status status = ParseAddress(bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.field;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(c.field));
  }
}

TEST(Address, EveryOtherLengthIsRefused) {
  const std::string whole = EncodeAddress(Sample());
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(ParseAddress(whole.substr(0, length)).ok()) << length;
  }
  EXPECT_FALSE(ParseAddress(whole + "x").ok());
}

TEST(Address, EveryFieldIsChecked) {
  struct Case {
    const char* field;
    std::string bytes;
  };
  const std::vector<Case> cases = {
      {"uses another transport", With(0, "HTTP")},
      {"version", With(4, "\x01")},
      {"link layer", With(5, std::string(1, '\0'))},
      {"link layer", With(5, "\x07")},
      {"MTU", With(6, std::string(1, '\0'))},
      {"MTU", With(6, "\x06")},
      {"flags", With(7, "\x80")},
      {"number of GIDs", With(10, "\xff")},
      {"length", With(10, "\x01")},
      {"number of P_Keys", With(11, "\x21")},
      {"length", With(11, "\x01")},
      {"number of queue pairs", With(12, std::string(1, '\0'))},
      {"number of queue pairs", With(12, "\x09")},
      {"number of queue pairs", With(15, "\x01")},
      {"length", With(12, "\x01")},
      {"length", With(12, "\x08")},
      {"PSN", With(16, std::string("\0\0\0\x01", 4))},
      {"number of slots", With(20, std::string("\0\0\0\0", 4))},
      {"number of slots", With(20, std::string("\x0c\0\0\0", 4))},
      {"number of slots", With(20, std::string("\0\0\0\x40", 4))},
      {"slot size", With(24, std::string("\0\0\0\0", 4))},
      {"slot size", With(24, std::string("\x01\0\x01\0", 4))},
      {"slot size", With(24, std::string("\0\0\0\x40", 4))},
      {"ring address", With(28, std::string(8, '\0'))},
      {"ring address", With(28, std::string("\x08\0\0\0\0\0\0\0", 8))},
      {"ring address", With(28, std::string("\0\xff\xff\xff\xff\xff\xff\xff", 8))},
      {"kind of a GID", With(40, std::string(1, '\0'))},
      {"kind of a GID", With(40, "\xc8")},
      {"kind of a GID", With(40, "\x01")},  // InfiniBand, on Ethernet
      {"kind of a GID", With(40, "\x03")},  // IPv6, but the address is IPv4-mapped
      {"kind of a GID", With(41, std::string(16, '\0'))},
      {"P_Key", With(74, std::string("\0\0", 2))},
      {"P_Key", With(74, std::string("\0\x80", 2))},
      {"repeated P_Key", With(74, std::string("\x01\x80", 2))},
      {"queue pair number", With(78, std::string("\x01\0\0\0", 4))},
      {"queue pair number", With(78, std::string("\0\0\0\x01", 4))},
      {"repeated queue pair number", With(82, "\x34")},
  };
  for (const Case& c : cases) {
    const absl::Status status = ParseAddress(c.bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.field;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(c.field));
  }
}

TEST(Address, AsManyQueuePairsAsThereMayBe) {
  VerbsAddress address = Sample();
  address.qp_numbers.clear();
  for (uint32_t i = 0; i < kMostQpsPerRail; ++i) {
    address.qp_numbers.push_back(0xffffff - i);
    const absl::StatusOr<VerbsAddress> got = ParseAddress(EncodeAddress(address));
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->qp_numbers, address.qp_numbers);
  }
  address.qp_numbers.push_back(2);
  EXPECT_FALSE(ParseAddress(EncodeAddress(address)).ok());
}

TEST(Address, AKindMayComeOnlyOnce) {
  VerbsAddress address = Sample();
  address.gids.push_back(address.gids.front());
  EXPECT_THAT(std::string(ParseAddress(EncodeAddress(address)).status().message()),
              testing::HasSubstr("repeated"));
}

// Whatever the bytes: no crash, and what is accepted is within its bounds.
TEST(Address, RandomDamage) {
  std::mt19937 random(1);
  for (int round = 0; round < 40000; ++round) {
    std::string bytes = EncodeAddress(round % 2 == 0 ? Sample() : IwarpSample());
    for (uint32_t i = random() % 4 + 1; i > 0; --i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) bytes.resize(random() % (2 * bytes.size()));
    const absl::StatusOr<VerbsAddress> got = ParseAddress(bytes);
    if (!got.ok()) continue;
    ASSERT_TRUE(got->slots >= kMinSlots && got->slots <= kMaxSlots);
    ASSERT_TRUE(got->slot_payload >= kMinSlotPayload && got->slot_payload <= kMaxSlotPayload);
    ASSERT_GE(got->ring_address + got->slots * SlotStride(got->slot_payload), got->ring_address);
    ASSERT_LE(got->pkeys.size(), kMostPkeys);
    ASSERT_EQ(got->qp_numbers.empty(), got->iwarp.has_value());
    ASSERT_LE(got->qp_numbers.size(), kMostQpsPerRail);
    for (const uint32_t number : got->qp_numbers) ASSERT_TRUE(number >= 2 && number <= 0xffffff);
    ASSERT_EQ(EncodeAddress(*got), bytes);
  }
}

}  // namespace
}  // namespace railhead::transport::verbs
