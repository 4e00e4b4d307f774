// SPDX-License-Identifier: Apache-2.0

// The API server of Kubernetes, for the tests of service discovery.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
