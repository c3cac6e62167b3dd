package faultdetect

import (
	"errors"
	"fmt"
	"time"
)

const (
	// DefaultPeriod is the default gossip period, half that of P2P-MPI. A silent member is missed up to
	// one period after its last table.
	DefaultPeriod = 250 * time.Millisecond

	// TicksPerPeriod is how often Tick has to be called per period. The first tick of a period sends the
	// table, and every tick probes the suspects. With a single probe, two lost messages after a
	// suspicion would cause a false failure. At 5 % loss the probability of that is one in ten; with eight
	// probes it is one in 10^8.
	TicksPerPeriod = 8

	// maxMembers bounds the size of a group, which another peer may choose.
	maxMembers = 1 << 16

	// startGrace is how many periods (5 s by default) the arrival of the members' start messages may
	// differ. The first heartbeat of a member may be this late.
	startGrace = 20

	// catchUpEvery is the number of periods after which a member that lags behind may add a heartbeat.
	// Clocks drift by far less than 1 in 16, and a lying member cannot speed a group up by more. After 16
	// periods and the additional heartbeat a member has advanced by 17, which is coprime to 2⌈log₂ n⌉ for
	// every group, so the skipped round varies.
	catchUpEvery = 16
)

// Config describes a group from the view of one member. All members must agree on all fields but Self.
type Config struct {
	Members int           // n, at most maxMembers
	Self    int           // this member's index, 0..n-1
	Period  time.Duration // between two heartbeats, at least 1 ms
	Offset  uint64        // initial heartbeat
	Hang    time.Duration // tolerated hang: additional time for a silent member
	Mode    Mode          // determines when a member becomes suspect
	Targets Targets       // scheme of targets; not Random in mode Fast, which has to compute the sender
}

func (c Config) validate() error {
	switch {
	case c.Members < 1 || c.Members > maxMembers:
		return fmt.Errorf("group of %d members: want 1 to %d", c.Members, maxMembers)
	case c.Self < 0 || c.Self >= c.Members:
		return fmt.Errorf("member %d in a group of %d", c.Self, c.Members)
	case c.Period < time.Millisecond:
		return fmt.Errorf("period of %v: want at least 1ms", c.Period)
	case c.Offset > maxHeartbeat:
		return fmt.Errorf("heartbeat offset %d exceeds %d", c.Offset, uint64(maxHeartbeat))
	case c.Hang < 0 || c.Hang > MaxHang:
		return fmt.Errorf("tolerated hang of %v: want 0 to %v", c.Hang, MaxHang)
	case c.Mode > Gossip || c.Targets > Random:
		return fmt.Errorf("%v with %v: unknown", c.Mode, c.Targets)
	case c.Mode == Fast && c.Targets == Random:
		return errors.New("mode fast with random targets: a missing table has no known sender")
	}
	return nil
}

// MaxHang bounds the tolerated hang.
const MaxHang = time.Hour

// maxHeartbeat keeps sums of heartbeats from overflowing.
const maxHeartbeat = 1 << 62

// A Detector decides which members of a group are live, suspect or failed. It starts no goroutine and
// reads no clock. Its caller passes one event at a time (Tick, Receive, Report, Silent, Gone) and carries
// out the Output. The gossip is that of van Renesse et al. (1998) with the targets of P2P-MPI's double
// binary round robin. The indirect probe is that of SWIM (Das et al. 2002), the local health that of
// Lifeguard (Dadgar et al. 2017).
type Detector struct {
	n, self int
	period  time.Duration
	offset  uint64
	hang    time.Duration
	mode    Mode
	targets Targets

	heartbeat uint64        // this member's heartbeat
	now       time.Duration // time of the latest event
	ticked    time.Duration // time of the latest Tick
	periods   int           // number of this member's periods so far; the measure of silence
	behind    bool          // the sender of a message had a heartbeat ahead by two or more
	caughtUp  int           // value of periods when a heartbeat was last added

	members       []member
	ring          ring
	links         links        // measured from the tables and answers of other members
	due           []expected   // tables that are expected
	suspicions    []*suspicion // one for each suspect
	probeRequests probeRequests
	accusations   accusations
	health        health
}

// member is the state of one other member. A simulation has n² of them, so they are small.
type member struct {
	heartbeat uint64        // largest known
	phase     time.Duration // upper bound of the time after New at which its heartbeat was the Offset
	heard     int32         // period of its last sign of life; startGrace before the first
	met       bool          // it has been heard at least once
	state     State
}

// sawAlive records that the member was alive in a period. The first sign of life ends the start grace,
// so that it does not delay the suspicion of a member that becomes silent soon after the start.
func (m *member) sawAlive(period int) {
	if m.met {
		period = max(period, int(m.heard))
	}
	m.heard, m.met = int32(period), true
}

// New returns the detector of one member, at time zero.
func New(c Config) (*Detector, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("faultdetect: %w", err)
	}
	d := &Detector{
		n: c.Members, self: c.Self, period: c.Period, offset: c.Offset,
		hang: c.Hang, mode: c.Mode, targets: c.Targets,
		heartbeat: c.Offset,
		members:   make([]member, c.Members),
		ring:      ring{n: c.Members},
		links:     links{},
	}
	for i := range d.members {
		d.members[i] = member{heartbeat: c.Offset, heard: startGrace}
	}
	return d, nil
}

// Heartbeat returns this member's own heartbeat.
func (d *Detector) Heartbeat() uint64 { return d.heartbeat }

// State returns this member's opinion of another member. It considers itself live.
func (d *Detector) State(member int) State { return d.members[member].state }

// Tick sets the time since New. It has to be called TicksPerPeriod times per period. Time in which it was
// not called, because this member was stopped or starved, does not count as silence of other members.
func (d *Detector) Tick(now time.Duration) Output {
	var out Output
	begun := int64(now/d.period) - int64(d.ticked/d.period)
	d.notice(now - d.ticked)
	d.ticked = max(now, d.ticked)
	d.now = max(now, d.now)
	if begun > 0 {
		d.beginPeriod(uint64(begun))
		d.suspectSilent(&out)
	}
	d.suspectLate(&out)
	d.probeSuspects(&out)
	if begun <= 0 {
		return out
	}
	if m, ok := d.table(); ok {
		out.Send = append(out.Send, m)
	}
	return out
}

// notice checks the time since the last tick. If it exceeds two ticks, this member was starved. Suspects
// get that time added, since their answers may be unread; after more than a period, their full time
// starts again. A gap that is short compared with the tolerated hang is ignored.
func (d *Detector) notice(gap time.Duration) {
	step := d.period / TicksPerPeriod
	if gap <= max(2*step, d.hang/16) {
		return
	}
	d.health.worsen()
	d.health.woke = d.ticked + gap
	for _, q := range d.suspicions {
		q.until += gap - step
		if gap > d.period {
			q.until = d.health.woke + q.span
		}
	}
}

// beginPeriod advances this member's heartbeat to the value that the clock implies. If the member lags
// behind, it adds one more from time to time.
func (d *Detector) beginPeriod(begun uint64) {
	d.periods++
	d.heartbeat += begun
	if d.behind && d.periods-d.caughtUp >= catchUpEvery {
		d.heartbeat++
		d.behind, d.caughtUp = false, d.periods
	}
	d.members[d.self].heartbeat = d.heartbeat
	d.members[d.self].heard = int32(d.periods)
	d.health.recover()
	d.expect()
	d.accusations.expire(d.periods)
	d.probeRequests.expire(d.periods)
}

// table returns the gossip message of this round. ok is false if no other member is live.
func (d *Detector) table() (m Message, ok bool) {
	to, ok := d.ring.target(d.targets, d.self, d.heartbeat)
	if !ok {
		return Message{}, false
	}
	m = d.message(to, Table)
	m.Table = make([]uint64, d.n)
	for i := range d.members {
		m.Table[i] = d.members[i].heartbeat
	}
	return m, true
}

func (d *Detector) message(to int, k Kind) Message {
	return Message{From: d.self, To: to, Kind: k, Heartbeat: d.heartbeat}
}

// silence returns the number of periods since the last sign of life of member i.
func (d *Detector) silence(i int) int { return max(0, d.periods-int(d.members[i].heard)) }

// suspectAfter returns the number of silent periods after which a member becomes suspect: the rounds that
// news may take, plus the tolerated hang.
func (d *Detector) suspectAfter() int {
	return d.targets.Rounds(d.n) + int((d.hang+d.period-1)/d.period)
}
