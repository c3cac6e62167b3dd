//go:build !linux

package grid

import "os/exec"

// EndWithParent does nothing, since this system lacks such a feature.
func EndWithParent(*exec.Cmd) {}
