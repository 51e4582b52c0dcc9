// SPDX-License-Identifier: Apache-2.0
#include "placement/testing/random_fabric.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fabric/model/fabric_model.h"

namespace railhead::placement::testing {
namespace {

using fabric::FabricDomain;
using fabric::FabricModel;
using fabric::FabricNode;

// Between 0 and 1. Not std::uniform_real_distribution, which is another one in each library.
double Share(std::mt19937& random) { return static_cast<double>(random()) / 4294967296.0; }

int Below(int end, std::mt19937& random) {
  return static_cast<int>(Share(random) * static_cast<double>(end));
}

FabricNode RandomNode(const Shape& shape, double occupancy, std::mt19937& random) {
  FabricNode node;
  node.gpus = shape.gpus;
  node.hcas = shape.gpus;
  if (Share(random) < occupancy) {
    node.used_gpus = node.gpus;
    node.used_hcas = node.hcas;
  } else if (Share(random) < shape.partly_used) {
    node.used_gpus = Below(node.gpus + 1, random);
    node.used_hcas = Below(node.hcas + 1, random);
    if (shape.told_rails) {
      for (int rail = 0; rail < node.hcas; ++rail) {
        const auto told = static_cast<int>(node.used_rails.size());
        if (Share(random) * (node.hcas - rail) < node.used_hcas - told) {
          node.used_rails.push_back(rail);
        }
      }
    }
  }
  if (Share(random) < shape.dead_rails) {
    node.dead_rails.push_back(Below(shape.gpus, random));
    const int second = Below(shape.gpus, random);
    if (Share(random) < 0.3 && second != node.dead_rails[0]) node.dead_rails.push_back(second);
    std::sort(node.dead_rails.begin(), node.dead_rails.end());
  }
  if (Share(random) < shape.unschedulable) node.unschedulable = "taint maintenance";
  return node;
}

void Fill(const Shape& shape, size_t level, int parent, FabricModel& model, std::mt19937& random) {
  for (int i = 0; i < shape.fanout[level]; ++i) {
    const auto index = static_cast<int>(model.domains[level].size());
    const bool innermost = level + 1 == shape.levels.size();
    FabricDomain domain;
    domain.name = absl::StrCat(shape.levels[level], index);
    domain.parent = parent;
    domain.first =
        static_cast<int>(innermost ? model.nodes.size() : model.domains[level + 1].size());
    model.domains[level].push_back(std::move(domain));
    if (innermost) {
      const double spread = std::min(shape.occupancy, 1 - shape.occupancy);
      const double occupancy = shape.occupancy + spread * (2 * Share(random) - 1);
      const int nodes =
          shape.uneven ? Below(shape.nodes_per_leaf + 1, random) : shape.nodes_per_leaf;
      for (int n = 0; n < nodes; ++n) {
        FabricNode node = RandomNode(shape, occupancy, random);
        node.name = absl::StrCat("n", model.nodes.size());
        model.nodes.push_back(std::move(node));
      }
    } else {
      Fill(shape, level + 1, index, model, random);
    }
    FabricDomain& done = model.domains[level][static_cast<size_t>(index)];
    done.count =
        static_cast<int>(innermost ? model.nodes.size() : model.domains[level + 1].size()) -
        done.first;
  }
}

}  // namespace

FabricModel RandomFabric(const Shape& shape, std::mt19937& random) {
  FabricModel model;
  model.name = "random";
  model.levels = shape.levels;
  model.rails = shape.gpus;
  model.domains.resize(shape.levels.size());
  Fill(shape, 0, -1, model, random);
  return model;
}

}  // namespace railhead::placement::testing
