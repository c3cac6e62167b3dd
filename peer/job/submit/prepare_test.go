package submit

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// stagingMessage reports progress.
func stagingMessage(bytes, total int64) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Staging{Staging: &jobpb.Staging{Bytes: bytes, Total: total}}}
}

// trickle reports the same progress of staging again and again.
func (p *part) trickle() {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 100 {
		<-tick.C
		p.say(stagingMessage(1, 1000))
	}
}

// TestProgressOfStaging: only another thousandth of the job's contents counts as progress, whatever
// total the peer reports.
func TestProgressOfStaging(t *testing.T) {
	const contents = 1 << 20
	begun := time.Unix(0, 0)
	l := &link{progress: progress{at: begun}}
	for i := range 100_000 {
		l.progress.staged, l.progress.total = int64(i), 1<<46
		l.progress.advance(contents, begun.Add(time.Duration(i)*time.Second))
	}
	if steps := l.progress.counted / (contents / 1000); steps > 100 || l.progress.at.Before(begun.Add(time.Hour)) {
		t.Errorf("%d bytes counted, last at %v", l.progress.counted, l.progress.at)
	}
	before := l.progress.at
	for i := range 1000 {
		l.progress.staged = contents + int64(i)<<20
		l.progress.advance(contents, before.Add(time.Duration(1+i)*time.Hour))
	}
	if l.progress.at.After(before.Add(time.Hour)) {
		t.Error("more bytes than there are to be staged count as progress")
	}
}

// TestFaultyPeerIsReplaced: whatever a peer does wrong before the job runs, the job starts again
// at another one, and the user gets no output twice.
func TestFaultyPeerIsReplaced(t *testing.T) {
	skip.Long(t)
	b := newBed(t, never, 1, 1)
	cases := map[string]struct {
		fault func(*part)
		says  string
	}{
		"vanishes when asked to stage":        {(*part).vanish, "stage the job at"},
		"cannot stage":                        {func(p *part) { p.prepared("disk\x1b full") }, "disk  full"},
		"silent while staging":                {func(*part) {}, "no message for 1s"},
		"makes no progress while staging":     {(*part).trickle, "no progress for 1s"},
		"starts before it has staged":         {func(p *part) { p.say(startedMessage("")) }, "unexpected *jobpb.FromPeer_Started"},
		"runs before it has staged":           {func(p *part) { p.ends(proc(0, 0), "early\n") }, "unexpected *jobpb.FromPeer_Output"},
		"vanishes between staged and started": {func(p *part) { p.prepared(""); await(p, (*jobpb.ToPeer).GetStart); p.vanish() }, "start the job at"},
		"cannot start":                        {func(p *part) { p.prepared(""); p.started("exec format error") }, "exec format error"},
		"silent while starting":               {func(p *part) { p.prepared("") }, "no message for 1s"},
		"runs before it has started":          {func(p *part) { p.prepared(""); p.ends(proc(0, 0), "early\n") }, "unexpected *jobpb.FromPeer_Output"},
		"writes garbage":                      {func(p *part) { p.stream.Write([]byte{3, 0xff, 0xff, 0xff}) }, "stage the job at"},
		"begins an unbounded message":         {func(p *part) { p.stream.Write([]byte{0xff, 0xff, 0xff, 0x7f}) }, "stage the job at"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b.submitter.waits.silence, b.submitter.waits.progress = defaultWaits.silence, defaultWaits.progress
			if strings.HasPrefix(c.says, "no progress") {
				b.submitter.waits.progress = time.Second
			}
			if strings.HasPrefix(c.says, "no message") {
				b.submitter.waits.silence = time.Second
			}
			first := make(chan *member, 1)
			b.in(t).play(func(p *part) {
				if p.number == 0 {
					first <- p.peer
					c.fault(p)
					return
				}
				if p.peer == <-first {
					p.Error("the peer at fault was asked again")
				}
				p.say(stagingMessage(-1, 1<<62))
				p.start()
				p.ends(proc(0, 0), "out\n")
			})
			o := b.run(b.request(1, 1), nil)
			o.want(job.StatusOK, "")
			o.told(c.says)
			o.wrote(0, job.Stdout, "out\n")
		})
	}
	b.in(t)
}

// breaksOff breaks the connection with the submitter, and follows a script when the submitter
// reconnects.
func (p *part) breaksOff(script func(*part)) {
	p.peer.SetStreamHandler(Protocol, func(s network.Stream) {
		if !p.stage.enter(s) {
			return
		}
		defer p.stage.acting.Done()
		again := &part{bed: p.bed, peer: p.peer, key: p.key, spec: p.spec, stream: s, in: pbio.NewDelimitedReader(s, jobpb.MaxMessage)}
		defer again.leave()
		await(again, (*jobpb.ToPeer).GetResume)
		again.perform(script)
		again.free()
		again.say(&jobpb.FromPeer{Body: &jobpb.FromPeer_Stopped{Stopped: &jobpb.Stopped{}}})
		s.Close()
	})
	p.stream.Conn().Close()
	p.vanish()
}

// TestDisconnectedWhileStagingIsNotLost: no other peer is available. A peer that does not reconnect
// in time is lost, and so is a peer that has ended its part.
func TestDisconnectedWhileStagingIsNotLost(t *testing.T) {
	for name, c := range map[string]struct {
		back  func(*part)
		apart time.Duration
		lost  string // how the peer is lost; empty: it is not
	}{
		"comes back": {back: func(p *part) {
			p.back(stagingMessage(2, 2))
			p.start()
			p.ends(proc(0, 0), "out\n")
		}, apart: eventTimeout},
		"does not":            {back: (*part).vanish, apart: 100 * time.Millisecond, lost: "disconnected for 100ms"},
		"has ended its part":  {back: func(p *part) { p.says("no such job here"); p.vanish() }, apart: eventTimeout, lost: "no such job here"},
		"says something else": {back: func(p *part) { p.say(stagingMessage(2, 2)) }, apart: eventTimeout, lost: "unexpected *jobpb.FromPeer_Staging"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, never, 1)
			b.submitter.waits.disconnected = c.apart
			b.play(func(p *part) {
				p.say(stagingMessage(1, 2))
				p.breaksOff(c.back)
			})
			req := b.request(1, 1)
			if c.lost != "" {
				req.Wait = 0
				o := b.run(req, nil)
				o.want(job.StatusShortage, "")
				o.told(c.lost)
				return
			}
			o := b.run(req, nil)
			o.want(job.StatusOK, "")
			o.wrote(0, job.Stdout, "out\n")
		})
	}
}

// TestAllFaultyPeersAreExcludedAtOnce: three peers fail together, and one more attempt at staging
// suffices. Reserving may take several attempts, until the slots of the first one are free again.
func TestAllFaultyPeersAreExcludedAtOnce(t *testing.T) {
	b := newBed(t, never, 1, 1, 1, 1, 1, 1)
	b.submitter.waits.grace = eventTimeout
	b.play(func(p *part) {
		if p.number < 3 {
			p.prepared("disk full")
			return
		}
		p.start()
		for _, q := range p.processes {
			p.ends(q)
		}
	})
	o := b.run(b.request(3, 1), nil)
	o.want(job.StatusOK, "")
	o.told("(and 2 other peers failed)")
	if n := strings.Count(o.phases(), "staging"); n != 2 {
		t.Errorf("phases %q, want to stage twice", o.phases())
	}
}

// TestAttemptsAreBounded: three attempts that found no peer at fault are the limit. An attempt that
// excluded a peer counts, too, once the time to wait for slots is over.
func TestAttemptsAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		excluded, waits bool
		want            int
	}{
		"no peer at fault":              {false, true, fruitlessAttempts},
		"no more time to wait":          {true, false, fruitlessAttempts},
		"a further peer at fault, time": {true, true, 1000},
	} {
		var a attempts
		for a.all < 1000 && a.again(c.excluded, c.waits) {
		}
		if a.all != c.want {
			t.Errorf("%s: %d attempts, want %d", name, a.all, c.want)
		}
	}
}

// TestPeersThatFailStagingDoNotCountAsAttempts: four peers that grant slots and then cannot stage are
// excluded one after the other, and the job runs on the fifth (V4).
func TestPeersThatFailStagingDoNotCountAsAttempts(t *testing.T) {
	b := newBed(t, never, 1, 1, 1, 1, 1)
	b.play(func(p *part) {
		if p.number < 4 {
			p.prepared("no room")
			return
		}
		p.start()
		for _, q := range p.processes {
			p.ends(q)
		}
	})
	b.run(b.request(1, 1), nil).want(job.StatusOK, "")
}

func TestShortageAfterAFaultIsReported(t *testing.T) {
	b := newBed(t, never, 1)
	b.play(func(p *part) { p.prepared("no room") })
	req := b.request(1, 1)
	req.Wait = 0
	o := b.run(req, nil)
	o.want(job.StatusShortage, "found 0 of the 1 slot needed (-n 1 -r 1) within 0s; passed over: 1 could not run it")
	o.told("no room")
}

// TestSilentPeerIsDetectedBesideABusyOne: the reports of a peer that makes progress do not hide
// another one's silence, and the busy peer is not blamed.
func TestSilentPeerIsDetectedBesideABusyOne(t *testing.T) {
	b := newBed(t, never, 1, 1, 1)
	b.submitter.waits.silence = time.Second
	b.play(func(p *part) {
		switch p.number {
		case 0: // is silent
		case 1:
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for i := range int64(25) {
				<-tick.C
				p.say(stagingMessage(i, 1000))
			}
		default:
			p.start()
			p.ends(p.processes[0])
		}
	})
	o := b.run(b.request(1, 2), nil)
	o.want(job.StatusOK, "")
	o.told("no message for 1s")
}

// TestR6MessagesBeforeTheLastStartCount: a process may end before another peer has started.
func TestR6MessagesBeforeTheLastStartCount(t *testing.T) {
	b := newBed(t, never, 1, 1)
	done := make(chan struct{})
	b.play(func(p *part) {
		p.prepared("")
		if p.runs(proc(0, 0)) {
			p.started("")
			p.ends(proc(0, 0), "early\n")
			close(done)
			return
		}
		await(p, (*jobpb.ToPeer).GetStart)
		<-done
		p.say(startedMessage(""))
		p.ends(proc(1, 0), "late\n")
	})
	o := b.run(b.request(2, 1), nil)
	o.want(job.StatusOK, "")
	o.wrote(0, job.Stdout, "early\n")
	o.wrote(1, job.Stdout, "late\n")
}

// TestQueueBeforeTheStartIsBounded: the queue of early messages has a limit.
func TestQueueBeforeTheStartIsBounded(t *testing.T) {
	b := newBed(t, never, 1, 1, 1)
	line := strings.Repeat("x", 1<<20-1) + "\n"
	b.play(func(p *part) {
		switch p.number {
		case 0:
			p.prepared("")
			p.started("")
			for i := uint64(0); ; i++ {
				p.writes(p.processes[0], i, line)
			}
		case 1: // starts only after the flood
			p.prepared("")
		default:
			p.start()
			p.ends(p.processes[0])
		}
	})
	o := b.run(b.request(1, 2), nil)
	o.want(job.StatusOK, "")
	o.told("bytes before the job was running")
}

// TestSilentPeerIsReplacedDuringStaging: a silent peer that stages or starts is replaced after the
// detector's time, if another one is known to be free. If none is, the user is told what the job
// waits for.
func TestSilentPeerIsReplacedDuringStaging(t *testing.T) {
	const hang, lull = 2 * time.Second, time.Second
	b := newBed(t, never)
	b.submitter.cfg.Hang, b.submitter.waits.replaceAfter = hang, lull
	used, free, busy, unfit := p2ppeer.ID("used"), p2ppeer.ID("free"), p2ppeer.ID("busy"), p2ppeer.ID("unfit")
	for name, c := range map[string]struct {
		silent   time.Duration
		answered bool
		staging  bool
		spare    bool
		lost     bool
		notes    int
	}{
		"it has just spoken": {silent: lull, staging: true, spare: true},
		"while it stages":    {silent: hang + lull + 1, staging: true, spare: true, lost: true},
		"while others stage": {silent: hang + lull + 1, answered: true, staging: true, spare: true, lost: true},
		"while it starts":    {silent: hang + lull + 1, spare: true, lost: true},
		"it has started":     {silent: hang + lull + 1, answered: true, spare: true},
		"no other is free":   {silent: hang + lull + 1, staging: true, notes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			j := newRun(b.submitter, b.request(1, 1))
			j.known.excluded[unfit] = true
			j.known.met = map[p2ppeer.ID]reservation.Candidate{used: {Slots: 1}, busy: {}, unfit: {Slots: 1}}
			if c.spare {
				j.known.met[free] = reservation.Candidate{Slots: 1}
			}
			l := newLink(reservation.Placement{Peer: used}, proc(0, 0))
			l.progress.answered = c.answered
			start := &startup{j: j, peers: &membership{j: j, links: []*link{l}, reopens: c.staging}}
			last := map[*link]time.Time{l: time.Now().Add(-c.silent)}
			notes := slices.Concat(start.replaceQuiet(last), start.replaceQuiet(last))
			if lost := l.err != nil; lost != c.lost || len(notes) != c.notes {
				t.Errorf("lost: %v, the user is told %q", l.err, notes)
			}
		})
	}
}

// TestPeerWithoutReportsAtTheStartIsProbed: the fault detector does not suspect a peer that
// has never sent a table. So the submitter makes it question a peer that has not reported for the
// tolerated hang.
func TestPeerWithoutReportsAtTheStartIsProbed(t *testing.T) {
	const hang, lull = 2 * time.Second, reportPeriod + 100*time.Millisecond
	b := newBed(t, never)
	b.submitter.cfg.Hang, b.submitter.waits.replaceAfter = hang, lull
	for name, c := range map[string]struct {
		silent    time.Duration
		spoil     func(*link)
		questions int
	}{
		"it hangs for as long as is tolerated": {silent: hang + lull - reportPeriod},
		"it is silent for longer":              {silent: hang + lull, questions: 1},
		"it is lost already":                   {silent: hang + lull, spoil: func(l *link) { l.err = errSilent }},
		"its stream is reopened":               {silent: hang + lull, spoil: func(l *link) { l.session.disconnected = true }},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			l := newLink(reservation.Placement{Peer: "used"}, proc(0, 0))
			l.heardAt = now.Add(-c.silent)
			if c.spoil != nil {
				c.spoil(l)
			}
			m := &membership{j: newRun(b.submitter, b.request(1, 1)), links: []*link{l}}
			if got := len(m.unheardPeers(now, hang+lull)); got != c.questions {
				t.Errorf("%d peers are questioned, want %d", got, c.questions)
			}
		})
	}
}
