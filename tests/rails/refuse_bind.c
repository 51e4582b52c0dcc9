/* SPDX-License-Identifier: Apache-2.0
 *
 * To be preloaded: the kernel refuses to bind sockets to interfaces, as before Linux 5.7 without
 * CAP_NET_RAW, or under a seccomp profile.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>

int setsockopt(int fd, int level, int name, const void* value, socklen_t length) {
  if (level == SOL_SOCKET && name == SO_BINDTODEVICE) {
    errno = EPERM;
    return -1;
  }
  int (*next)(int, int, int, const void*, socklen_t);
  *(void**)&next = dlsym(RTLD_NEXT, "setsockopt");
  return next(fd, level, name, value, length);
}
