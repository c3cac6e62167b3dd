package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Enter applies the mechanisms in p.Means to this thread, which is to become the program. The goroutine
// must be locked to its thread. If the means include namespaces, the thread must be in those that Outer and
// Inner create.
func Enter(p Plan) error {
	if p.Means.Namespaces {
		if err := enterRoot(p); err != nil {
			return err
		}
	}
	if err := becomeGuest(p.Means.Namespaces); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid new privileges: %w", err)
	}
	if p.Means.Landlock {
		if err := restrictFiles(p); err != nil {
			return fmt.Errorf("landlock: %w", err)
		}
	}
	if p.Means.Seccomp {
		if err := filterCalls(); err != nil {
			return fmt.Errorf("seccomp: %w", err)
		}
	}
	return nil
}

// Try is Enter for a process that only finds out which of p's means work on this machine, and becomes no
// program. It reports namespaces as working if their root could be built.
func Try(p Plan) (r Report) {
	r.LandlockVersion = landlockVersion()
	if !p.Means.Namespaces {
		r.NoNamespaces = "not tried"
	} else if err := enterRoot(p); err != nil {
		r.NoNamespaces = err.Error()
		return r
	}
	r.Namespaces = p.Means.Namespaces
	if err := becomeGuest(r.Namespaces); err != nil {
		r.Namespaces, r.NoNamespaces = false, err.Error()
		return r
	}
	if r.LandlockVersion == 0 {
		r.NoLandlock = "this kernel has no Landlock, or it is switched off"
	} else if r.LandlockVersion < leastLandlock {
		r.NoLandlock = "Landlock of this kernel is too old"
	} else if err := restrictFiles(p); err != nil {
		r.NoLandlock = "Landlock: " + err.Error()
	}
	r.Landlock = r.NoLandlock == ""
	if err := filterCalls(); err != nil {
		r.NoSeccomp = "seccomp: " + err.Error()
	}
	r.Seccomp = r.NoSeccomp == ""
	return r
}
