package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/cgroups/v3/cgroup2"
)

// io is the disk controller. If it is available, a job's weight applies to disks too.
const io Controller = "io"

// v2 implements kernel for version 2, which has one hierarchy, with processes only in its leaves.
type v2 struct {
	root   string // mount point
	own    string // the peer's own group, relative to root
	leaf   string // folder of the group that contains the peer
	usable []Controller
}

func newV2() *v2 { return &v2{root: "/sys/fs/cgroup"} }

func (k *v2) parents(prefix string) (map[Controller]string, map[Controller]error) {
	err := k.find()
	if err == nil {
		err = k.divide(prefix)
	}
	parents, missing := make(map[Controller]string), make(map[Controller]error)
	for _, c := range controllers {
		switch {
		case err != nil:
			missing[c] = err
		case !slices.Contains(k.enabled(), c):
			missing[c] = errors.New("this controller is not delegated to the peer's control group")
		default:
			k.usable = append(k.usable, c)
			parents[c] = k.folder("")
		}
	}
	return parents, missing
}

// delegate is the advice for an owner whose peer cannot create groups.
const delegate = "start it in one of its own: systemd-run --user --scope -p Delegate=yes p2pboot, or Delegate=yes in its service"

// folder returns the folder of a group below the peer's own.
func (k *v2) folder(name string) string { return filepath.Join(k.root, k.own, name) }

// find finds the peer's own group.
func (k *v2) find() error {
	own, err := cgroup2.PidGroupPath(os.Getpid())
	if err != nil {
		return err
	}
	k.own = own
	k.leaf = k.folder("")
	return nil
}

// divide prepares the peer's own group for the groups of jobs. It moves the peer into a group below, and
// enables the available controllers for groups below.
func (k *v2) divide(prefix string) error {
	if _, err := os.Stat(filepath.Join(k.folder(""), "cgroup.type")); errors.Is(err, os.ErrNotExist) {
		if err := probe(k.folder(prefix + "-probe")); err != nil { // the peer may lack the permission although the controllers are enabled
			return fmt.Errorf("the peer may not create groups in the root control group; %s: %w", delegate, err)
		}
		k.enable() // the root may have processes beside groups
		return nil
	}
	if all := processesAt(k.folder("")); slices.ContainsFunc(all, func(pid int) bool { return pid != os.Getpid() }) {
		return fmt.Errorf("other processes are in the peer's control group %s; %s", k.own, delegate)
	}
	leaf := k.folder(prefix + "-peer")
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("the peer's control group is not delegated to it (Delegate=yes in its service): %w", err)
	}
	if err := Enter([]string{leaf}); err != nil {
		return errors.Join(err, os.Remove(leaf))
	}
	k.leaf = leaf
	k.enable()
	return nil
}

// enable enables the available controllers for groups below the peer's own.
func (k *v2) enable() {
	for _, c := range append([]Controller{io}, controllers...) { // one by one, since a missing one must not prevent the others
		_ = write(k.folder(""), "cgroup.subtree_control", "+"+string(c))
	}
}

// enabled returns the controllers that are enabled for groups below the peer's own.
func (k *v2) enabled() (all []Controller) {
	text, _ := os.ReadFile(filepath.Join(k.folder(""), "cgroup.subtree_control"))
	for _, field := range strings.Fields(string(text)) {
		all = append(all, Controller(field))
	}
	return all
}

func (k *v2) home() []string {
	if len(k.usable) == 0 {
		return nil
	}
	return []string{k.leaf}
}

func (k *v2) job(name string, q Quota) (map[Controller]string, error) {
	r := k.resources(q)
	if slices.Contains(k.usable, CPU) {
		r.CPU = &cgroup2.CPU{}
		if quota := q.CPU * periodMicros / 100; quota > 0 {
			period := uint64(periodMicros)
			r.CPU.Max = cgroup2.NewCPUMax(&quota, &period)
		}
	}
	folders, err := k.make(name, r, k.usable)
	if err != nil || len(folders) == 0 {
		return folders, err
	}
	if q.CPU > 0 {
		_ = write(k.folder(name), "cpu.max.burst", strconv.FormatInt(q.CPU*periodMicros/200, 10)) // since Linux 5.14
	}
	return folders, err
}

func (k *v2) setCPU(folders map[Controller]string, percent int64) error {
	f, ok := folders[CPU]
	if !ok {
		return nil
	}
	_ = write(f, "cpu.max.burst", "0") // it must not exceed the quota
	err := write(f, "cpu.max", fmt.Sprintf("%d %d", percent*periodMicros/100, periodMicros))
	_ = write(f, "cpu.max.burst", strconv.FormatInt(percent*periodMicros/200, 10)) // since Linux 5.14
	return err
}

func (k *v2) setPriority(folders map[Controller]string, p Priority) (err error) {
	for _, f := range folders { // it is the same for each controller
		for _, file := range []string{"io.weight", "io.bfq.weight"} { // which one applies depends on the disk's scheduler
			_ = write(f, file, "default "+p.weight())
		}
	}
	f, ok := folders[CPU]
	if !ok {
		return nil
	}
	_ = write(f, "cpu.idle", "0") // since Linux 5.15; an idle group accepts no weight
	err = write(f, "cpu.weight", p.weight())
	if p.Idle {
		_ = write(f, "cpu.idle", "1")
	}
	return err
}

// process creates a group without cpu limits; the cpu controller counts its processes with the job.
func (k *v2) process(job, name string, q Quota) (map[Controller]string, error) {
	return k.make(filepath.Join(job, name), k.resources(q), k.usable)
}

func (k *v2) resources(q Quota) *cgroup2.Resources {
	r := &cgroup2.Resources{}
	if slices.Contains(k.usable, Memory) {
		together := true // a program that was killed in part must not continue
		r.Memory = &cgroup2.Memory{OOMGroup: &together}
		if q.Memory > 0 {
			r.Memory.Max = &q.Memory
		}
	}
	if slices.Contains(k.usable, Pids) {
		r.Pids = &cgroup2.Pids{Max: -1}
		if q.Processes > 0 {
			r.Pids.Max = q.Processes
		}
	}
	return r
}

func (k *v2) make(name string, r *cgroup2.Resources, in []Controller) (map[Controller]string, error) {
	if len(in) == 0 {
		return nil, nil
	}
	if _, err := cgroup2.NewManager(k.root, filepath.Join("/", k.own, name), r); err != nil {
		return nil, err
	}
	folder := k.folder(name)
	if r.Memory != nil && r.Memory.Max != nil {
		_ = write(folder, "memory.swap.max", "0") // a kernel without swap has no such file
	}
	folders := make(map[Controller]string)
	for _, c := range in {
		folders[c] = folder
	}
	return folders, nil
}

func (k *v2) usage(folders map[Controller]string) (u Usage) {
	if f, ok := folders[Memory]; ok {
		u.Memory = number(f, "memory.current", "")
		u.MostMemory = number(f, "memory.peak", "")
		u.Short = int(number(f, "memory.events.local", "oom"))
		u.Killed = int(number(f, "memory.events", "oom_kill"))
	}
	if f, ok := folders[Pids]; ok {
		u.Processes = number(f, "pids.current", "")
		u.MostProcesses = number(f, "pids.peak", "") // since Linux 6.1
		u.Refused = int(number(f, "pids.events", "max"))
	}
	return u
}

// alarm returns no eventfd: usage determines Short.
func (k *v2) alarm(map[Controller]string) (*os.File, error) { return nil, errors.ErrUnsupported }
