package submit

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-msgio/pbio"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/internal/jobspec"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A stage runs peers that follow a script instead of package launch, so that a test controls the
// order of messages.
type stage struct {
	mu     sync.Mutex
	script func(*part)
	parts  int // number played so far
	over   bool
	acting sync.WaitGroup
}

// enter counts a peer that starts to act. It refuses the stream if the test is over.
func (s *stage) enter(stream network.Stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		_ = stream.Reset()
		return false
	}
	s.acting.Add(1)
	return true
}

// begin lets peers act until the test ends, which may be one of several on this stage.
func (s *stage) begin(b *bed) {
	s.mu.Lock()
	s.over = false
	s.mu.Unlock()
	b.Cleanup(s.end)
}

// end waits until no peer acts any more.
func (s *stage) end() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.acting.Wait()
}

// play gives the peers of b their script for the next job. A part obeys Stop once the script
// returns, or while it waits for another message. A part ends when its stream ends.
func (b *bed) play(script func(*part)) {
	b.stage.begin(b)
	b.stage.mu.Lock()
	defer b.stage.mu.Unlock()
	first := b.stage.script == nil
	b.stage.script, b.stage.parts = script, 0
	if !first {
		return
	}
	for _, m := range append([]*member{b.own}, b.peers...) {
		m.SetStreamHandler(Protocol, func(s network.Stream) { b.act(m, s) })
	}
}

// A part is the role of one peer in one job.
type part struct {
	*bed
	peer   *member
	number int // order in which it was asked to stage, from 0
	stream network.Stream
	in     pbio.Reader

	spec      *jobspec.Spec
	key       reservation.Key
	redeemed  bool
	more      []reservation.Key // of the slots of processes that were added
	processes []view.Process
	joining   *jobpb.Join
	begun     bool // its processes have left mpj.Init
	initial   bool // its process was there when the job, which is resumed, began
	group     *faultdetect.Group
	views     *viewgroup.Group
	offered   []func()
	atStop    func()          // called when the part is told to stop; may be nil
	kept      []*jobpb.ToPeer // messages that arrived while the part waited for others
}

// Reasons for an early end of a script.
var (
	errOver    = errors.New("the stream has ended")
	errStopped = errors.New("the job has ended")
)

func (b *bed) act(m *member, s network.Stream) {
	if !b.stage.enter(s) {
		return
	}
	defer b.stage.acting.Done()
	p := &part{bed: b, peer: m, stream: s, in: pbio.NewDelimitedReader(s, jobpb.MaxMessage)}
	defer p.leave()
	prepare := await(p, (*jobpb.ToPeer).GetPrepare)
	b.stage.mu.Lock()
	script := b.stage.script
	p.number = b.stage.parts
	b.stage.parts++
	b.stage.mu.Unlock()
	spec, err := jobspec.Verify(prepare.Spec)
	if err != nil {
		b.Error(err)
		return
	}
	p.spec = spec
	copy(p.key[:], prepare.Key)
	for _, q := range prepare.Processes {
		p.processes = append(p.processes, q.View())
	}
	p.perform(script)
	if p.atStop != nil {
		p.atStop()
	}
	p.free()
	p.say(&jobpb.FromPeer{Body: &jobpb.FromPeer_Stopped{Stopped: &jobpb.Stopped{}}})
	s.Close()
}

// perform follows the script until its end or until Stop, whichever is later.
func (p *part) perform(script func(*part)) {
	defer func() {
		switch r := recover(); r {
		case nil:
			await(p, (*jobpb.ToPeer).GetStop)
		case any(errStopped):
		default:
			panic(r)
		}
	}()
	script(p)
}

// leave ends a part. An ended stream or job does not fail the test, even before Prepare: a recruit
// may be found just as the job ends.
func (p *part) leave() {
	p.free()
	p.stream.Reset()
	if r := recover(); r != nil && r != any(errOver) && r != any(errStopped) {
		panic(r)
	}
}

// free releases everything of the job on the peer. The submitter releases slots whose key was not
// redeemed.
func (p *part) free() {
	if p.group != nil {
		p.group.Close()
	}
	if p.views != nil {
		p.views.Close()
		p.views = nil
	}
	for _, stop := range p.offered {
		stop()
	}
	p.offered = nil
	if p.redeemed {
		p.peer.slots.Release(p.key)
	}
	for _, key := range p.more {
		p.peer.slots.Release(key)
	}
	p.more = nil
}

func (p *part) say(m *jobpb.FromPeer) {
	p.stream.SetWriteDeadline(time.Now().Add(eventTimeout))
	if err := pbio.NewDelimitedWriter(p.stream).WriteMsg(m); err != nil {
		panic(errOver)
	}
}

// await returns the next message that get accepts; it keeps others for later.
func await[M comparable](p *part, get func(*jobpb.ToPeer) M) M {
	var none M
	for i, m := range p.kept {
		if b := get(m); b != none {
			p.kept = append(p.kept[:i:i], p.kept[i+1:]...)
			return b
		}
	}
	for {
		p.stream.SetReadDeadline(time.Now().Add(2 * eventTimeout))
		m := &jobpb.ToPeer{}
		if err := p.in.ReadMsg(m); err != nil {
			panic(errOver)
		}
		if b := get(m); b != none {
			return b
		}
		if m.GetStop() != nil {
			panic(errStopped)
		}
		p.kept = append(p.kept, m)
	}
}

// until waits for a view in which process q is in a state.
func (p *part) until(q view.Process, s view.State) {
	await(p, func(m *jobpb.ToPeer) *jobpb.View {
		if v, err := m.GetView().View(); m.GetView() != nil && err == nil && v.State(q) == s {
			return m.GetView()
		}
		return nil
	})
}

// untilAll waits for a view in which all processes are in a state.
func (p *part) untilAll(s view.State) {
	await(p, func(m *jobpb.ToPeer) *jobpb.View {
		v, err := m.GetView().View()
		if m.GetView() == nil || err != nil || slices.ContainsFunc(v.Processes(), func(q view.Process) bool { return v.State(q) != s }) {
			return nil
		}
		return m.GetView()
	})
}

// vanish ends the part at once, as the end of its peer would.
func (p *part) vanish() { panic(errOver) }

func (p *part) runs(q view.Process) bool {
	for _, o := range p.processes {
		if o == q {
			return true
		}
	}
	return false
}
