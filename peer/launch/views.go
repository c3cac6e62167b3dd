package launch

import (
	"errors"
	"fmt"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup"
)

var errCutOff = errors.New("cut off from the majority of the job's peers")

// A viewsState holds a job's view, and what the job knows of its view group.
type viewsState struct {
	current          view.View
	group            *viewgroup.Group // nil: the submitter alone makes the views
	ahead            view.View        // newer view whose joining process is not in the membership table yet; epoch 0: none
	partitionedSince time.Time        // time since which the group's majority is out of reach; zero: it is not
}

// votes reports whether a peer is a voter of the group.
func (s *viewsState) votes(peer p2ppeer.ID) bool { return s.group != nil && s.group.Votes(peer) }

// voting reports whether the other members may lack a majority without this peer, which is self.
func (s *viewsState) voting(self p2ppeer.ID) bool {
	return s.votes(self) && s.group.Contact() != viewgroup.CutOff
}

// leaveViews ends this peer's part in the view group. It may be a voter, and the submitter may be lost at the same
// time. The group therefore continues without the job until the other peers do not need this peer's vote, unless the
// submitter has ended the job here.
func (j *job) leaveViews() {
	switch g := j.views.group; {
	case g == nil:
	case j.presence.asked || errors.Is(j.ended, errOver):
		g.Close()
	default:
		g.Leave()
	}
}

// partitioned reports whether the majority has been out of reach for as long as a silent peer is tolerated. It
// reports that once.
func (s *viewsState) partitioned(hang time.Duration, now time.Time) bool {
	if s.partitionedSince.IsZero() || now.Sub(s.partitionedSince) < hang {
		return false
	}
	s.partitionedSince = time.Time{}
	return true
}

// contact records whether this peer is in contact with the majority of the view group. It ends the job if a
// member of the group has told different peers different views: no peer can tell which of them others have.
func (j *job) contact(c viewgroup.Contact) {
	if err := j.views.group.Err(); err != nil {
		j.refuse(outside(err.Error()), err)
		return
	}
	j.views.partitionedSince = time.Time{}
	if c == viewgroup.CutOff {
		j.views.partitionedSince = time.Now()
	}
}

// checkPartition ends a job that has been cut off for as long as a silent peer is tolerated. Until then
// nothing changes here (V2), and the majority does not fail this peer either.
func (j *job) checkPartition() {
	if j.views.partitioned(j.detection.hang, time.Now()) {
		j.cutOff()
	}
}

// cutOff ends the job (V2), unless all its processes here have ended and this peer only keeps their output.
func (j *job) cutOff() {
	if !j.keeping.outputOnly {
		j.end(errCutOff)
	}
}

// firstGroup returns the view group of which this peer is a member from the start. order lists the group's
// members by their indices in the fault detector's group.
func firstGroup(order []uint32, watched []p2ppeer.ID, v view.View, peerOf map[view.Process]p2ppeer.ID) (viewgroup.GroupConfig, error) {
	c := viewgroup.GroupConfig{View: v, RunsOn: make(map[view.Process]int)}
	index := make(map[p2ppeer.ID]int)
	for i, member := range order {
		if int(member) >= len(watched) {
			return c, fmt.Errorf("view group: peer %d refers to member %d of %d", i, member, len(watched))
		}
		index[watched[member]] = i
		c.Peers = append(c.Peers, watched[member])
	}
	c.First = len(c.Peers)
	for p, id := range peerOf {
		if i, ok := index[id]; ok {
			c.RunsOn[p] = i
		}
	}
	return c, nil
}

// laterGroup returns the view group of a job with n ranks and r replicas, of which this peer becomes a member
// later. It receives all changes since the job's first view.
func laterGroup(m *jobpb.Agree, n, r int) (viewgroup.GroupConfig, error) {
	c := viewgroup.GroupConfig{First: int(m.First), View: view.New(n, r), RunsOn: make(map[view.Process]int)}
	for i, b := range m.Peers {
		id, err := p2ppeer.IDFromBytes(b)
		if err != nil {
			return c, fmt.Errorf("view group: peer %d: %w", i, err)
		}
		c.Peers = append(c.Peers, id)
	}
	ps := c.View.Processes()
	if len(m.RunsOn) != len(ps) {
		return c, errOrder(m)
	}
	for i, p := range ps {
		c.RunsOn[p] = int(m.RunsOn[i])
	}
	return c, nil
}

// agree makes this peer, which joined later, a member of the job's view group.
func (j *job) agree(m *jobpb.Agree) error {
	if !j.admission.joining {
		return errOrder(m)
	}
	c, err := laterGroup(m, j.spec.N, j.spec.R)
	if err != nil {
		return err
	}
	return j.vote(c)
}

// vote joins the view group that c describes, after setting the fields that all callers share.
func (j *job) vote(c viewgroup.GroupConfig) error {
	if j.views.group != nil {
		return errors.New("it is already a member of the view group")
	}
	if len(c.Peers) == 0 || c.Peers[0] != j.submitter {
		return errors.New("view group: the submitter's peer is not the first")
	}
	c.Job, c.Members = j.spec.ID, viewgroup.Members(c.First)
	for i, id := range c.Peers {
		if id == j.service.host.ID() {
			c.Self = i // its last index, if it was in the job before
		}
	}
	c.Committed = func(_ []viewgroup.Committed, v view.View) { j.do(func() { j.take(v) }) }
	c.Came = func(n viewgroup.Newcomer) { j.do(func() { j.handleNewcomer(n) }) }
	c.Contact = func(c viewgroup.Contact) { j.do(func() { j.contact(c) }) }
	var err error
	j.views.group, err = j.service.config.Views.Join(c)
	return err
}

// handleNewcomer handles the row of a joining process from the view group. The submitter sends it too, if
// it can. A peer that joined later also receives the rows of processes that failed earlier; handleNewcomer
// ignores those.
func (j *job) handleNewcomer(n viewgroup.Newcomer) {
	if j.views.current.State(n.Process) == view.Failed {
		return
	}
	var row jobpb.Member
	err := proto.Unmarshal(n.Row, &row)
	if err == nil {
		err = j.joined(&row)
	}
	if err != nil {
		j.end(fmt.Errorf("join of process %v: %w", n.Process, err))
	}
}

// adopt handles a view that the submitter sends.
func (j *job) adopt(m *jobpb.View) error {
	v, err := m.View()
	if err != nil {
		return err
	}
	if v.N != j.spec.N || v.R < j.spec.R {
		return fmt.Errorf("view with n=%d r=%d of a job with n=%d r=%d", v.N, v.R, j.spec.N, j.spec.R)
	}
	j.take(v)
	return nil
}

// take adopts a view if it is newer. Processes are told of it, a process that has failed in it is killed
// (R5) and its channels are closed, and a process that becomes its rank's output leader sends its output.
// The view may come from the submitter or from the view group, which agree on the contents of each epoch.
func (j *job) take(v view.View) {
	if v.Epoch <= j.views.current.Epoch {
		return
	}
	if !hasRows(v, j.spec.R, j.board.Table().PeerOf) && !j.presence.silent() {
		j.views.ahead = v // the row has yet to arrive
		return
	}
	j.views.current = v
	j.log.Debug().Uint64("epoch", v.Epoch).Msg("view")
	for _, id := range j.here.order {
		j.here.local[id].adopt(v)
	}
	j.board.SetView(v)
}

// hasRows reports whether the membership table contains the peer of each process that has joined in v. The
// view may arrive from the group before the row arrives from the submitter. r is the number of replicas at the
// start.
func hasRows(v view.View, r int, peerOf map[view.Process]p2ppeer.ID) bool {
	for rank := range v.N {
		for k := r; k < v.R; k++ {
			p := view.Process{Rank: rank, Replica: k}
			if _, ok := peerOf[p]; !ok && v.Has(p) {
				return false
			}
		}
	}
	return true
}

// join makes this peer a member of the job's fault detection group, or of a later generation of it. If this
// peer is the submitter, it is already a member.
func (j *job) join(m *jobpb.Join) error {
	before := j.detection.group
	if before != nil && m.Generation > 0 && m.Generation == j.detection.generation {
		return nil // repeated, since it might have been lost
	}
	if before != nil && m.Generation <= j.detection.generation {
		return errOrder(m)
	}
	if j.submitter == j.service.host.ID() {
		j.tolerate(time.Duration(m.HangNs))
		return nil
	}
	name := jobpb.GroupAgain(j.spec.ID, m.Generation)
	if j.admission.joining && before == nil { // its own group, with the submitter
		name = jobpb.GroupOf(j.spec.ID, j.here.order[0])
	}
	group, err := watchGroup(m, name, j.service.host.ID(), j.submitter)
	if err != nil {
		return err
	}
	group.Verdict = func(v faultdetect.Verdict) {
		if v.State == faultdetect.Failed {
			j.do(func() { j.peerFailed(group.Members[v.Member], m.Generation) })
		}
	}
	detector, err := j.service.config.Detector.Join(group)
	if err != nil {
		return err
	}
	if before == nil && !j.admission.joining {
		j.detection.reportsUntil = time.Now().Add(reportsFor)
	}
	if before != nil {
		j.running.Go(before.Close) // it may be about to deliver a verdict, which waits for this goroutine
	}
	j.detection.enter(detector, m.Generation, group.Members)
	j.presence.joined(time.Now())
	j.tolerate(group.Hang)
	if len(m.Views) == 0 {
		return nil
	}
	c, err := firstGroup(m.Views, group.Members, j.views.current, j.board.Table().PeerOf)
	if err != nil {
		return err
	}
	return j.vote(c)
}

// tolerate sets how long the job tolerates silence of its peers.
func (j *job) tolerate(hang time.Duration) {
	j.detection.hang = hang
	j.liveness.tolerate(hang, j.spec.R)
}

// peerFailed handles the fault detector's verdict that a peer has failed. If the peer is the submitter, it
// may only be cut off. In a job with a view group it may come back; any other job ends.
func (j *job) peerFailed(peer p2ppeer.ID, generation uint32) {
	if generation != j.detection.generation {
		return
	}
	if peer == j.submitter {
		if j.views.group == nil {
			j.end(errSubmitterFailed)
			return
		}
		j.submitterSilent()
	}
	j.detection.failed[peer] = true
	j.send(suspect([]byte(peer), generation))
}
