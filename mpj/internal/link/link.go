package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// An Engine receives the messages of the peer.
type Engine interface {
	Accept(from view.Process, r channel.Receiver)
	View(v view.View)
	Reopen(to view.Process)
}

// A Link is the process's end of the control socket.
type Link struct {
	conn *proclink.Conn
	self view.Process
	view view.View // from the setup

	heal    bool // new replicas may join this process's rank later
	joining bool // this process joins its rank, which is already running

	board   *channel.Board // nil if there is no shared memory
	bell    *channel.Bell  // this process's bell on the board
	crowded bool

	identity *channel.Identity
	// Received with Start, and read only afterwards.
	places        [][2]int
	toleratedHang time.Duration

	once    sync.Once     // guards closing started
	started chan struct{} // closed when the peer has sent Start
	over    chan struct{} // closed when the control socket may end: after the peer's goodbye, or Close
	leave   sync.Once     // guards closing over
	ended   chan struct{} // closed when the reader has ended
	lost    func(error)

	mu    sync.Mutex
	opens map[view.Process]chan opened
	// Number of the latest flush, and the channel for its answer.
	flushes uint64
	flushed chan proclink.Message
}

// opened is the answer to an Open.
type opened struct {
	message proclink.Message
	file    *os.File
	err     error
}

// Dial sends hello over the inherited socket f, which it closes, and returns when the peer has sent
// the setup, which tells this process its rank and replica.
func Dial(f *os.File) (*Link, error) {
	defer f.Close()
	conn, err := proclink.FromFile(f)
	if err != nil {
		return nil, err
	}
	identity, err := channel.NewIdentity()
	if err != nil {
		conn.Close()
		return nil, err
	}
	l := &Link{
		conn: conn, identity: identity,
		started: make(chan struct{}),
		over:    make(chan struct{}),
		ended:   make(chan struct{}),
		opens:   make(map[view.Process]chan opened),
	}
	if err := l.greet(); err != nil {
		conn.Close()
		return nil, fmt.Errorf("join the job: %w", err)
	}
	return l, nil
}

func (l *Link) greet() error {
	if err := l.conn.Send(proclink.Message{Type: proclink.Hello, Version: version.Protocol}, nil); err != nil {
		return err
	}
	for {
		m, f, err := l.conn.Receive()
		switch {
		case err != nil:
			return err
		case m.Type == proclink.Setup && m.Process != nil && m.View != nil && m.View.Contains(*m.Process):
			l.self, l.view, l.crowded = *m.Process, *m.View, m.Crowded
			l.heal, l.joining = m.Heal, m.Joining
			return l.takeBoard(f, m.Cell)
		case m.Type == proclink.Ping:
			if err := l.pong(m); err != nil {
				return err
			}
		default:
			if f != nil {
				f.Close()
			}
			return fmt.Errorf("peer sent %q, want a setup message with this process's rank", m.Type)
		}
	}
}

// Self returns the rank and replica of this process.
func (l *Link) Self() view.Process { return l.self }

// View returns the view that the process starts with.
func (l *Link) View() view.View { return l.view }

// Heal reports whether new replicas may join this process's rank. The process must then keep the
// messages that it receives.
func (l *Link) Heal() bool { return l.heal }

// Joining reports whether this process joins a rank that is already running.
func (l *Link) Joining() bool { return l.joining }

// Bell returns the bell on which this process waits for events in shared memory, or nil if there is
// no shared memory.
func (l *Link) Bell() *channel.Bell { return l.bell }

// Crowded reports whether the job has more processes on this machine than there are processors.
func (l *Link) Crowded() bool { return l.crowded }

// Serve reads the control socket for e in a separate goroutine until Close. It calls lost from that
// goroutine if the control socket ends before the peer's goodbye.
func (l *Link) Serve(e Engine, lost func(error)) {
	l.lost = lost
	go l.read(e) // ends with the control socket
}

func (l *Link) read(e Engine) {
	defer close(l.ended)
	defer l.conn.CloseUnclaimed()
	for {
		m, f, err := l.conn.Receive()
		if err == nil {
			err = l.handle(e, m, f)
		}
		if err != nil {
			l.end(err)
			return
		}
	}
}

// end handles the end of the control socket.
func (l *Link) end(err error) {
	select {
	case <-l.over:
		return
	default:
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("closed by the peer")
	}
	l.lost(fmt.Errorf("control socket: %w", err))
}

func (l *Link) handle(e Engine, m proclink.Message, f *os.File) error {
	switch m.Type {
	case proclink.Ping:
		return l.pong(m)
	case proclink.Update, proclink.Start:
		if m.View == nil {
			return fmt.Errorf("%s message without a view", m.Type)
		}
		e.View(*m.View)
		if m.Type == proclink.Start {
			return l.start(m)
		}
	case proclink.Accept:
		r, err := l.receiver(m, f)
		if err != nil {
			return fmt.Errorf("channel from %v: %w", *m.Process, err)
		}
		e.Accept(*m.Process, r)
	case proclink.Channel:
		l.answer(*m.Process, opened{message: m, file: f})
	case proclink.Refused:
		if m.Process == nil {
			return fmt.Errorf("%s message without a process", m.Type)
		}
		l.answer(*m.Process, opened{err: errors.New(m.Text)})
	case proclink.Reopen:
		if m.Process == nil {
			return fmt.Errorf("%s message without a process", m.Type)
		}
		e.Reopen(*m.Process)
	case proclink.Flushed:
		l.takeFlushed(m)
	case proclink.Bye:
		l.leave.Do(func() { close(l.over) })
		return io.EOF
	default:
		return fmt.Errorf("peer sent %q, which is not a message for a process", m.Type)
	}
	return nil
}

// start handles Start. Only the first one takes effect.
func (l *Link) start(m proclink.Message) error {
	if n := len(m.Places); n != 0 && n != l.view.N {
		return fmt.Errorf("places of %d ranks in a job of %d ranks", n, l.view.N)
	}
	l.once.Do(func() {
		l.places, l.toleratedHang = m.Places, m.ToleratedHang
		close(l.started)
	})
	return nil
}

func (l *Link) pong(ping proclink.Message) error {
	return l.conn.Send(proclink.Message{Type: proclink.Pong, Count: ping.Count}, nil)
}

// Start tells the peer that the program is ready, and returns when all processes of the job are.
func (l *Link) Start(ctx context.Context) error {
	if err := l.conn.Send(proclink.Message{Type: proclink.Init, Key: l.identity.Key()}, nil); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	select {
	case <-l.started:
		return nil
	case <-l.ended:
		return errors.New("init: control socket closed")
	case <-ctx.Done():
		return fmt.Errorf("init: %w", context.Cause(ctx))
	}
}

// Places returns the location of each rank: the number of its machine, and of its cluster of nearby
// machines. The result is nil if the locations are unknown. Call Places only after Start has returned.
func (l *Link) Places() [][2]int { return l.places }

// ToleratedHang returns how long the job tolerates a silent peer. Call it only after Start has
// returned.
func (l *Link) ToleratedHang() time.Duration { return l.toleratedHang }

// Open implements channel.Opener. Only one call at a time may open a channel to a given process. If
// the key exchange over TCP fails, for instance because of a middlebox, Open asks for a stream
// instead.
func (l *Link) Open(ctx context.Context, to view.Process) (channel.Sender, error) {
	s, kind, err := l.open(ctx, to, "")
	if err != nil && kind == proclink.TCP && ctx.Err() == nil {
		s, _, err = l.open(ctx, to, proclink.Stream)
	}
	if err != nil {
		return nil, fmt.Errorf("open a channel to %v: %w", to, err)
	}
	return s, nil
}

// open asks for a channel, of the kind want unless want is empty, and returns the channel with its
// actual kind.
func (l *Link) open(ctx context.Context, to view.Process, want proclink.Kind) (channel.Sender, proclink.Kind, error) {
	answer := make(chan opened, 1)
	l.mu.Lock()
	l.opens[to] = answer
	l.mu.Unlock()
	if err := l.conn.Send(proclink.Message{Type: proclink.Open, Process: &to, Kind: want}, nil); err != nil {
		return nil, "", err
	}
	var o opened
	select {
	case o = <-answer:
	case <-l.ended:
		o.err = errors.New("control socket closed")
	case <-ctx.Done():
		l.abandon(to, answer)
		o.err = context.Cause(ctx)
	}
	if o.err != nil {
		return nil, "", o.err
	}
	s, err := l.sender(ctx, o.message, o.file)
	return s, o.message.Kind, err
}

// answer passes o to the Open that waits for it, if there is one.
func (l *Link) answer(to view.Process, o opened) {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := l.opens[to]
	delete(l.opens, to)
	switch {
	case waiting != nil:
		waiting <- o
	case o.file != nil:
		o.file.Close()
	}
}

// abandon drops an Open, and its answer if that has already arrived.
func (l *Link) abandon(to view.Process, waiting chan opened) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.opens, to)
	select {
	case o := <-waiting:
		if o.file != nil {
			o.file.Close()
		}
	default:
	}
}

// Finalize tells the peer that this process is done, with a summary of its sent messages, if known.
// It waits for the peer's goodbye.
func (l *Link) Finalize(ctx context.Context, sums []protection.Sum, summed bool) error {
	if err := l.conn.Send(proclink.Message{Type: proclink.Finalized, Summed: summed, Sums: sums}, nil); err != nil {
		return fmt.Errorf("finalize: %w", err)
	}
	select {
	case <-l.over:
	case <-l.ended: // perhaps after a goodbye
	case <-ctx.Done():
		return fmt.Errorf("finalize: %w", context.Cause(ctx))
	}
	select {
	case <-l.over:
		return nil
	default:
		return errors.New("finalize: control socket closed")
	}
}

// Abort asks the peer to end the whole job. It cuts the reason to 4 KiB. The peer then also ends
// this process.
func (l *Link) Abort(code int, reason string) error {
	const most = 4 << 10
	reason = strings.ToValidUTF8(reason[:min(len(reason), most)], "")
	return l.conn.Send(proclink.Message{Type: proclink.Abort, Code: code, Text: reason}, nil)
}

// Diverged tells the peer this process's version of a message that differs between replicas of
// its rank. If the control socket is gone, the report is not needed.
func (l *Link) Diverged(d protection.Divergence) {
	l.conn.Send(proclink.Message{Type: proclink.Diverged, Divergence: &d}, nil)
}

// Joined tells the peer that this new process has caught up with its rank, after the given number
// of messages and bytes was replayed to it.
func (l *Link) Joined(messages, bytes uint64) {
	l.conn.Send(proclink.Message{Type: proclink.Healed, Count: messages, Bytes: bytes}, nil)
}

// LogDropped tells the peer why this process no longer logs received messages. If permanent is
// false, it logs again from the program's next checkpoint.
func (l *Link) LogDropped(why string, permanent bool) {
	l.conn.Send(proclink.Message{Type: proclink.LogDropped, Text: why, Lapsed: !permanent}, nil)
}

// Ahead tells the peer that this process has long been ahead of its rank's master.
func (l *Link) Ahead() {
	l.conn.Send(proclink.Message{Type: proclink.Ahead}, nil)
}

// Stalled tells the peer that this process's rank waits for other replicas to receive an outcome.
func (l *Link) Stalled() {
	l.conn.Send(proclink.Message{Type: proclink.Stalled}, nil)
}

// UpToDate tells the peer that this process, which is set aside in the view, has caught up.
func (l *Link) UpToDate(a protection.UpToDate) {
	l.conn.Send(proclink.Message{Type: proclink.UpToDate, UpToDate: &a}, nil)
}

// Close closes the control socket, and returns when the goroutine that Serve started has ended. It
// does not call lost.
func (l *Link) Close() {
	l.leave.Do(func() { close(l.over) })
	l.conn.Close()
	<-l.ended
}
