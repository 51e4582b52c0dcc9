// SPDX-License-Identifier: Apache-2.0
#include "runtime/net/port_owner.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/net/socket.h"
#include "runtime/testing/ranks.h"

namespace railhead::net {
namespace {

TEST(PortOwnerTest, NamesThisProcess) {
  for (const char* address : {"", "127.0.0.1", "::1"}) {
    const Fd listener =
        *address == '\0' ? *Listen(std::nullopt, 0) : *Listen(*IpAddress::Parse(address), 0);
    std::string name;
    std::ifstream("/proc/self/comm") >> name;
    EXPECT_EQ(OwnerOfPort("/", LocalAddress(listener.get())->port),
              absl::StrCat("process ", ::getpid(), " (", name, ")"))
        << address;
  }
}

TEST(PortOwnerTest, SaysWhatItCanSee) {
  EXPECT_EQ(OwnerOfPort("/", static_cast<uint16_t>(railhead::testing::FreePort())),
            "another process");
  // A socket of a process in another namespace, whose connection is not a listening socket.
  const std::filesystem::path root =
      std::filesystem::path(::testing::TempDir()) / absl::StrCat("railhead_ports_", ::getpid());
  std::filesystem::create_directories(root / "proc/net");
  std::ofstream(root / "proc/net/tcp")
      << "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
      << "   0: 0100007F:733C 00000000:0000 01 00000000:00000000 00:00000000 00000000  1 0 11\n"
      << "   1: 00000000:733C 00000000:0000 0A 00000000:00000000 00:00000000 00000000  7 0 12\n"
      << "   2: short\n";
  EXPECT_EQ(OwnerOfPort(root, 0x733C), "a process of user 7");
  EXPECT_EQ(OwnerOfPort(root, 0x733D), "another process");
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace railhead::net
