// SPDX-License-Identifier: Apache-2.0
//
// Counts how often this process has put new pages under addresses that the program knows
// (shm/segment.h). What a NIC has registered before refers to the old pages.
#ifndef RAILHEAD_RUNTIME_BASE_PAGE_CHANGES_H_
#define RAILHEAD_RUNTIME_BASE_PAGE_CHANGES_H_

#include <atomic>
#include <cstdint>

namespace railhead {

inline std::atomic<uint64_t> page_changes{0};

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_PAGE_CHANGES_H_
