package job

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
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/internal/viewgroup"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A stage is where peers are played by a script instead of by package launch, so
// that a test says who says what when.
type stage struct {
	mu     sync.Mutex
	script func(*part)
	parts  int // played so far
	over   bool
	acting sync.WaitGroup
}

// enter counts one in who acts, unless the test is over: its stream is then refused.
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

// end waits until nobody acts any more.
func (s *stage) end() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.acting.Wait()
}

// play gives the peers of b their script for the next job. A part obeys Stop
// once the script returns, or where it waits for something else; a part whose
// stream ends is over.
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

// A part is what one peer plays in one job.
type part struct {
	*bed
	peer   *member
	number int // 0 is the first of the job to be asked to stage
	stream network.Stream
	in     pbio.Reader

	spec      *jobspec.Spec
	key       reservation.Key
	redeemed  bool
	more      []reservation.Key // of the slots of processes that were added
	processes []view.Process
	joining   *jobpb.Join
	begun     bool // its processes have left mpj.Init
	group     *faultdetect.Group
	views     *viewgroup.Group
	offered   []func()
	atStop    func()          // what it does when told to stop; nil is nothing
	kept      []*jobpb.ToPeer // said while something else was awaited
}

// What ends a script early.
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

// perform follows the script until its end or until Stop, whichever is last.
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

// leave ends a part. That the stream or the job has ended is no fault of the test's, also before the
// peer has been told what to prepare: a recruit may be found just as the job ends.
func (p *part) leave() {
	p.free()
	p.stream.Reset()
	if r := recover(); r != nil && r != any(errOver) && r != any(errStopped) {
		panic(r)
	}
}

// free leaves nothing of the job on the peer. Slots whose key was not redeemed
// are the submitter's to give back.
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
	p.stream.SetWriteDeadline(time.Now().Add(patience))
	if err := pbio.NewDelimitedWriter(p.stream).WriteMsg(m); err != nil {
		panic(errOver)
	}
}

// await returns the next message that get takes; others are kept for later.
func await[M comparable](p *part, get func(*jobpb.ToPeer) M) M {
	var none M
	for i, m := range p.kept {
		if b := get(m); b != none {
			p.kept = append(p.kept[:i:i], p.kept[i+1:]...)
			return b
		}
	}
	for {
		p.stream.SetReadDeadline(time.Now().Add(2 * patience))
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
