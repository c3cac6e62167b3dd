package job

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A deceit is a job of one rank, as seen by its submitter. The peer of one replica lies about
// everything that a peer reports of a process: its call of mpj.Init, its end, its output and its
// account. All other peers are honest.
type deceit struct {
	state    State
	emission Emission
	liar     int // index of the liar's replica
	procs    []replica
	got      string // output that the user has received
	result   *Result
	ended    bool // nothing else can happen
}

// A replica records the events of one replica, and the reports of its peer.
type replica struct {
	called, ended, said bool                  // called mpj.Init; the program has ended; the peer has reported the end
	told, drained       bool                  // the submitter has its output; the user has its output
	account             string                // output according to its account; empty without an account
	odd, spoke          bool                  // deviates according to the accounts; has been the output leader
	wanted              [view.Failed + 1]bool // requested states that are not agreed on yet
	since               uint64                // as in an actor
	moved               bool                  // its peer has reported that it is ahead
}

const truth, untruth = "right\n", "wrong\n"

func deceived(r, liar int) deceit {
	d := deceit{state: *NewState(1, r), emission: *NewEmission(1), liar: liar, procs: make([]replica, r)}
	d.state.PeerOf = hostOf
	d.noteLeader()
	return d
}

func hostOf(p view.Process) string { return "P" + p.String() }

func (d *deceit) noteLeader() {
	if p, ok := d.state.View().OutputLeader(0); ok {
		d.procs[p.Replica].spoke = true
	}
}

func (d deceit) clone() deceit {
	d.state.procs, d.state.moves = slices.Clone(d.state.procs), slices.Clone(d.state.moves)
	d.emission.ranks, d.procs = slices.Clone(d.emission.ranks), slices.Clone(d.procs)
	return d
}

// appendKey appends a key that is the same for equal states.
func (d *deceit) appendKey(b []byte) []byte {
	flags := func(set ...bool) (b byte) {
		for i, s := range set {
			if s {
				b |= 1 << i
			}
		}
		return b
	}
	b = append(b, byte(len(d.got)), byte(d.emission.ranks[0][0].next), byte(d.state.view.Masters[0]), byte(d.state.view.Since[0]), byte(d.state.moves[0]))
	b = append(b, d.got...)
	b = append(b, flags(d.result != nil, d.ended, d.state.begun, d.state.over))
	for k, p := range d.procs {
		w := d.state.procs[k]
		b = append(b, byte(d.state.view.States[k]), byte(w.asked), byte(p.since), byte(len(p.account)))
		b = append(b, p.account...)
		b = append(b, flags(p.called, p.ended, p.said, p.told, p.drained, p.odd, p.spoke, p.moved))
		b = append(b, flags(p.wanted[view.Finished], p.wanted[view.Failed], w.initialized, w.drained, w.exit != nil, w.exit != nil && w.exit.Good(), w.aborted != nil))
	}
	return b
}

// accounts returns the accounts known to the submitter.
func (d *deceit) accounts() *Accounts {
	a := &Accounts{
		of: make(map[view.Process]Account), odd: make(map[view.Process]bool), Counting: d.state.Counting,
		Name:  func(p view.Process) string { return "replica on peer " + hostOf(p) },
		Shown: func(int) (Printed, bool) { return printedAs(d.got), true },
		OutputLeaders: func(int) (ps []view.Process) {
			for k, p := range d.procs {
				if p.spoke {
					ps = append(ps, proc(0, k))
				}
			}
			return ps
		},
	}
	for k, p := range d.procs {
		if p.account != "" {
			a.of[proc(0, k)] = Account{Digested: true, Printed: printedAs(p.account)}
		}
		if p.odd {
			a.odd[proc(0, k)] = true
		}
	}
	return a
}

func printedAs(text string) Printed {
	return Printed{Bytes: uint64(len(text)), Digest: sha256.Sum256([]byte(text))}
}

// judge applies the verdict on the accounts.
func (d *deceit) judge(final bool) error {
	a := d.accounts()
	_, r := a.Judge(1, final)
	for k := range d.procs {
		d.procs[k].odd = a.odd[proc(0, k)]
		if d.procs[k].odd && k != d.liar {
			return fmt.Errorf("honest replica %d does not count", k)
		}
	}
	if r != nil {
		return d.end(*r)
	}
	return nil
}

// end checks the result of the job for V4.
func (d *deceit) end(r Result) error {
	d.ended = true
	switch {
	case r.Status == StatusOK && d.got != truth:
		return fmt.Errorf("the user gets %q with status 0", d.got)
	case r.Status != StatusOK && (r.Status != StatusDiverged || !strings.Contains(r.Message, hostOf(proc(0, d.liar)))):
		return fmt.Errorf("status %d, and the liar P0.%d is not named: %s", r.Status, d.liar, r.Message)
	}
	return nil
}

func (d *deceit) follow(s Effects) error {
	for _, c := range s.Propose {
		if c.To == view.Failed && c.Process.Replica != d.liar {
			return fmt.Errorf("honest replica %d fails: %s", c.Process.Replica, d.state.at(c.Process).why)
		}
		if c.Since != 0 {
			d.procs[c.Process.Replica].since = c.Since
			continue
		}
		d.procs[c.Process.Replica].wanted[c.To] = true
	}
	d.noteLeader()
	if s.Result == nil {
		return nil
	}
	if d.result = s.Result; s.Result.Status != StatusOK {
		return d.end(*s.Result)
	}
	return nil
}

// An event is an event that can happen to replica k. A pressing event happens eventually.
type event struct {
	name     string
	pressing bool
	can      func(d *deceit, k int, p *replica) bool
	do       func(d *deceit, k int, p *replica) error
}

func honestly(can func(*deceit, int, *replica) bool) func(*deceit, int, *replica) bool {
	return func(d *deceit, k int, p *replica) bool { return k != d.liar && can(d, k, p) }
}

func lying(can func(*deceit, int, *replica) bool) func(*deceit, int, *replica) bool {
	return func(d *deceit, k int, p *replica) bool {
		return k == d.liar && d.state.View().Live(proc(0, k)) && can(d, k, p)
	}
}

func exits(e Exit) func(*deceit, int, *replica) error {
	return func(d *deceit, k int, p *replica) error {
		p.ended, p.said = true, true
		here := e
		here.Peer = hostOf(proc(0, k))
		return d.follow(d.state.Apply(Exited{Process: proc(0, k), Exit: here}))
	}
}

func prints(text string) func(*deceit, int, *replica) error {
	return func(d *deceit, k int, p *replica) error {
		p.told = true
		fresh, _, ok := d.emission.Add(proc(0, k), Stdout, 0, []byte(text))
		if !ok {
			return fmt.Errorf("R6: the output of replica %d is refused", k)
		}
		d.got += string(fresh)
		return nil
	}
}

func accountsFor(text string) func(*deceit, int, *replica) error {
	return func(d *deceit, k int, p *replica) error {
		p.account = text
		return d.judge(false)
	}
}

func becomes(to view.State) func(*deceit, int, *replica) error {
	return func(d *deceit, k int, p *replica) error {
		p.wanted[to] = false
		return d.follow(d.state.Apply(Committed{Change: view.Change{Process: proc(0, k), To: to}}))
	}
}

func lost(d *deceit, k int, _ *replica) error {
	return d.follow(d.state.Apply(Lost{Processes: []view.Process{proc(0, k)}, Why: "is lost"}))
}

// honestEvents are the reports of honest peers, and the agreements on views.
var honestEvents = []event{
	{"calls mpj.Init", true, honestly(func(_ *deceit, _ int, p *replica) bool { return !p.called }), calls},
	{"ends well", true, honestly(func(d *deceit, _ int, p *replica) bool { return d.state.begun && !p.ended }), exits(wellEnded)},
	{"delivers its output", true, honestly(func(_ *deceit, _ int, p *replica) bool { return p.ended && p.spoke && !p.told }), prints(truth)},
	{"accounts for its output", true, honestly(func(_ *deceit, _ int, p *replica) bool { return p.ended && p.account == "" }), accountsFor(truth)},
	{"has its output read by the user", true, func(_ *deceit, _ int, p *replica) bool { return p.told && !p.drained }, func(d *deceit, k int, p *replica) error {
		p.drained = true
		return d.follow(d.state.Apply(Drained{Process: proc(0, k)}))
	}},
	{"finishes by agreement", true, func(_ *deceit, _ int, p *replica) bool { return p.wanted[view.Finished] }, becomes(view.Finished)},
	{"fails by agreement", true, func(_ *deceit, _ int, p *replica) bool { return p.wanted[view.Failed] }, becomes(view.Failed)},
	{"becomes master by agreement", true, func(_ *deceit, _ int, p *replica) bool { return p.since != 0 }, func(d *deceit, k int, p *replica) error {
		c := view.Change{Process: proc(0, k), To: view.Live, Since: p.since}
		p.since = 0
		return d.follow(d.state.Apply(Committed{Change: c}))
	}},
}

// lyingEvents are the reports of the liar, and the submitter's reactions after some time.
var lyingEvents = []event{
	{"lies that it called mpj.Init", false, lying(func(_ *deceit, _ int, p *replica) bool { return !p.called && !p.said }), calls},
	{"lies that it ended well", false, lying(func(d *deceit, _ int, p *replica) bool { return !p.said && p.called && d.state.begun }), exits(wellEnded)},
	{"lies that it ended without mpj.Init", false, lying(func(_ *deceit, _ int, p *replica) bool { return !p.said && !p.called }), exits(Exit{})},
	{"lies that it exited with status 3", false, lying(func(_ *deceit, _ int, p *replica) bool { return !p.said }), func(d *deceit, k int, p *replica) error {
		return exits(Exit{Code: 3, Initialized: p.called})(d, k, p)
	}},
	{"lies that it called Abort", false, lying(func(d *deceit, k int, _ *replica) bool { return d.state.procs[k].aborted == nil }), func(d *deceit, k int, _ *replica) error {
		return d.follow(d.state.Apply(Aborted{Process: proc(0, k), Code: 3, Reason: "a reason of the liar", Host: hostOf(proc(0, k))}))
	}},
	{"lies that it is ahead", false, lying(func(_ *deceit, _ int, p *replica) bool { return !p.moved }), func(d *deceit, k int, p *replica) error {
		p.moved = true
		return d.follow(d.state.Apply(Ahead{Process: proc(0, k)}))
	}},
	{"makes itself finish", false, lying(func(*deceit, int, *replica) bool { return true }), becomes(view.Finished)},
	{"makes itself fail", false, lying(func(*deceit, int, *replica) bool { return true }), becomes(view.Failed)},
	{"prints wrong output", false, byLiar(func(_ *deceit, p *replica) bool { return p.spoke && !p.told }), prints(untruth)},
	{"prints the right output", false, byLiar(func(_ *deceit, p *replica) bool { return p.spoke && !p.told }), prints(truth)},
	{"accounts for wrong output", false, byLiar(func(_ *deceit, p *replica) bool { return p.account == "" }), accountsFor(untruth)},
	{"accounts for the right output", false, byLiar(func(_ *deceit, p *replica) bool { return p.account == "" }), accountsFor(truth)},
	{"is lost because its peer does not report how it ended", true, withheldBy(func(d *deceit, k int) bool { return d.state.Silent(proc(0, k)) }), lost},
	{"is lost because its peer withholds output", true, withheldBy(func(d *deceit, k int) bool {
		return slices.Contains(d.state.Undrained(), proc(0, k)) && !d.procs[k].told
	}), lost},
	{"is lost because it does not call mpj.Init", true, withheldBy(func(d *deceit, k int) bool {
		return !d.state.begun && d.state.View().Live(proc(0, k)) && !d.procs[k].called && d.state.entries(0).majorityCalls()
	}), lost},
	{"ends the job because it does not call mpj.Init", true, withheldBy(func(d *deceit, k int) bool {
		return !d.state.begun && d.state.View().Live(proc(0, k)) && !d.procs[k].called && len(d.procs) == 2
	}), func(d *deceit, k int, _ *replica) error {
		return d.end(Result{Status: StatusDiverged, Message: hostOf(proc(0, k))}) // see TestV4TwoReplicasDivergeAtInit
	}},
	{"ends the job because its answer is not confirmed", true, func(d *deceit, k int, _ *replica) bool {
		return k == d.liar && d.result != nil && d.waitsForLiar() && len(d.accounts().Unconfirmed(d.state.Working())) > 0
	}, func(d *deceit, _ int, _ *replica) error {
		if err := d.judge(true); err != nil || d.ended {
			return err
		}
		return d.end(*d.accounts().UnconfirmedAfter(d.state.Working(), 0))
	}},
	{"ends the job with a confirmed answer", true, func(d *deceit, k int, _ *replica) bool {
		return k == d.liar && d.result != nil && len(d.accounts().Unconfirmed(d.state.Working())) == 0
	}, func(d *deceit, _ int, _ *replica) error {
		if err := d.judge(true); err != nil || d.ended {
			return err
		}
		return d.end(*d.result)
	}},
}

func calls(d *deceit, k int, p *replica) error {
	p.called = true
	return d.follow(d.state.Apply(Initialized{Process: proc(0, k)}))
}

func byLiar(can func(*deceit, *replica) bool) func(*deceit, int, *replica) bool {
	return func(d *deceit, k int, p *replica) bool { return k == d.liar && can(d, p) }
}

// withheldBy returns a condition that holds if only the liar has omitted an action, and its replica
// has not failed for that reason yet.
func withheldBy(can func(*deceit, int) bool) func(*deceit, int, *replica) bool {
	return func(d *deceit, k int, p *replica) bool {
		return k == d.liar && d.waitsForLiar() && d.state.state(proc(0, k)) != view.Failed && can(d, k)
	}
}

// waitsForLiar reports whether honest replicas have nothing more to report.
func (d *deceit) waitsForLiar() bool {
	for k := range d.procs {
		for _, h := range honestEvents {
			if h.can(d, k, &d.procs[k]) {
				return false
			}
		}
	}
	return true
}

// everything explores all states that can follow from d; path lists the events that led to d.
func (d deceit) everything(t *testing.T, met map[string]bool, path []string) {
	key := string(d.appendKey(nil))
	if met[key] || d.ended {
		return
	}
	met[key] = true
	pressing := false
	for k := range d.procs {
		for _, h := range slices.Concat(honestEvents, lyingEvents) {
			if !h.can(&d, k, &d.procs[k]) {
				continue
			}
			pressing = pressing || h.pressing
			next, after := d.clone(), append(slices.Clip(path), fmt.Sprintf("%d %s", k, h.name))
			if err := h.do(&next, k, &next.procs[k]); err != nil {
				t.Fatalf("V4: %v\nafter %s", err, strings.Join(after, "\n      "))
			}
			next.everything(t, met, after)
		}
	}
	if !pressing {
		t.Fatalf("V4: no event is left, and the job has not ended:\n      %s", strings.Join(path, "\n      "))
	}
}

// TestV4EveryOrderOfLies checks V4 for every order of the reports of a lying peer and of honest
// peers about the replicas of a rank. The user gets the right answer, or status 65 with the name of
// the liar, and no honest replica fails. With -deep there are three replicas.
func TestV4EveryOrderOfLies(t *testing.T) {
	most := 2
	if *deep {
		most = 3
	}
	for r := 2; r <= most; r++ {
		for liar := range min(r, 2) { // replica 0 is the master; the others are equivalent
			t.Run(fmt.Sprintf("r=%d, replica %d lies", r, liar), func(t *testing.T) {
				t.Parallel()
				met := make(map[string]bool)
				deceived(r, liar).everything(t, met, nil)
				t.Logf("%d states", len(met))
			})
		}
	}
}
