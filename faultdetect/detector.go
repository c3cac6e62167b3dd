package faultdetect

import (
	"errors"
	"fmt"
	"time"
)

const (
	// DefaultPeriod is the default gossip period, half of what P2P-MPI has: a silent member is missed
	// up to a period after its last table.
	DefaultPeriod = 250 * time.Millisecond

	// TicksPerPeriod is how often Tick is to be called in a period. The first
	// tick of a period sends the table; each asks the suspects. One question
	// would make two lost messages on top of a suspicion a false failure: at
	// 5 % loss that is one in ten, with eight questions one in 10^8.
	TicksPerPeriod = 8

	// MaxMembers bounds a group that is named by another peer.
	MaxMembers = 1 << 16

	// startGrace is how many periods apart (5 s at the default) the members'
	// start messages may arrive: so much later may the first heartbeat be.
	startGrace = 20

	// catchUpEvery is after how many periods a member that lags behind may
	// add a heartbeat. Clocks drift apart by far less than 1 in 16, and no
	// liar can speed a group up by more. 17 is prime to 2⌈log₂ n⌉ of every
	// group, so that it is not always the same round that is left out.
	catchUpEvery = 16
)

// Config describes a group as one of its members sees it. All members must
// agree on all but Self.
type Config struct {
	Members int           // n, at most MaxMembers
	Self    int           // this member's index, 0..n-1
	Period  time.Duration // between two heartbeats, at least 1 ms
	Offset  uint64        // the heartbeat to start from
	Hang    time.Duration // how much longer than needed a silent member is waited for
	Mode    Mode          // what makes a suspect
	Targets Targets       // to whom the tables go; Fast needs to know it of others, so not Random
}

func (c Config) validate() error {
	switch {
	case c.Members < 1 || c.Members > MaxMembers:
		return fmt.Errorf("group of %d members: want 1 to %d", c.Members, MaxMembers)
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
		return errors.New("fast with random: nobody knows whose table is missing")
	}
	return nil
}

// MaxHang bounds the tolerated hang.
const MaxHang = time.Hour

// maxHeartbeat keeps sums of heartbeats from overflowing.
const maxHeartbeat = 1 << 62

// A Detector judges which members of a group are live, suspect or failed.
// It starts no goroutine and reads no clock: its caller hands it one event at
// a time (Tick, Receive, Report, Silent, Gone) and carries out the Output. The gossip
// is that of van Renesse et al. (1998) with the targets of P2P-MPI's double
// binary round robin, the asking through others that of SWIM (Das et al. 2002),
// the doubt in itself that of Lifeguard (Dadgar et al. 2017).
type Detector struct {
	n, self int
	period  time.Duration
	offset  uint64
	hang    time.Duration
	mode    Mode
	targets Targets

	heartbeat uint64        // own
	now       time.Duration // of the latest event
	ticked    time.Duration // of the latest Tick
	periods   int           // own periods that this member has run: its measure of silence
	behind    bool          // a member's own heartbeat has been two or more ahead
	caughtUp  int           // value of periods when a heartbeat was added last

	members   []member
	ring      ring
	links     map[int]*link // of members that have sent a table here
	due       []expected    // tables that are to come
	inquiries []*inquiry    // one for each suspect
	questions []question    // of others, who asked to have somebody asked
	spread    []passing     // accusations that have been passed on lately
	health    health
}

// member is what is known of one other member. There are n² of them in a
// simulation, so they are small.
type member struct {
	heartbeat uint64        // largest known
	phase     time.Duration // no later than this after New was its heartbeat the Offset, as far as news of it tell
	heard     int32         // in periods: when it last gave a sign of life; before the first, startGrace
	met       bool          // it has given one
	state     State
}

// showsLife notes that the member was alive in a period. The first time ends
// the grace, or a member that falls silent soon after the start would have it.
func (m *member) showsLife(period int) {
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
		links:     map[int]*link{},
	}
	for i := range d.members {
		d.members[i] = member{heartbeat: c.Offset, heard: startGrace}
	}
	return d, nil
}

// Heartbeat returns this member's own heartbeat.
func (d *Detector) Heartbeat() uint64 { return d.heartbeat }

// State returns what this member believes of another. It believes itself live.
func (d *Detector) State(member int) State { return d.members[member].state }

// Tick tells the time since New. It is to be called TicksPerPeriod times per
// period; when it was not, because this member was stopped or starved, the
// time that it missed is held against nobody.
func (d *Detector) Tick(now time.Duration) Output {
	var out Output
	begun := int64(now/d.period) - int64(d.ticked/d.period)
	d.notice(now - d.ticked)
	d.ticked = max(now, d.ticked)
	d.now = max(now, d.now)
	if begun > 0 {
		d.beginPeriod(uint64(begun))
		d.doubtTheSilent(&out)
	}
	d.doubtTheLate(&out)
	d.inquire(&out)
	if begun <= 0 {
		return out
	}
	if m, ok := d.table(); ok {
		out.Send = append(out.Send, m)
	}
	return out
}

// beginPeriod advances the own heartbeat to where the clock says that it
// should be, and by one more now and then when this member lags behind.
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
	d.forgetOld()
}

// table is the gossip of this round. ok is false when there is nobody to
// tell.
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

// silence is for how many periods nothing has been heard of a member.
func (d *Detector) silence(i int) int { return max(0, d.periods-int(d.members[i].heard)) }

// patience is the periods of silence that make a suspect: the rounds that news
// may take, and the tolerated hang.
func (d *Detector) patience() int {
	return d.targets.Rounds(d.n) + int((d.hang+d.period-1)/d.period)
}
