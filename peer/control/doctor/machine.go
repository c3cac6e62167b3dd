package doctor

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/dustin/go-humanize"

	"github.com/p2pmpi/p2pmpi/peer/control/status"
	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
	"github.com/p2pmpi/p2pmpi/peer/owner/machine"
	"github.com/p2pmpi/p2pmpi/peer/owner/policy"
)

// Thresholds for the level Well.
const (
	leastFiles     = 4096
	leastProcesses = 256
	leastMemory    = 512 << 20
	spareDisk      = 256 << 20 // beyond the possible growth of the cache
)

func checkDisk(m Machine) Finding {
	const (
		about = "disk"
		do    = "free some disk space, choose another --home, lower --cache-limit, or empty the cache: p2pboot cache clear"
	)
	grow := max(0, m.CacheLimit-m.CacheUsed)
	found := fmt.Sprintf("%s free in the file system of the home; the cache may grow by %s", size(m.DiskFree), size(grow))
	switch {
	case m.DiskFree < 0:
		return Finding{about, Unknown, "the free space cannot be determined on this system",
			"check that the file system of --home has room for --cache-limit"}
	case m.DiskFree < policy.LeastDisk:
		return Finding{about, Failing, found + "; jobs of other users are refused", do}
	case m.DiskFree < grow+spareDisk:
		return Finding{about, Warning, found, do}
	}
	return well(about, "%s", found)
}

func checkLimits(m Machine) []Finding {
	const do = "raise the limit of the shell or the service that starts the peer: "
	return []Finding{
		checkLimit("open files", m.OpenFiles, leastFiles, plain, do+"ulimit -n, or LimitNOFILE="),
		checkLimit("processes", m.Processes, leastProcesses, plain, do+"ulimit -u, or TasksMax="),
		checkLimit("memory", m.Memory, leastMemory, humanize.IBytes, "raise the limit of the control group (MemoryMax=), or set --slots to 1"),
	}
}

// checkLimit judges a limit of the process. The value 0 stands for an unknown limit, and machine.Unlimited for
// no limit.
func checkLimit(about string, has, least uint64, format func(uint64) string, do string) Finding {
	switch {
	case has == 0:
		return Finding{about, Unknown, "the limit cannot be determined on this system", fmt.Sprintf("if it is less than %s, ", format(least)) + do}
	case has == machine.Unlimited:
		return well(about, "no limit")
	case has < least:
		return Finding{about, Warning, fmt.Sprintf("at most %s, which is less than %s", format(has), format(least)), do}
	}
	return well(about, "at most %s", format(has))
}

func checkKernel(m Machine) Finding {
	const system = runtime.GOOS + "/" + runtime.GOARCH
	if m.Unshared != "" {
		return Finding{"kernel", Warning, system + ": processes cannot share memory: " + m.Unshared,
			"jobs run, but messages between processes of this machine are slower; shared memory needs Linux 3.17 or later"}
	}
	return well("kernel", "%s: processes can share memory", system)
}

// checkGranted returns a finding for each limit that is not enforced; g is nil if no peer runs.
func checkGranted(g *status.Granted) (out []Finding) {
	if g == nil {
		return nil
	}
	for _, u := range g.Unenforced {
		do := "allow p2pboot to create control groups, see docs/security.md: start it with systemd-run --user --scope -p Delegate=yes, or as root"
		if u.Limit == limits.Disk {
			do = "keep the home on another file system, or in a subvolume with a quota, see docs/security.md"
		}
		out = append(out, Finding{"limit of " + string(u.Limit), Warning, fmt.Sprintf("not enforced: %s; instead, %s", u.Why, u.Instead), do})
	}
	if len(out) == 0 {
		out = append(out, well("limits", "all configured limits of programs are enforced"))
	}
	return append(out, checkDiskLimits(*g))
}

// checkDiskLimits reports whether the disk limits of jobs of other users are exact. No kernel mechanism limits
// the files of a native program.
func checkDiskLimits(g status.Granted) Finding {
	const about = "disk limits"
	for _, t := range g.Terms {
		if t.Class != policy.Mine && slices.Contains(t.Kinds, policy.Native) {
			return well(about, "approximate for native programs, whose files are measured while they run, and exact for modules; "+
				"jobs end when less than %s is free", size(launch.LeastFree/2))
		}
	}
	return well(about, "exact: other users run only modules, whose writes are counted")
}

// checkRules returns a finding for each suspend rule that cannot be evaluated.
func checkRules(all []status.Unread) (out []Finding) {
	for _, u := range all {
		out = append(out, Finding{"rule " + string(u.Rule), Warning, "cannot be evaluated here, so it does not suspend jobs: " + u.Why,
			"remove it from pause-when if this machine does not need it"})
	}
	return out
}

func checkSandbox(w launch.Sandbox) (out []Finding) {
	const do = "allow p2pboot to create user namespaces, see docs/security.md; " +
		"until then native programs of strangers are refused, unless --require-confinement=false"
	for _, gap := range w.Gaps() {
		out = append(out, Finding{"confinement: " + string(gap.Resource), Warning, "not protected from native programs: " + gap.Why, do})
	}
	if len(out) > 0 {
		return out
	}
	if w.NoLandlock != "" {
		return []Finding{well("confinement", "native programs are sandboxed, but without Landlock as a second layer: %s", w.NoLandlock)}
	}
	return []Finding{well("confinement", "native programs have no access to the files, network and processes of this machine")}
}

func size(n int64) string { return humanize.IBytes(uint64(max(0, n))) }

func plain(n uint64) string { return fmt.Sprint(n) }
