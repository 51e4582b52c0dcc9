// SPDX-License-Identifier: Apache-2.0

// The Go programs of the testbed in one. All of them are made of Kubernetes' client and types, which are
// compiled and linked once here instead of ten times. It is the program by whose name it is started.
//
// Each function below is the program's own main(). Only the initializers of packages are common.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // for the time zones of CronJobs

	containerd "github.com/containerd/containerd/v2/cmd/containerd/command"
	ctr "github.com/containerd/containerd/v2/cmd/ctr/app"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	helm "helm.sh/helm/v4/pkg/cmd"
	helmkube "helm.sh/helm/v4/pkg/kube"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	kwoksignals "sigs.k8s.io/kwok/pkg/utils/signals"

	_ "github.com/containerd/containerd/v2/cmd/containerd/builtins"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

var programs = map[string]func() int{
	"kube-apiserver":          component(apiserver.NewAPIServerCommand),
	"kube-controller-manager": component(manager.NewControllerManagerCommand),
	"kube-scheduler":          component(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kube-proxy":              component(proxy.NewProxyCommand),
	"kubelet":                 component(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
	"kubectl":                 runKubectl,
	"helm":                    runHelm,
	"kwok":                    runKwok,
	"containerd":              func() int { return failed(containerd.App().Run(context.Background(), os.Args)) },
	"ctr":                     func() int { return failed(ctr.New().Run(context.Background(), os.Args)) },
}

func main() {
	name := filepath.Base(os.Args[0])
	run, ok := programs[name]
	if !ok {
		names := make([]string, 0, len(programs))
		for program := range programs {
			names = append(names, program)
		}
		slices.Sort(names)
		fmt.Fprintf(os.Stderr, "start it by the name of one of its programs, not %q: %s\n", name, strings.Join(names, " "))
		os.Exit(2)
	}
	os.Exit(run())
}

// component returns the main() of one of Kubernetes' daemons. Its command is made only when it runs:
// commands register feature gates and flags.
func component(command func() *cobra.Command) func() int {
	return func() int { return cli.Run(command()) }
}

// forgetCommonFlags drops the flags that Kubernetes' packages register for all commands of a process,
// such as a --version that does not suit cobra's own.
func forgetCommonFlags() {
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ExitOnError)
}

func failed(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(os.Stderr, "%s: %s\n", filepath.Base(os.Args[0]), err)
	return 1
}

func runKubectl() int {
	_, _ = logs.GlogSetter(kubectl.GetLogVerbosity(os.Args)) // as kubectl: before its flags are parsed
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
	return 0
}

func runHelm() int {
	forgetCommonFlags()
	helmkube.ManagedFieldsManager = "helm"
	command, err := helm.NewRootCmd(os.Stdout, os.Args[1:], helm.SetupLogging)
	if err != nil {
		return failed(err)
	}
	if err := command.Execute(); err != nil {
		if exit, ok := errors.AsType[helm.CommandError](err); ok {
			return exit.ExitCode
		}
		return 1
	}
	return 0
}

func runKwok() int {
	forgetCommonFlags()
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, _ := kwoklog.InitFlags(kwoksignals.SetupSignalContext(), flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err != nil {
		return failed(err)
	}
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	return failed(command.ExecuteContext(ctx))
}
