// SPDX-License-Identifier: Apache-2.0
//
// All-reduce over a tree. Chunks go up and down in turn, where NCCL does both at once: slower, and
// without deadlock.
#include <algorithm>
#include <optional>

#include "tests/nccl/stock/kernels/work.h"

namespace railhead::stock {

void RunTree(const Block& block, const Part& part) {
  const Tree& tree = block.channel.tree;
  const std::vector<int> children(std::begin(tree.down), std::end(tree.down));
  const bool root = tree.up == -1, leaf = children.front() == -1;
  const std::vector<int> parent = {tree.up};
  Primitives up(block.version, block.communicator, part.function, part.argument,
                block.channel.peers, children, root ? children : parent, {});
  std::optional<Primitives> down;
  if (!root) {
    down.emplace(block.version, block.communicator, part.function, part.argument,
                 block.channel.peers, parent, children, Slicing());
  }
  for (size_t done = 0; done < part.elements; done += part.chunk) {
    const size_t begin = part.begin + done, elements = std::min(part.chunk, part.elements - done);
    up.Run({.receive = !leaf,
            .send = true,
            .source = part.Sent(begin),
            .target = root ? part.Received(begin) : nullptr,
            .elements = elements,
            .last = root});
    if (root) continue;
    down->Run(
        {.receive = true, .send = !leaf, .target = part.Received(begin), .elements = elements});
  }
}

}  // namespace railhead::stock
