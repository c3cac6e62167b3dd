package launch

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/launch/confine/cgroup"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/scratch"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/proc"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/supervisor"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
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

// A guard ends processes of a job that exceed their grant.
//
// A process can only exceed its disk limit after as many bytes were written on the disk, by any program, as
// that process had left. Until then the guard measures no files. Then it stops all processes of the job
// until the measurement is complete (halt.go), so that no process can hide a file or write meanwhile. The
// guard ends no process for a measurement made while the processes ran: a file that is moved then may be
// counted twice, or not at all.
type guard struct {
	job    *job
	meters []*meter
	census supervisor.Census // of processes that have no control groups

	free    int64 // free bytes on the disk at the last check
	room    int64 // bytes that may be written before the next measurement
	written bool  // something was written since the last measurement
	program int64 // bytes of the program on disk
	least   int64 // minimum bytes that a directory entry counts
	aborted bool  // the last measurement stopped early, since too much was written meanwhile

	count, memory, walk time.Time // times of the next measurements
	urgent              time.Time // earliest next measurement of the disk, if a process may exceed its limit
	resumedAt           time.Time // time at which the processes were last resumed
	late                time.Time // time to look for processes that were being created during the last halt; zero: none
}

// A meter measures what one process, with its descendants, uses.
type meter struct {
	process *process
	folder  string
	live    *instance
	began   time.Time
	usage   limits.Usage
	named   int64           // bytes on disk of files that have names
	unseen  int64           // bytes of usage.Memory that a quick measurement overlooks
	before  int64           // bytes of usage.Disk at the last measurement in this halt during which it may have run
	over    bool            // it exceeds a limit and is being killed
	stop    *proc.StopCheck // determines whether it has stopped, during a halt
	resumed bool            // one of its processes was certainly resumed in the last round
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
	g.written, g.count = true, time.Time{} // its input files are on disk
}

func newMeter(p *process, i *instance) *meter {
	return &meter{process: p, live: i, folder: p.job.folder.Process(p.id), began: time.Now()}
}

// pause returns the time until the next measurement is due.
func (g *guard) pause() time.Duration {
	switch {
	case g.room <= 0:
		return 0
	case !g.late.IsZero():
		return min(g.due(g.room), time.Until(g.late))
	default:
		return g.due(g.room)
	}
}

// due returns the time until the next measurement is due if room bytes may be written meanwhile.
func (g *guard) due(room int64) time.Duration {
	next := min(time.Until(g.count), limits.Pause(room))
	if g.watchesMemory() {
		next = min(next, time.Until(g.memory))
	}
	return next
}

// check makes the measurements that are due.
func (g *guard) check() {
	g.resumeLate()
	if g.spend(); g.room > 0 {
		g.measureDue(g.limitsDisk() && (g.written || !time.Now().Before(g.walk)))
		return
	}
	g.halt()
	if left, ok := g.measureStopped(); ok {
		g.room = left
	}
	g.resume()
}

// spend subtracts the bytes that were written from the room that is left.
func (g *guard) spend() {
	free := g.freeBytes()
	g.written = g.written || free < g.free
	g.room -= max(0, g.free-free)
	g.free = free
}

// measureDue makes the measurements that are due; with disk, it includes disk usage.
func (g *guard) measureDue(disk bool) {
	switch now := time.Now(); {
	case !now.Before(g.count):
		g.room = min(g.room, g.measure(disk))
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

// measure measures all processes while they run, and ends those that exceed a limit other than disk. It
// returns the bytes of disk that remain to the process with the least left, according to this measurement.
func (g *guard) measure(disk bool) (left int64) {
	failed := g.measureAll(disk)
	if left = g.enforce(notKnown); len(failed) > 0 || g.aborted {
		return 0 // it may just have changed its folders
	}
	return left
}

// measureAll measures all processes, as far as possible.
func (g *guard) measureAll(disk bool) (failed map[*meter]error) {
	begun := time.Now()
	failed = make(map[*meter]error)
	if disk {
		g.measureFolders(failed)
	}
	counted := time.Now()
	all := g.processes()
	for m, pids := range all {
		if err := g.measureOne(m, pids, disk); err != nil {
			failed[m] = err
		}
	}
	g.countSharedOnce(all)
	took := time.Since(counted)
	g.count, g.memory = fromNow(max(g.nextCount(), idleShare*took)), fromNow(max(memoryEvery, urgentShare*took))
	if disk {
		took = time.Since(begun)
		g.urgent, g.walk = fromNow(urgentShare*took), fromNow(max(walkEvery, idleShare*took))
	}
	return failed
}

// measureFolders measures the disk usage of all folders.
func (g *guard) measureFolders(failed map[*meter]error) {
	g.written, g.aborted = false, false
	most := g.leastDisk() + g.leastDisk()/4 // measures slightly above the limit, to report how much was used
	ruler := scratch.Ruler{Least: g.least, Most: most, Pause: g.duringWalk}
	g.program, _ = scratch.Measure(g.job.folder.Program(), ruler)
	for _, m := range g.meters {
		var err error
		if m.named, err = scratch.Measure(m.folder, ruler); err != nil && m.process.ctx.Err() == nil {
			failed[m] = fmt.Errorf("its disk usage cannot be measured: %w", err)
		}
	}
}

// leastDisk returns the smallest disk limit.
func (g *guard) leastDisk() int64 { return limits.Min(g.job.grant.Slot, g.job.grant.Job).Disk }

// duringWalk is called during the measurement of files, which may take long. It checks all other limits.
// While the job runs, it aborts the measurement once the job may have reached its disk limit, since the
// processes must then be stopped first.
func (g *guard) duringWalk() error {
	g.measureDue(false)
	may := min(g.room, g.leastDisk())
	g.aborted = g.job.halting.Load() != halted && g.free-g.freeBytes() >= may
	if g.aborted {
		return errAborted
	}
	return g.job.ctx.Err()
}

var errAborted = errors.New("too much was written during the measurement")

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

// measureOne measures one process. A process that has ended still counts: its files stay until they are
// collected.
func (g *guard) measureOne(m *meter, pids []int, disk bool) (err error) {
	u := limits.Usage{Disk: m.usage.Disk}
	defer func() { m.usage = u }()
	if disk {
		u.Disk = m.named
	}
	if m.process.ctx.Err() != nil {
		return nil
	}
	t, hidden := proc.Inspect(pids, m.folder, disk)
	if hidden != nil {
		err = hidden
	}
	if disk {
		u.Disk += t.Nameless
	}
	if g.watchesMemory() {
		have := proc.MemoryOf(pids, false)
		u.Memory, m.unseen = have.Total(), have.Unseen()
	}
	u.Time, u.Files, u.Processes = time.Since(m.began), t.Files, t.Threads
	if m.live.group != nil {
		g.readGroup(m.live.group, &u)
	}
	return err
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

// notKnown returns the bytes that a running process certainly has on disk, which is none.
func notKnown(*meter) int64 { return 0 }

// measured returns the measured bytes on disk, which are certain once all processes have stopped.
func measured(m *meter) int64 { return m.usage.Disk }

// leastRoom is the room, in bytes, of a process exactly at its limit: no file grows by less.
const leastRoom = 4 << 10

// enforce ends the processes that exceed a limit. For disk it only counts the bytes that certain returns.
// It returns the bytes of disk that remain to the process with the least left, as far as is known.
func (g *guard) enforce(certain func(*meter) int64) (left int64) {
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
		u.Disk = certain(m)
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
