package launch

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/walk"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/cgroup"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/scratch"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/proc"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/supervisor"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
	"github.com/p2pmpi/p2pmpi/peer/owner/machine"
	"github.com/p2pmpi/p2pmpi/peer/owner/policy"
)

// Intervals of the guard's measurements. They bound the cost to the owner: the longer a measurement takes,
// the later the next one follows.
const (
	countEvery  = 500 * time.Millisecond // counters of the processes
	memoryEvery = 20 * time.Millisecond  // memory, where the kernel does not limit it
	walkEvery   = 10 * time.Second       // disk usage, even if nothing seems to have been written

	idleShare   = 20 // pause before a routine measurement, as a multiple of the time that the last one took
	urgentShare = 4  // pause before an urgent one, when a process may have exceeded a limit
)

// maxUnmeasured is the number of measurements in a row after which a process is ended that none could
// measure. An honest process can move its folders during a measurement, but hardly during each.
const maxUnmeasured = 4

// A guard ends processes of a job that exceed their grant.
//
// A process can only exceed its disk limit after as many bytes were written on the disk, by any program, as
// that process had left. Until then the guard measures its files seldom. The processes run during the
// measurement, so a file that is moved meanwhile may be counted twice, or not at all. Files that replace each
// other may all be counted. The guard therefore ends a process for its disk usage only if what two measurements
// in a row have both found exceeds the limit. A program that moves its files at the right moments can hide them;
// keepFloor bounds what it can take from the owner.
type guard struct {
	job    *job
	meters []*meter
	census supervisor.Census // of processes that have no control groups

	free    int64 // free bytes on the disk at the last check
	room    int64 // bytes that may be written before the next measurement
	written bool  // something was written since the last measurement
	confirm bool  // the last measurement exceeded a disk limit, and the next one is to confirm that at once
	most    int64 // largest disk usage of the job in any measurement, in bytes
	program int64 // bytes of the program on disk
	least   int64 // minimum bytes that a directory entry counts

	count, memory time.Time     // times of the next measurements
	walked        time.Time     // end of the last measurement of the disk
	took          time.Duration // duration of that measurement
}

// A meter measures what one process, with its descendants, uses.
type meter struct {
	process *process
	folder  string
	live    *instance
	began   time.Time
	usage   limits.Usage
	found   disk  // according to the last measurement
	unseen  int64 // bytes of usage.Memory that a quick measurement overlooks
	sure    int64 // bytes of usage.Disk that the last two measurements have both found
	failed  int   // number of measurements of the disk in a row that have failed
	over    bool  // it exceeds a limit and is being killed

	suspension suspension // while the job is suspended
}

// A disk is what a measurement has found on disk.
type disk struct {
	named    scratch.Found // files that have names
	nameless int64         // bytes of deleted files
}

// run ends processes that exceed their grants, until the job ends.
func (g *guard) run() {
	defer g.job.running.Done()
	for {
		select {
		case m := <-g.job.metered:
			g.add(m)
		case <-time.After(g.pause()):
			if g.job.suspended.Load() {
				g.keepSuspended()
				continue
			}
			g.check()
		case <-g.job.ctx.Done():
			return
		}
	}
}

func newGuard(j *job, instances []*instance) *guard {
	g := &guard{job: j, room: math.MaxInt64, written: true, least: scratch.LeastEntry(string(j.folder))}
	g.free = g.freeBytes()
	for i, id := range j.here.order {
		g.meters = append(g.meters, newMeter(j.here.local[id], instances[i]))
	}
	return g
}

// add makes the guard measure an added process. It replaces the meter of an earlier, dropped process with
// the same folder.
func (g *guard) add(m *meter) {
	g.meters = append(slices.DeleteFunc(g.meters, func(before *meter) bool { return before.folder == m.folder }), m)
	g.room, g.written, g.count = 0, true, time.Time{} // it may write at once, and its input files are on disk
}

func newMeter(p *process, i *instance) *meter {
	return &meter{process: p, live: i, folder: p.job.folder.Process(p.id), began: time.Now()}
}

// pause returns the time until the next measurement is due.
func (g *guard) pause() time.Duration {
	next := min(time.Until(g.count), limits.Pause(g.aboveFloor()))
	if g.watchesMemory() {
		next = min(next, time.Until(g.memory))
	}
	switch {
	case g.confirm:
		return 0
	case g.room <= 0:
		return min(next, time.Until(g.walked)+urgentShare*g.took)
	}
	return min(next, limits.Pause(g.room))
}

// check makes the measurements that are due.
func (g *guard) check() {
	g.keepFloor()
	g.spend()
	if disk := g.walkDue(); disk && g.room <= 0 {
		g.measure(disk)
	} else {
		g.measureDue(disk)
	}
}

// LeastFree is the free space of the owner's disk, in bytes, that no job of another user may take. It is less
// than a new job requires, so that its files do not end the job at once.
const LeastFree = policy.LeastDisk / 2

// errDiskFull is the reason that people read when a job ends because the owner's disk is nearly full.
var errDiskFull = errors.New("its owner's disk is nearly full")

// keepFloor ends the job if the owner's disk is nearly full: first each job that was found to use more than
// LeastFree, and at half of LeastFree all jobs. A program that hides its files is among the latter, and the
// measurements do not tell which it is.
func (g *guard) keepFloor() {
	if g.aboveFloor() < 0 {
		g.job.do(func() { g.job.cutShort(errDiskFull) })
	}
}

// aboveFloor returns the bytes that may be written to the owner's disk before the job ends.
func (g *guard) aboveFloor() int64 {
	free := machine.DiskFree(string(g.job.folder))
	switch {
	case free < 0 || g.job.submitter == g.job.service.host.ID():
		return math.MaxInt64
	case g.most > LeastFree:
		return free - LeastFree
	}
	return free - LeastFree/2
}

// spend subtracts the bytes that were written from the room that is left.
func (g *guard) spend() {
	free := g.freeBytes()
	g.written = g.written || free < g.free
	g.room -= max(0, g.free-free)
	g.free = free
}

// walkDue reports whether the disk usage may be measured now.
func (g *guard) walkDue() bool {
	since := time.Since(g.walked)
	switch {
	case !g.limitsDisk():
		return false
	case g.confirm:
		return true
	case g.room <= 0:
		return since >= urgentShare*g.took
	case g.written:
		return since >= idleShare*g.took
	}
	return since >= max(walkEvery, idleShare*g.took)
}

// measureDue makes the measurements that are due; with disk, it includes disk usage.
func (g *guard) measureDue(disk bool) {
	switch now := time.Now(); {
	case !now.Before(g.count):
		g.measure(disk)
	case g.watchesMemory() && !now.Before(g.memory):
		g.watchMemory()
	}
}

// limitsDisk reports whether there is a disk limit.
func (g *guard) limitsDisk() bool { return g.job.grant.Slot.Disk+g.job.grant.Job.Disk > 0 }

// watchesMemory reports whether there is a memory limit that the kernel does not enforce.
func (g *guard) watchesMemory() bool {
	grant := g.job.grant
	return grant.Slot.Memory+grant.Job.Memory > 0 && g.job.service.groups.Missing(cgroup.Memory) != nil
}

// measure measures all processes, and ends those that exceed a limit or cannot be measured; withDisk includes
// disk usage.
func (g *guard) measure(withDisk bool) {
	begun := time.Now()
	failed, named := make(map[*meter]error), make(map[*meter]scratch.Found)
	if withDisk {
		g.measureFolders(named, failed)
	}
	counted := time.Now()
	all := g.processes()
	g.resumeLate(all)
	for m, pids := range all {
		nameless, err := g.measureOne(m, pids, withDisk)
		if err != nil {
			failed[m] = err
		}
		if withDisk {
			m.setDisk(disk{named[m], nameless})
		}
	}
	g.countSharedOnce(all)
	took := time.Since(counted)
	g.count, g.memory = fromNow(max(g.nextCount(), idleShare*took)), fromNow(max(memoryEvery, urgentShare*took))
	left := g.enforce()
	if withDisk {
		g.walked, g.took, g.room = time.Now(), time.Since(begun), left
		g.confirm = left < 0 && !g.confirm // a job that is being ended stays above its limit for a while
	}
	if withDisk || !g.limitsDisk() {
		g.endUnmeasurable(failed)
	}
	if len(failed) > 0 && g.limitsDisk() {
		g.room = 0 // measure again soon
	}
}

// measureFolders measures the disk usage of all folders. A measurement stops far above the limit, so that two of
// them find the same files even if they find them in another order.
func (g *guard) measureFolders(named map[*meter]scratch.Found, failed map[*meter]error) {
	g.written = false
	most := 4 * g.leastDisk()
	ruler := scratch.Ruler{Least: g.least, Most: most, Pause: g.duringWalk}
	g.program, _ = scratch.Measure(g.job.folder.Program(), ruler)
	for _, m := range g.meters {
		var err error
		if named[m], err = scratch.Survey(m.folder, ruler); err != nil && m.process.ctx.Err() == nil {
			failed[m] = fmt.Errorf("its disk usage cannot be measured: %w", err)
		}
	}
}

// endUnmeasurable ends the processes that could not be measured repeatedly. Folders nested too deeply count
// as exceeding the disk limit.
func (g *guard) endUnmeasurable(failed map[*meter]error) {
	for _, m := range g.live() {
		err := failed[m]
		if m.failed++; err == nil || errors.Is(err, errSuspensionChanges) {
			m.failed = 0
		}
		if m.failed >= maxUnmeasured {
			g.end(m, err)
		}
	}
}

// end ends a process for the given reason.
func (g *guard) end(m *meter, why error) {
	m.over = true
	g.job.do(func() {
		if errors.Is(why, walk.ErrDeep) {
			m.process.exceed(limits.Excess{Kind: limits.Disk, Limit: g.leastDisk(), How: walk.ErrDeep.Error()})
			return
		}
		m.process.end(why.Error())
	})
}

// leastDisk returns the smallest disk limit.
func (g *guard) leastDisk() int64 { return limits.Min(g.job.grant.Slot, g.job.grant.Job).Disk }

// errSuspensionChanges aborts a measurement because the job must be suspended or resumed.
var errSuspensionChanges = errors.New("the job is to be suspended or resumed")

// duringWalk is called during the measurement of files, which may take long. It checks all other limits.
func (g *guard) duringWalk() error {
	g.keepFloor()
	g.measureDue(false)
	if g.job.suspended.Load() != (g.job.halting.Load() == halted) {
		return errSuspensionChanges
	}
	return g.job.ctx.Err()
}

func (g *guard) freeBytes() int64 { return proc.FreeBytes(string(g.job.folder), g.least) }

// nextCount returns the time until the counters must be read again.
func (g *guard) nextCount() time.Duration {
	next := countEvery
	for _, m := range g.meters {
		for _, l := range []limits.Limits{g.job.grant.Slot, g.job.grant.Job} {
			if l.Time > 0 && m.process.ctx.Err() == nil {
				next = min(next, l.Time-m.usage.Time)
			}
		}
	}
	return next
}

func fromNow(d time.Duration) time.Time { return time.Now().Add(d) }

// setDisk records the disk usage that a measurement has found.
func (m *meter) setDisk(now disk) {
	m.sure = now.named.InBoth(m.found.named) + min(now.nameless, m.found.nameless)
	m.found, m.usage.Disk = now, now.named.Bytes+now.nameless
}

// measureOne measures one process, without its files that have names. With disk, it returns the bytes on disk
// of its deleted files. It returns an error if the process hides files. A process that has ended uses nothing
// but disk: its files stay until they are collected.
func (g *guard) measureOne(m *meter, pids []int, disk bool) (nameless int64, err error) {
	u := limits.Usage{Disk: m.usage.Disk}
	defer func() { m.usage = u }()
	if m.process.ctx.Err() != nil {
		return 0, nil
	}
	t, err := proc.Inspect(pids, m.folder, disk)
	if g.watchesMemory() {
		have := proc.MemoryOf(pids, false)
		u.Memory, m.unseen = have.Total(), have.Unseen()
	}
	u.Time, u.Files, u.Processes = time.Since(m.began), t.Files, t.Threads
	if m.live.group != nil {
		g.readGroup(m.live.group, &u)
	}
	return t.Nameless, err
}

// readGroup replaces values of u with those of the process's control group where the group is more precise.
func (g *guard) readGroup(group *cgroup.Group, u *limits.Usage) {
	known, groups := group.Usage(), g.job.service.groups
	if groups.Missing(cgroup.Memory) == nil {
		u.Memory = known.Memory
	}
	if groups.Missing(cgroup.Pids) == nil {
		u.Processes = known.Processes
	}
	if r := g.job.confinement.refusals(group); r.Killed || r.Refused {
		u.Killed, u.Refused, u.Full, u.Memory, u.Processes = r.Killed, r.Refused, r.Full, r.Memory, r.Processes
	}
}

// leastRoom is the room, in bytes, of a process exactly at its limit: no file grows by less.
const leastRoom = 4 << 10

// enforce ends the processes that exceed a limit. It returns the bytes of disk that remain to the process with
// the least left, according to the last measurement.
func (g *guard) enforce() (left int64) {
	left = math.MaxInt64
	remains := func(l limits.Limits, u limits.Usage) {
		if l.Disk > 0 {
			left = min(left, l.Disk-u.Disk)
		}
	}
	grant, all := g.job.grant, limits.Usage{Disk: g.program}
	sure := all
	for _, m := range g.meters {
		u := m.usage
		u.Disk = m.sure
		all, sure = all.Plus(m.usage), sure.Plus(u)
		if m.process.ctx.Err() != nil {
			continue // its files stay until they are collected
		}
		if x, exceeded := grant.Exceeded(u); exceeded {
			m.over = true
			g.job.do(func() { m.process.exceed(x) })
		}
		if m.over {
			continue // it is being ended
		}
		remains(grant.Slot, m.usage)
	}
	if x, exceeded := grant.Job.Exceeded(sure); exceeded {
		for _, m := range g.meters {
			m.over = true
		}
		x.Job = true
		g.job.do(func() { g.job.here.exceed(x) })
	}
	remains(grant.Job, all)
	g.most = max(g.most, all.Disk)
	if left >= 0 {
		left = max(left, leastRoom)
	}
	return left
}

// processes returns the process IDs of each meter: the program and its descendants. A process that has
// ended has none.
func (g *guard) processes() map[*meter][]int {
	all, live := make(map[*meter][]int), []*instance(nil)
	for _, m := range g.meters {
		if all[m] = nil; m.process.ctx.Err() == nil {
			live = append(live, m.live)
		}
	}
	found := processesOf(&g.census, live)
	for _, m := range g.meters {
		all[m] = found[m.live]
	}
	return all
}
