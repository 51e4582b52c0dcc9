// SPDX-License-Identifier: Apache-2.0
//
// Calls of the CUDA runtime that is linked into libnccl.so.2, redirected to the functions of cuda/.
//
// The library's symbol table names the functions of that runtime. In the memory of this process,
// and nowhere else, the first bytes of each become a jump: to the function of the same name in this
// program, or if there is none, to a stub that logs the name and returns "not supported". NCCL's
// own code is not changed. x86-64 only.
#ifndef RAILHEAD_TESTS_NCCL_STOCK_REDIRECT_H_
#define RAILHEAD_TESTS_NCCL_STOCK_REDIRECT_H_

#include <string>

namespace railhead::stock {

// Loads the library and redirects its runtime; returns its handle. Ends the process if it cannot.
// To be called once, before any other function of the library.
void* LoadNccl(const std::string& path);

// The name of the kernel with this host stub; "": unknown.
std::string KernelName(const void* stub);

// The address of a table or function of the library, exported or not; null: it does not exist.
const void* AddressOf(const std::string& symbol);

}  // namespace railhead::stock

#endif  // RAILHEAD_TESTS_NCCL_STOCK_REDIRECT_H_
