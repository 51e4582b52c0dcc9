/* SPDX-License-Identifier: Apache-2.0
 * The public header must be plain C, and the library must be usable from it. */
#include <stdio.h>
#include <string.h>

#include "railhead/railhead.h"

int main(void) {
  int version = 0;
  if (rhGetVersion(&version) != rhSuccess || version != RH_VERSION_CODE) return 1;
  if (strlen(rhGetErrorString(rhRemoteError)) == 0) return 1;
  if (sizeof(rhUniqueId) != RH_UNIQUE_ID_BYTES) return 1;
  rhConfig_t config = RH_CONFIG_INITIALIZER;
  if (config.size != sizeof config || config.blocking != RH_CONFIG_UNDEF_INT ||
      config.secretFile != RH_CONFIG_UNDEF_PTR) {
    return 1;
  }
  rhComm_t comm = NULL;
  if (rhCommInitFromEnv(&comm) != rhInvalidArgument || comm != NULL) return 1;
  puts(rhGetLastError(NULL));
  return strstr(rhGetLastError(NULL), "RANK is not set") == NULL;
}
