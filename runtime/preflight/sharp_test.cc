// SPDX-License-Identifier: Apache-2.0
#include "runtime/preflight/sharp.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "fabric/testing/sysfs_tree.h"

namespace railhead::preflight {
namespace {

constexpr char kWithCollNet[] = "\177ELF...ncclNetPlugin_v8\0ncclCollNetPlugin_v8";

class SharpTest : public ::testing::Test {
 protected:
  SharpTest() { variables_["NCCL_COLLNET_ENABLE"] = "1"; }

  SharpFacts Read() const {
    return ReadSharp(tree_.root(), [this](absl::string_view name) -> std::optional<std::string> {
      const auto found = variables_.find(std::string(name));
      if (found == variables_.end()) return std::nullopt;
      return found->second;
    });
  }
  void WritePlugin(const std::string& path, bool collnet = true) const {
    tree_.Write(path, collnet ? std::string(kWithCollNet, sizeof kWithCollNet)
                              : std::string("\177ELF...ncclNetPlugin_v8"));
  }

  fabric::testing::SysfsTree tree_;
  std::map<std::string, std::string> variables_;
};

TEST_F(SharpTest, NothingIsLookedUpUnlessItIsEnabled) {
  WritePlugin("/usr/lib/libnccl-net.so");
  for (const char* value : {"0", "", "yes"}) {
    variables_["NCCL_COLLNET_ENABLE"] = value;
    EXPECT_EQ(Read(), SharpFacts());
  }
  variables_.clear();
  EXPECT_EQ(Read(), SharpFacts());
}

TEST_F(SharpTest, AnImageWithHpcx) {
  const std::string plugin = "/opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net.so";
  WritePlugin(plugin);
  tree_.Write("/etc/ld.so.conf.d/hpcx.conf",
              "# HPC-X\n/opt/hpcx/nccl_rdma_sharp_plugin/lib\n/opt/hpcx/ucx/lib\n");
  tree_.Write("/opt/hpcx/sharp/lib/libsharp_coll.so.5", "");
  tree_.Write("/opt/hpcx/sharp/bin/sharp_hello", "");
  const SharpFacts facts = Read();
  EXPECT_EQ(facts.name, "libnccl-net.so");
  EXPECT_EQ(facts.plugin, plugin);
  EXPECT_TRUE(facts.has_collnet);
  EXPECT_EQ(facts.library, "/opt/hpcx/sharp/lib/libsharp_coll.so.5");
  EXPECT_EQ(facts.hello, "/opt/hpcx/sharp/bin/sharp_hello");
}

TEST_F(SharpTest, TheVariablesDirectoriesComeFirst) {
  WritePlugin("/usr/lib/libnccl-net.so", /*collnet=*/false);
  WritePlugin("/a/lib/libnccl-net.so");
  tree_.Write("/h/lib/libsharp_coll.so", "");
  tree_.Write("/h/bin/sharp_hello", "");
  variables_["HPCX_SHARP_DIR"] = "/h";
  EXPECT_EQ(Read().plugin, "/usr/lib/libnccl-net.so");
  EXPECT_FALSE(Read().has_collnet);
  variables_["LD_LIBRARY_PATH"] = "relative::/a/lib:/b";
  EXPECT_EQ(Read().plugin, "/a/lib/libnccl-net.so");
  EXPECT_TRUE(Read().has_collnet);
  EXPECT_EQ(Read().library, "/h/lib/libsharp_coll.so");
  EXPECT_EQ(Read().hello, "/h/bin/sharp_hello");
  tree_.Write("/p/sharp_hello", "");
  variables_["PATH"] = "/usr/bin:/p";
  EXPECT_EQ(Read().hello, "/p/sharp_hello");
}

TEST_F(SharpTest, ThePluginIsNamedAsNcclReadsTheName) {
  for (const auto& [value, name] : {std::pair("", "libnccl-net.so"),
                                    {"sharp", "libnccl-net-sharp.so"},
                                    {"sharp,other", "libnccl-net-sharp.so"},
                                    {"libmine.so", "libmine.so"},
                                    {"/x/libmine.so", "/x/libmine.so"}}) {
    variables_["NCCL_NET_PLUGIN"] = value;
    EXPECT_EQ(Read().name, name);
    EXPECT_EQ(Read().plugin, "");
  }
  WritePlugin("/x/libmine.so");
  EXPECT_EQ(Read().plugin, "/x/libmine.so");
}

TEST_F(SharpTest, OtherFilesAreNotTakenForLibsharp) {
  tree_.Write("/usr/lib/libsharp_collective.so", "");
  tree_.Write("/usr/lib/libsharp.so.5", "");
  EXPECT_EQ(Read().library, "");
  tree_.MakeFolder("/usr/lib/libnccl-net.so");
  EXPECT_EQ(Read().plugin, "");
}

}  // namespace
}  // namespace railhead::preflight
