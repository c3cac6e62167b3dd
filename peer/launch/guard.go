package launch

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/internal/limits"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/cgroup"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/proc"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/scratch"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/supervisor"
)

// How often the guard looks. What it costs the owner is bounded: the longer a look takes,
// the longer it is until the next.
const (
	countEvery  = 500 * time.Millisecond // what processes have
	memoryEvery = 20 * time.Millisecond  // their memory, where the kernel does not hold it
	walkEvery   = 10 * time.Second       // what they have on disk, although nobody seems to have written

	idleShare   = 20 // times as long as a look takes, until the next one of its own accord
	urgentShare = 4  // until the next, when somebody may have exceeded a limit
)

// A guard ends processes of a job that have more than is granted.
//
// Nobody can exceed the limit of disk before as much has been written, by whomever, as he had left:
// until then nobody looks who has. Then all processes of the job stand still until it is known (halt.go),
// so that none hides a file from who looks for it, and none writes on meanwhile. Nobody is ended for what he
// seemed to have on disk while he ran: a file that is moved is seen twice, or not at all.
type guard struct {
	job    *job
	meters []*meter
	census supervisor.Census // of processes that have no groups

	free    int64 // on the disk, when that was asked last
	room    int64 // what may be written until it is measured who has
	written bool  // something was, since then
	program int64 // bytes that the program has on disk
	least   int64 // bytes that a name counts there at least
	hasty   bool  // that was not found out to the end, as too much was written meanwhile

	count, memory, walk time.Time // when to look again
	urgent              time.Time // when the disk may be measured again, if somebody may have too much
	wentOn              time.Time // when all went on last that had stood
	late                time.Time // when to look for those that were being made meanwhile; zero: nobody is late
}

// A meter measures what one process has, and all that it has started.
type meter struct {
	process *process
	folder  string
	live    *instance
	began   time.Time
	usage   limits.Usage
	named   int64           // bytes on disk of files that have names
	unseen  int64           // bytes of usage.Memory that a hasty look overlooks
	before  int64           // bytes of usage.Disk the last time that it did not stand for sure, in this halt
	over    bool            // it has too much, and is to be killed
	still   *proc.Stillness // while it is to stand still
	roused  bool            // somebody was woken in the last round
}

// run ends processes that exceed their grants, until the job ends.
func (g *guard) run() {
	defer g.job.running.Done()
	for {
		select {
		case m := <-g.job.metered:
			g.add(m)
		case <-time.After(g.pause()):
			if g.job.stands.Load() {
				g.standBy()
				continue
			}
			g.look()
		case <-g.job.ctx.Done():
			return
		}
	}
}

func newGuard(j *job, instances []*instance) *guard {
	g := &guard{job: j, room: math.MaxInt64, written: true, least: scratch.LeastEntry(string(j.folder))}
	g.free = g.freeBytes()
	for i, id := range j.order {
		g.meters = append(g.meters, newMeter(j.local[id], instances[i]))
	}
	return g
}

// add makes the guard measure a process that was added to the job, in place of an earlier one that was dropped
// and had the same folder.
func (g *guard) add(m *meter) {
	g.meters = append(slices.DeleteFunc(g.meters, func(before *meter) bool { return before.folder == m.folder }), m)
	g.written, g.count = true, time.Time{} // it has its input files on disk
}

func newMeter(p *process, i *instance) *meter {
	return &meter{process: p, live: i, folder: p.job.folder.Process(p.id), began: time.Now()}
}

// pause returns how long nothing needs to be looked at.
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

// due returns how long nothing needs to be looked at if so many bytes may be written meanwhile.
func (g *guard) due(room int64) time.Duration {
	next := min(time.Until(g.count), limits.Pause(room))
	if g.watchesMemory() {
		next = min(next, time.Until(g.memory))
	}
	return next
}

// look looks at what is due.
func (g *guard) look() {
	g.raise()
	if g.spend(); g.room > 0 {
		g.watch(g.limitsDisk() && (g.written || !time.Now().Before(g.walk)))
		return
	}
	g.halt()
	if left, ok := g.measureStill(); ok {
		g.room = left
	}
	g.letGoOn()
}

// spend takes note of what has been written.
func (g *guard) spend() {
	free := g.freeBytes()
	g.written = g.written || free < g.free
	g.room -= max(0, g.free-free)
	g.free = free
}

// watch looks at what is due, and with disk at what is on disk, too.
func (g *guard) watch(disk bool) {
	switch now := time.Now(); {
	case !now.Before(g.count):
		g.room = min(g.room, g.measure(disk))
	case g.watchesMemory() && !now.Before(g.memory):
		g.watchMemory()
	}
}

// limitsDisk reports whether there is a limit of disk.
func (g *guard) limitsDisk() bool { return g.job.grant.Slot.Disk+g.job.grant.Job.Disk > 0 }

// watchesMemory reports whether there is a limit of memory that the kernel does not hold.
func (g *guard) watchesMemory() bool {
	grant := g.job.grant
	return grant.Slot.Memory+grant.Job.Memory > 0 && g.job.service.groups.Missing(cgroup.Memory) != nil
}

// measure measures all processes while they run, and ends those that have too much of what is not on disk.
// It returns how many bytes are left there for that one that seems to have least left.
func (g *guard) measure(disk bool) (left int64) {
	failed := g.survey(disk)
	if left = g.enforce(notKnown); len(failed) > 0 || g.hasty {
		return 0 // it may just have changed its folders
	}
	return left
}

// survey finds out what all processes have, as far as it can.
func (g *guard) survey(disk bool) (failed map[*meter]error) {
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
	g.count, g.memory = after(max(g.soon(), idleShare*took)), after(max(memoryEvery, urgentShare*took))
	if disk {
		took = time.Since(begun)
		g.urgent, g.walk = after(urgentShare*took), after(max(walkEvery, idleShare*took))
	}
	return failed
}

// measureFolders finds out what is in all folders.
func (g *guard) measureFolders(failed map[*meter]error) {
	g.written, g.hasty = false, false
	most := g.leastDisk() + g.leastDisk()/4 // to say how much was used, if it is little more
	ruler := scratch.Ruler{Least: g.least, Most: most, Pause: g.between}
	g.program, _ = scratch.Measure(g.job.folder.Program(), ruler)
	for _, m := range g.meters {
		var err error
		if m.named, err = scratch.Measure(m.folder, ruler); err != nil && m.process.ctx.Err() == nil {
			failed[m] = fmt.Errorf("what it has on disk cannot be measured: %w", err)
		}
	}
}

// leastDisk is the least limit of disk.
func (g *guard) leastDisk() int64 { return limits.Min(g.job.grant.Slot, g.job.grant.Job).Disk }

// between is called while files are measured, which may take long. All other limits are watched. Nobody goes on
// measuring while the job runs and has written as much as it may have at most: it is to stand first.
func (g *guard) between() error {
	g.watch(false)
	may := min(g.room, g.leastDisk())
	g.hasty = g.job.halting.Load() != stand && g.free-g.freeBytes() >= may
	if g.hasty {
		return errHasty
	}
	return g.job.ctx.Err()
}

var errHasty = errors.New("too much is written meanwhile")

func (g *guard) freeBytes() int64 { return proc.FreeBytes(string(g.job.folder), g.least) }

// soon is when to count again at the latest.
func (g *guard) soon() time.Duration {
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

func after(d time.Duration) time.Time { return time.Now().Add(d) }

// measureOne measures one process, which may have ended: its files stay until they are collected.
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
		g.ask(m.live.group, &u)
	}
	return err
}

// ask has the control group of a process tell what it knows better.
func (g *guard) ask(group *cgroup.Group, u *limits.Usage) {
	known, groups := group.Usage(), g.job.service.groups
	if groups.Missing(cgroup.Memory) == nil {
		u.Memory = known.Memory
	}
	if groups.Missing(cgroup.Pids) == nil {
		u.Processes = known.Processes
	}
	if r := g.job.refusals(group); r.Killed || r.Refused {
		u.Killed, u.Refused, u.Full, u.Memory, u.Processes = r.Killed, r.Refused, r.Full, r.Memory, r.Processes
	}
}

// notKnown: what a running process has on disk is certain to be at least nothing.
func notKnown(*meter) int64 { return 0 }

// measured: once all have stood, what was measured is certain.
func measured(m *meter) int64 { return m.usage.Disk }

// leastRoom is what is left, in bytes, to one who has exactly his limit: no file grows by less.
const leastRoom = 4 << 10

// enforce ends who has too much, on disk only what he has there for certain. It returns how many bytes are left
// there for that one that has least left, as far as is known.
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
		g.job.do(func() { g.job.exceed(x) })
	}
	remains(grant.Job, all)
	if left >= 0 {
		left = max(left, leastRoom)
	}
	return left
}

// processes returns those of each meter: the program and what it has started. One that has
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
