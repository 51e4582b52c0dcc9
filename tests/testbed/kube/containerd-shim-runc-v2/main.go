// SPDX-License-Identifier: Apache-2.0

// containerd's shim, a program of its own: it runs whatever plugins are linked into it, which must not
// be those of containerd, and each pod of an emulated node starts one.
package main

import (
	"context"

	"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/manager"
	_ "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/task/plugin"
	"github.com/containerd/containerd/v2/pkg/shim"
)

func main() {
	shim.RunShim(context.Background(), manager.NewShimManager("io.containerd.runc.v2"))
}
