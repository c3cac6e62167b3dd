package cgroup

import "github.com/containerd/cgroups/v3"

// newKernel returns the kernel's version of control groups, or nil if there is none.
func newKernel() kernel {
	switch cgroups.Mode() {
	case cgroups.Unified:
		return newV2()
	case cgroups.Legacy, cgroups.Hybrid:
		return newV1()
	}
	return nil
}
