// SPDX-License-Identifier: Apache-2.0
//
// Name of the plugin in NCCL: of its network, the value of NCCL_NET, and of its other tables.
#ifndef RAILHEAD_PLUGINS_NCCL_NAME_H_
#define RAILHEAD_PLUGINS_NCCL_NAME_H_

namespace railhead::nccl {

inline constexpr char kName[] = "Railhead";

}  // namespace railhead::nccl

#endif  // RAILHEAD_PLUGINS_NCCL_NAME_H_
