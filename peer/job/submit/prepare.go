package submit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// A startup brings a job to its peers and starts its processes.
type startup struct {
	j         *run
	peers     *membership
	detection *detectorGroup
	views     *viewGroup
	view      view.View // first view of the job

	keptAliveAt time.Time  // time of the last message to peers that wait for the start
	early       []received // messages that arrived before the last peer had started
}

// prepare brings the job to the peers and starts its processes. After an error, the links of the
// peers that were at fault have an error.
func (u *startup) prepare(ctx context.Context) error {
	for _, step := range []func(context.Context) error{u.open, u.stage, u.start} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return u.join()
}

// open opens the control streams.
func (u *startup) open(ctx context.Context) error {
	errs := make([]error, len(u.peers.links))
	var opening sync.WaitGroup
	for i, l := range u.peers.links {
		opening.Go(func() { errs[i] = l.open(ctx, u.j.s.cfg.Host, u.peers.inbox) })
	}
	opening.Wait()
	for i, l := range u.peers.links {
		if errs[i] != nil {
			l.lose(errs[i])
		}
	}
	return u.peers.fault("open a control stream to")
}

// stage asks every peer to redeem its reservation key and to fetch the files that it lacks.
func (u *startup) stage(ctx context.Context) error {
	u.j.phase(Staging, 0, 0)
	u.peers.reopens = true
	u.j.s.setPartners(u.j.spec.ID, u.peers.partners())
	defer func() {
		u.peers.reopens = false
		u.j.s.setPartners(u.j.spec.ID, nil) // until it has begun
	}()
	for i, l := range u.peers.links {
		m := &jobpb.Prepare{Spec: u.j.envelope, Key: l.slots.Key[:], Fellows: u.fellows(i)}
		for _, p := range l.processes {
			m.Processes = append(m.Processes, jobpb.FromProcess(p))
		}
		l.send(&jobpb.ToPeer{Body: &jobpb.ToPeer_Prepare{Prepare: m}})
		l.probeAddresses(u.j.s.cfg.Host)
	}
	t := &transfer{run: u.j, phase: Staging}
	return u.await(ctx, "stage the job at", func(h received) error { return u.handleStaging(h, t) })
}

// fellows returns the peers that share fetched contents with the peer of a link, so that the
// submitter sends each file about once. For peers at the submitter's site, the submitter is as near
// as the fellows.
func (u *startup) fellows(link int) (fellows []*jobpb.Fellow) {
	sites, local := u.peers.sites, u.peers.local
	for _, i := range sharers(link, sites, local) {
		p := u.peers.links[i].peer
		fellows = append(fellows, &jobpb.Fellow{Peer: []byte(p), Addrs: u.peers.addrs(p), Near: sites[i] == sites[link] && !local[link]})
	}
	return fellows
}

func (u *startup) handleStaging(h received, t *transfer) error {
	l := h.link
	switch b := h.msg.Body.(type) {
	case *jobpb.FromPeer_Staging:
		if !l.progress.answered { // a later report only shows that the peer is connected
			l.progress.staged, l.progress.total = clampBytes(b.Staging.Bytes), clampBytes(b.Staging.Total)
			l.progress.advance(u.j.contents(), time.Now())
			u.keepAlive()
			u.showStaging(l, t)
		}
		return nil
	case *jobpb.FromPeer_Prepared:
		if !l.progress.answered {
			l.redeemed = b.Prepared.Error == ""
			l.reported.machine = string(b.Prepared.Machine[:min(len(b.Prepared.Machine), maxMachine)])
			return l.progress.answer(b.Prepared.Error)
		}
	}
	return unexpected(h.msg)
}

// A progress is what a peer has done to stage and start the job.
type progress struct {
	answered      bool      // it has answered the last request: to stage, or to start
	quiet         bool      // the user knows that it is silent
	staged, total int64     // in bytes
	counted       int64     // value of staged at the last progress
	at            time.Time // time of the last progress, or of the request
	pace          pace      // rate of staging
	early         int       // bytes received before the job was running
}

// advance records that a peer has made progress in staging if it has staged another thousandth of
// the job's contents. So a peer that reports single bytes cannot delay the job for long.
func (p *progress) advance(contents int64, now time.Time) {
	staged := min(p.staged, contents)
	if staged >= p.counted+max(contents/1000, 1) {
		p.counted, p.at = staged, now
	}
}

// answer records that a peer has answered; text is empty or an error.
func (p *progress) answer(text string) error {
	p.answered = true
	if text == "" {
		return nil
	}
	return errors.New(plain(text))
}

// keepAlivePeriod is how often peers that wait for the start are told that other peers still stage.
const keepAlivePeriod = 20 * time.Second

// keepAlive tells the peers that wait for the start that the submitter is alive, after a report of a
// peer that still stages. The message is an empty Emitted, which carries no news.
func (u *startup) keepAlive() {
	if time.Since(u.keptAliveAt) >= keepAlivePeriod {
		u.keptAliveAt = time.Now()
		u.peers.broadcast(&jobpb.ToPeer{Body: &jobpb.ToPeer_Emitted{Emitted: &jobpb.Emitted{}}})
	}
}

// showStaging shows the user the progress of staging, and the slowest peer.
func (u *startup) showStaging(l *link, t *transfer) {
	now := time.Now()
	l.progress.pace.take(now, l.progress.staged)
	var sum Event
	for _, l := range u.peers.links {
		sum.Count, sum.Total = sum.Count+l.progress.staged, sum.Total+l.progress.total
		left := l.progress.pace.left(l.progress.total)
		if l.progress.staged < l.progress.total && l.progress.pace.stalled() {
			left = math.Inf(1)
		}
		if left > sum.ETA {
			sum.ETA, sum.Slowest = left, l.peer.String()
		}
	}
	if math.IsInf(sum.ETA, 1) { // unknown
		sum.ETA = 0
	}
	t.pace.take(now, sum.Count)
	sum.Rate = t.pace.rate()
	t.tell(now, sum)
}

// maxMachine limits the length of a machine's name, in bytes.
const maxMachine = 64

// clampBytes limits a number of bytes reported by a peer, so that sums do not overflow.
func clampBytes(n int64) int64 { return min(max(n, 0), 1<<46) }

func unexpected(m *jobpb.FromPeer) error {
	return fmt.Errorf("protocol violation: unexpected %T", m.Body)
}

// start sends every peer the membership table and asks it to start its processes.
func (u *startup) start(ctx context.Context) error {
	u.j.phase(Starting, 0, 0)
	u.views.number(u.detection.membersOf(u.peers.links))
	if err := u.j.keeper.writePeers(u.peers); err != nil {
		u.j.stopKeeping(err)
	}
	u.j.until, _ = ctx.Deadline()
	m := u.j.startMessage(u.view)
	m.Explain = u.j.req.Explain
	for _, l := range u.peers.links {
		for _, p := range l.processes {
			m.Members = append(m.Members, u.peers.row(l, p))
		}
	}
	u.peers.broadcast(&jobpb.ToPeer{Body: &jobpb.ToPeer_Start{Start: m}})
	return u.await(ctx, "start the job at", u.handleStarting)
}

// handleStarting queues the messages of processes that run before the last one is started. Until then
// the job may have to start again elsewhere.
func (u *startup) handleStarting(h received) error {
	l := h.link
	if b, ok := h.msg.Body.(*jobpb.FromPeer_Started); ok && !l.progress.answered {
		l.reported.distances = make(map[p2ppeer.ID]time.Duration)
		for _, d := range b.Started.Distances[:min(len(b.Started.Distances), jobpb.MaxMeasured)] {
			l.reported.distances[p2ppeer.ID(d.Peer)] = time.Duration(d.RoundTripUs) * time.Microsecond
		}
		return l.progress.answer(b.Started.Error)
	}
	if !l.progress.answered {
		if h.msg.GetStaging() != nil { // it shows that the peer is connected
			return nil
		}
		return unexpected(h.msg)
	}
	if l.progress.early += weight(h.msg); l.progress.early > len(l.processes)*maxEarly {
		return fmt.Errorf("protocol violation: %d bytes before the job was running", l.progress.early)
	}
	u.early = append(u.early, h)
	return nil
}

// join makes the job's peers and the submitter's peer members of one detector group, and some of
// them voters of the view group.
func (u *startup) join() error {
	if err := u.detection.form(u.peers.links); err != nil {
		return err
	}
	m := u.detection.joinMessage(u.detection.members...)
	var err error
	if m.GetJoin().Views, err = u.views.join(u.detection.members, u.view); err != nil {
		return err
	}
	u.peers.broadcast(m)
	for _, l := range u.peers.links {
		l.heardAt = u.detection.formed
	}
	return nil
}
