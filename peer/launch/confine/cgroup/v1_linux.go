package cgroup

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/containerd/cgroups/v3/cgroup1"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// v1 implements kernel for version 1, in which each controller has its own hierarchy.
type v1 struct {
	folders map[Controller]string // the peer's own groups, by usable controller
	subs    map[Controller]cgroup1.Subsystem
	usable  []Controller
}

func newV1() *v1 {
	return &v1{folders: map[Controller]string{}, subs: map[Controller]cgroup1.Subsystem{}}
}

func (k *v1) parents(prefix string) (map[Controller]string, map[Controller]error) {
	missing := make(map[Controller]error)
	mounted, err := cgroup1.Default()
	for _, s := range mounted {
		k.subs[Controller(s.Name())] = s
	}
	for _, c := range controllers {
		switch sub, ok := k.subs[c]; {
		case err != nil:
			missing[c] = err
		case !ok:
			missing[c] = errors.New("the kernel or the system does not provide this controller")
		default:
			if missing[c] = k.try(prefix, c, sub); missing[c] == nil {
				delete(missing, c)
				k.usable = append(k.usable, c)
			}
		}
	}
	return maps.Clone(k.folders), missing
}

// try finds the peer's own group of a controller, and checks whether groups can be created in it.
func (k *v1) try(prefix string, c Controller, sub cgroup1.Subsystem) error {
	own, err := cgroup1.NestedPath("")(cgroup1.Name(c))
	if err != nil {
		return err
	}
	folder := sub.(interface{ Path(string) string }).Path(own)
	if err := probe(filepath.Join(folder, prefix+"-probe")); err != nil {
		return err
	}
	k.folders[c] = folder
	return nil
}

func (k *v1) home() (all []string) {
	for _, c := range k.usable {
		all = append(all, k.folders[c])
	}
	return all
}

func (k *v1) job(name string, q Quota) (map[Controller]string, error) {
	return k.make(name, k.usable, q)
}

// process creates no group of the cpu controller: its processes are in the job's group.
func (k *v1) process(job, name string, q Quota) (map[Controller]string, error) {
	return k.make(filepath.Join(job, name), slices.DeleteFunc(slices.Clone(k.usable), isCPU), q)
}

func isCPU(c Controller) bool { return c == CPU }

// make creates a group in each of the given controllers.
func (k *v1) make(name string, in []Controller, q Quota) (map[Controller]string, error) {
	folders := make(map[Controller]string)
	if len(in) == 0 {
		return folders, nil
	}
	for _, c := range in {
		folders[c] = filepath.Join(k.folders[c], name)
	}
	r := &specs.LinuxResources{}
	if q.Memory > 0 {
		r.Memory = &specs.LinuxMemory{Limit: &q.Memory}
		if _, err := os.Stat(filepath.Join(k.folders[Memory], "memory.memsw.limit_in_bytes")); err == nil {
			r.Memory.Swap = &q.Memory // memory and swap together
		}
	}
	if q.Processes > 0 {
		r.Pids = &specs.LinuxPids{Limit: &q.Processes}
	}
	if q.CPU > 0 {
		quota, period := q.CPU*periodMicros/100, uint64(periodMicros)
		r.CPU = &specs.LinuxCPU{Quota: &quota, Period: &period}
	}
	hierarchy := func() (subs []cgroup1.Subsystem, err error) {
		for _, c := range in {
			subs = append(subs, k.subs[c])
		}
		return subs, nil
	}
	if _, err := cgroup1.New(cgroup1.NestedPath(name), r, cgroup1.WithHierarchy(hierarchy)); err != nil {
		for _, f := range folders {
			os.Remove(f)
		}
		return nil, err
	}
	if f, ok := folders[CPU]; ok && q.CPU > 0 {
		_ = write(f, "cpu.cfs_burst_us", strconv.FormatInt(q.CPU*periodMicros/200, 10)) // since Linux 5.14
	}
	return folders, nil
}

func (k *v1) setPriority(folders map[Controller]string, p Priority) error {
	f, ok := folders[CPU]
	if !ok {
		return nil
	}
	_ = write(f, "cpu.idle", "0") // since Linux 5.15; an idle group accepts no weight
	err := write(f, "cpu.shares", strconv.FormatInt(max(2, p.Weight), 10))
	if p.Idle {
		_ = write(f, "cpu.idle", "1")
	}
	return err
}

func (k *v1) setCPU(folders map[Controller]string, percent int64) error {
	f, ok := folders[CPU]
	if !ok {
		return nil
	}
	_ = write(f, "cpu.cfs_burst_us", "0") // it must not exceed the quota
	err := write(f, "cpu.cfs_quota_us", strconv.FormatInt(percent*periodMicros/100, 10))
	_ = write(f, "cpu.cfs_burst_us", strconv.FormatInt(percent*periodMicros/200, 10)) // since Linux 5.14
	return err
}

func (k *v1) usage(folders map[Controller]string) (u Usage) {
	if f, ok := folders[Memory]; ok {
		u.Memory = number(f, "memory.usage_in_bytes", "")
		u.MostMemory = number(f, "memory.max_usage_in_bytes", "")
		u.Killed = int(number(f, "memory.oom_control", "oom_kill"))
	}
	if f, ok := folders[Pids]; ok {
		u.Processes = number(f, "pids.current", "")
		u.MostProcesses = number(f, "pids.peak", "") // since Linux 6.1
		u.Refused = int(number(f, "pids.events", "max"))
	}
	return u
}

// alarm returns an eventfd that the kernel signals when the group, or a group above it, runs out of memory
// and cannot reclaim any. A group that is merely filled with cache does not count.
func (k *v1) alarm(folders map[Controller]string) (bell *os.File, err error) {
	control, err := os.Open(filepath.Join(folders[Memory], "memory.oom_control"))
	if err != nil {
		return nil, err
	}
	defer control.Close()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	bell = os.NewFile(uintptr(fd), "memory alarm")
	if err := write(folders[Memory], "cgroup.event_control", fmt.Sprintf("%d %d", fd, control.Fd())); err != nil {
		return nil, errors.Join(err, bell.Close())
	}
	return bell, nil
}

// short returns 1 if the group itself ran out of memory: the eventfd was signaled, and the group was at its
// limit.
func short(bell *os.File, folders map[Controller]string) (times int) {
	raw, err := bell.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(poll, 0); n == 1 && err == nil && full(folders[Memory]) {
			times = 1
		}
	})
	return times
}

// full reports whether a group ever was at its limit. memory.failcnt does not help, since some kernels do
// not count it.
func full(folder string) bool {
	limit := number(folder, "memory.limit_in_bytes", "")
	return number(folder, "memory.max_usage_in_bytes", "") >= limit-limit/20
}
