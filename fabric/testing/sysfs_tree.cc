// SPDX-License-Identifier: Apache-2.0
#include "fabric/testing/sysfs_tree.h"

#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"

namespace railhead::fabric::testing {

namespace fs = std::filesystem;

namespace {

// Where a file is written before it appears at once in its place, as the kernel's do.
constexpr char kNew[] = "/.new";

}  // namespace

SysfsTree::SysfsTree() : root_(fs::temp_directory_path() / "railhead-tree-XXXXXX") {
  if (mkdtemp(root_.data()) == nullptr) {
    std::cerr << "cannot make a temporary directory\n";
    std::abort();
  }
  MakeFolder("/sys/class/infiniband");
}

SysfsTree::~SysfsTree() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

void SysfsTree::MakeFolder(const std::string& path) const { fs::create_directories(root_ + path); }

void SysfsTree::Write(const std::string& path, const std::string& content) const {
  const fs::path full = root_ + path;
  fs::create_directories(full.parent_path());
  std::ofstream(root_ + kNew, std::ios::binary | std::ios::trunc) << content;
  fs::rename(root_ + kNew, full);
}

void SysfsTree::Link(const std::string& path, const std::string& target) const {
  const fs::path full = root_ + path;
  fs::create_directories(full.parent_path());
  fs::create_symlink(target, root_ + kNew);
  fs::rename(root_ + kNew, full);
}

void SysfsTree::Remove(const std::string& path) const { fs::remove_all(root_ + path); }

void SysfsTree::AddCommon(const FakeHca& hca, const std::string& folder) const {
  const std::string port = folder + "/ports/1";
  Write(port + "/state", hca.state + "\n");
  Write(port + "/rate", hca.rate + "\n");
  Write(port + "/link_layer", hca.link_layer + "\n");
  const std::string uverbs = absl::StrCat("uverbs", hca.uverbs);
  Write(absl::StrCat("/sys/class/infiniband_verbs/", uverbs, "/ibdev"), hca.name + "\n");
  Write(absl::StrCat("/sys/class/infiniband_verbs/", uverbs, "/dev"),
        absl::StrCat("231:", 192 + hca.uverbs, "\n"));
  if (hca.device_node) Write(absl::StrCat("/dev/infiniband/", uverbs), "");
}

void SysfsTree::AddHca(const FakeHca& hca) const {
  const std::string function = absl::StrCat("/sys/devices/", hca.above, "/", hca.pci);
  const std::string folder = absl::StrCat(function, "/infiniband/", hca.name);
  AddCommon(hca, folder);
  Write(function + "/numa_node", hca.numa_node + "\n");
  if (!hca.netdev.empty()) MakeFolder(absl::StrCat(function, "/net/", hca.netdev));
  Link(folder + "/device", absl::StrCat("../../../", hca.pci));
  Link(absl::StrCat("/sys/class/infiniband/", hca.name),
       "../.." + folder.substr(std::string("/sys").size()));
}

void SysfsTree::AddRxe(const FakeHca& hca) const {
  const std::string folder = absl::StrCat("/sys/devices/virtual/infiniband/", hca.name);
  AddCommon(hca, folder);
  Write(folder + "/parent", hca.netdev + "\n");
  if (!hca.pci.empty()) {
    const std::string function = absl::StrCat("/sys/devices/pci0000:00/", hca.pci);
    const std::string net = absl::StrCat(function, "/virtio1/net/", hca.netdev);
    Write(function + "/numa_node", hca.numa_node + "\n");
    MakeFolder(net);
    Link(net + "/device", "../../../virtio1");
    Link(absl::StrCat("/sys/class/net/", hca.netdev),
         absl::StrCat("../../devices/pci0000:00/", hca.pci, "/virtio1/net/", hca.netdev));
  }
  Link(absl::StrCat("/sys/class/infiniband/", hca.name),
       absl::StrCat("../../devices/virtual/infiniband/", hca.name));
}

void SysfsTree::RemoveHca(const FakeHca& hca) const {
  Remove(absl::StrCat("/sys/class/infiniband/", hca.name));
  Remove(absl::StrCat("/sys/class/infiniband_verbs/uverbs", hca.uverbs));
  Remove(absl::StrCat("/dev/infiniband/uverbs", hca.uverbs));
}

void SysfsTree::SetState(const std::string& name, const std::string& state) const {
  Write(absl::StrCat("/sys/class/infiniband/", name, "/ports/1/state"), state + "\n");
}

}  // namespace railhead::fabric::testing
