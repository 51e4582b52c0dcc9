// SPDX-License-Identifier: Apache-2.0
//
// Natural order of names: numbers in them compare by value. Used for devices, nodes, domains and
// pods.
#ifndef RAILHEAD_FABRIC_NATURAL_ORDER_H_
#define RAILHEAD_FABRIC_NATURAL_ORDER_H_

#include <string>

namespace railhead::fabric {

// Orders "mlx5_2" before "mlx5_10". A total order: names with equal numbers are compared as text.
bool NaturalLess(const std::string& a, const std::string& b);

}  // namespace railhead::fabric

#endif  // RAILHEAD_FABRIC_NATURAL_ORDER_H_
