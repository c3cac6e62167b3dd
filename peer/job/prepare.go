package job

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// silenceTimeout is how long a peer may say nothing while it stages or starts.
// It reports progress far more often than this.
const silenceTimeout = 60 * time.Second

// prepare brings the job to the peers of a reservation and starts its
// processes. When it fails nothing is left of the attempt, and the peers that
// were at fault are excluded from the next.
func (j *run) prepare(ctx context.Context, reserved *reservation.Reservation) (*execution, error) {
	e := newExecution(j, reserved)
	err := e.open(ctx)
	if err == nil {
		err = e.stage(ctx)
	}
	if err == nil {
		err = e.start(ctx)
	}
	if err == nil {
		return e, nil
	}
	for _, l := range e.links {
		if l.err != nil {
			j.excluded[l.peer] = l.err
		}
	}
	e.stop("could not be started everywhere")
	e.close()
	return nil, err
}

// open puts the job's contents on offer and opens the control streams.
func (e *execution) open(ctx context.Context) error {
	var peers []p2ppeer.ID
	for _, p := range e.reserved.Placements {
		peers = append(peers, p.Peer)
		e.j.s.cfg.Host.ConnManager().Protect(p.Peer, e.tag())
	}
	e.stopServing = e.j.s.cfg.Files.Serve(e.j.spec.ID, peers, maps.Clone(e.j.local))
	for _, p := range e.reserved.Placements {
		l, err := openLink(ctx, e.j.s.cfg.Host, p.Peer, p.Processes, e.inbox, e.done)
		if err != nil {
			e.j.excluded[p.Peer] = err
			return err
		}
		e.links = append(e.links, l)
		for _, q := range p.Processes {
			e.runsOn[q] = l
		}
	}
	return nil
}

// tag names the job to the connection manager.
func (e *execution) tag() string { return "job " + e.j.spec.ID }

// stage has every peer redeem its key and fetch what it lacks.
func (e *execution) stage(ctx context.Context) error {
	e.j.phase(Staging, 0, 0)
	for i, l := range e.links {
		m := &jobpb.Prepare{Spec: e.j.envelope, Key: e.reserved.Placements[i].Key[:]}
		for _, p := range l.processes {
			m.Processes = append(m.Processes, jobpb.FromProcess(p))
		}
		l.say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Prepare{Prepare: m}})
	}
	return e.await(ctx, "stage", func(l *link, m *jobpb.FromPeer) (bool, error) {
		switch b := m.Body.(type) {
		case *jobpb.FromPeer_Staging:
			l.staged, l.total = b.Staging.Bytes, b.Staging.Total
			e.j.phase(Staging, e.sum(func(l *link) int64 { return l.staged }), e.sum(func(l *link) int64 { return l.total }))
			return false, nil
		case *jobpb.FromPeer_Prepared:
			return true, answer(b.Prepared.Error)
		}
		return false, fmt.Errorf("unexpected %T", m.Body)
	})
}

func answer(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

func (e *execution) sum(of func(*link) int64) int64 {
	var n int64
	for _, l := range e.links {
		n += of(l)
	}
	return n
}

// start gives every peer the membership table and has it start its processes.
// What the first processes say before the last is started is kept for the
// watch.
func (e *execution) start(ctx context.Context) error {
	e.j.phase(Starting, 0, 0)
	m := &jobpb.Start{View: jobpb.FromView(e.watch.View())}
	for _, l := range e.links {
		for _, p := range l.processes {
			m.Members = append(m.Members, &jobpb.Member{
				Process: jobpb.FromProcess(p), Peer: []byte(l.peer), Addrs: e.addrs(l.peer),
			})
		}
	}
	e.tell(&jobpb.ToPeer{Body: &jobpb.ToPeer_Start{Start: m}})
	err := e.await(ctx, "start on", func(l *link, m *jobpb.FromPeer) (bool, error) {
		if b, ok := m.Body.(*jobpb.FromPeer_Started); ok {
			return true, answer(b.Started.Error)
		}
		e.early = append(e.early, heard{link: l, msg: m})
		return false, nil
	})
	if err != nil {
		return err
	}
	return e.join()
}

// addrs returns the addresses by which the job's other peers can reach p.
func (e *execution) addrs(p p2ppeer.ID) [][]byte {
	var known []ma.Multiaddr
	if p == e.j.s.cfg.Host.ID() {
		known = e.j.s.cfg.Host.Addrs()
	} else {
		known = e.j.s.cfg.Host.Peerstore().Addrs(p)
	}
	var out [][]byte
	for _, a := range known {
		out = append(out, a.Bytes())
	}
	return out
}

// await has take look at what the peers say until it has been satisfied by each
// once. An error names the peer, whose link is then lost.
func (e *execution) await(ctx context.Context, what string, take func(*link, *jobpb.FromPeer) (bool, error)) error {
	satisfied := make(map[*link]bool)
	silence := time.NewTimer(silenceTimeout)
	defer silence.Stop()
	for len(satisfied) < len(e.links) {
		select {
		case h := <-e.inbox:
			silence.Reset(silenceTimeout)
			err, ok := h.err, false
			if err == nil && !satisfied[h.link] {
				ok, err = take(h.link, h.msg)
			} else if err == nil {
				e.early = append(e.early, h)
			}
			if err != nil {
				h.link.lose(err)
				return fmt.Errorf("%s %s: %w", what, h.link.peer, err)
			}
			if ok {
				satisfied[h.link] = true
			}
		case <-silence.C:
			for _, l := range e.links {
				if !satisfied[l] {
					l.lose(errLost)
				}
			}
			return fmt.Errorf("%s %d peers: no word for %v", what, len(e.links)-len(satisfied), silenceTimeout)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// firstHeartbeat is where everybody's heartbeat counter starts, so that all are
// in the same round (the seed's alignment at MPI_Init).
const firstHeartbeat = 1

// join makes the job's peers, in the order of their placements, and the
// submitter members of one group of the fault detector.
func (e *execution) join() error {
	self := -1
	for _, l := range e.links {
		if l.peer == e.j.s.cfg.Host.ID() {
			self = len(e.group)
		}
		e.group = append(e.group, l.peer)
	}
	if self < 0 {
		self = len(e.group)
		e.group = append(e.group, e.j.s.cfg.Host.ID())
	}
	group, err := e.j.s.cfg.Detector.Join(faultdetect.GroupConfig{
		Job: e.j.spec.ID, Members: e.group, Self: self,
		Period: e.j.s.cfg.Period, Offset: firstHeartbeat,
		Verdict: func(v faultdetect.Verdict) {
			select {
			case e.verdicts <- v:
			case <-e.done:
			}
		},
	})
	if err != nil {
		return fmt.Errorf("join the fault detector: %w", err)
	}
	e.detector = group
	m := &jobpb.Join{Heartbeat: firstHeartbeat, PeriodNs: int64(e.j.s.cfg.Period)}
	for _, id := range e.group {
		m.Group = append(m.Group, []byte(id))
	}
	e.tell(&jobpb.ToPeer{Body: &jobpb.ToPeer_Join{Join: m}})
	return nil
}

// tell says the same to every peer.
func (e *execution) tell(m *jobpb.ToPeer) {
	for _, l := range e.links {
		l.say(m)
	}
}
