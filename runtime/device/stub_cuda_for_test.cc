// SPDX-License-Identifier: Apache-2.0
//
// A library that is called libcuda.so.1 and has its functions; each only returns a number by which
// it is recognized. For the test of how it is found.
// NOLINTBEGIN(readability-identifier-naming): these names are the driver's.
extern "C" {
int cuGetErrorString(int result, const char** text) {
  *text = "from the stub";
  return result < 0 ? 1 : 0;
}
int cuPointerGetAttributes() { return 101; }
int cuPointerSetAttribute() { return 102; }
int cuDeviceGet() { return 103; }
int cuDeviceGetAttribute() { return 104; }
int cuDevicePrimaryCtxRetain() { return 105; }
int cuDevicePrimaryCtxRelease_v2() { return 106; }
int cuCtxPushCurrent_v2() { return 107; }
int cuCtxPopCurrent_v2() { return 108; }
int cuMemcpyDtoH_v2() { return 109; }
int cuMemcpyHtoD_v2() { return 110; }
int cuMemcpyDtoD_v2() { return 111; }
int cuStreamSynchronize() { return 112; }
int cuMemHostAlloc() { return 113; }
int cuMemFreeHost() { return 114; }
}
// NOLINTEND(readability-identifier-naming)
