// SPDX-License-Identifier: Apache-2.0

// CoreDNS with the plugins that the testbed's Corefile names. A program of its own: it puts flags such
// as -version among those of every program that it is linked into.
package main

import (
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
)

func main() { coremain.Run() }
