// SPDX-License-Identifier: Apache-2.0
//
// Builds small host trees (sysfs and /dev) in a temporary directory for tests.
#ifndef RAILHEAD_FABRIC_TESTING_SYSFS_TREE_H_
#define RAILHEAD_FABRIC_TESTING_SYSFS_TREE_H_

#include <string>

namespace railhead::fabric::testing {

struct FakeHca {
  std::string name;
  std::string state = "4: ACTIVE";
  std::string rate = "400 Gb/sec (4X NDR)";
  std::string link_layer = "InfiniBand";
  int uverbs = 0;                    // N of uverbsN
  bool device_node = true;           // dev/infiniband/uverbsN exists
  std::string pci = "";              // PCI function; "" for none
  std::string above = "pci0000:00";  // what is above it, below /sys/devices
  std::string numa_node = "0";
  std::string netdev = "";  // of the function
};

// A directory that stands for a host's "/", removed with the object. All paths are the host's.
class SysfsTree {
 public:
  SysfsTree();
  ~SysfsTree();
  SysfsTree(const SysfsTree&) = delete;
  SysfsTree& operator=(const SysfsTree&) = delete;

  const std::string& root() const { return root_; }

  void Write(const std::string& path, const std::string& content) const;
  void Link(const std::string& path, const std::string& target) const;
  void MakeFolder(const std::string& path) const;
  void Remove(const std::string& path) const;

  // An HCA as a PCI driver shows it.
  void AddHca(const FakeHca& hca) const;
  // An HCA as rdma_rxe shows it: no device link, but a parent interface, which is a virtio device
  // on the given PCI function.
  void AddRxe(const FakeHca& hca) const;
  void RemoveHca(const FakeHca& hca) const;
  void SetState(const std::string& name, const std::string& state) const;

 private:
  void AddCommon(const FakeHca& hca, const std::string& folder) const;

  std::string root_;
};

}  // namespace railhead::fabric::testing

#endif  // RAILHEAD_FABRIC_TESTING_SYSFS_TREE_H_
