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

// An Engine is what the peer's news are for.
type Engine interface {
	Accept(from view.Process, r channel.Receiver)
	View(v view.View)
	Reopen(to view.Process)
}

// A Link is the process's end of the line.
type Link struct {
	conn *proclink.Conn
	self view.Process
	view view.View // of the setup

	heal    bool // others may join this process's rank later
	joining bool // this one joins its rank, which runs

	board   *channel.Board // nil: no shared memory here
	bell    *channel.Bell  // this process's on the board
	crowded bool

	identity *channel.Identity
	// Of the start; read after it.
	places [][2]int
	bears  time.Duration

	once    sync.Once     // closes started
	started chan struct{} // closed when the peer has said Start
	over    chan struct{} // closed when the line may end: the peer said goodbye, or Close
	leave   sync.Once     // closes over
	ended   chan struct{} // the reader has ended
	lost    func(error)

	mu    sync.Mutex
	opens map[view.Process]chan opened
	// Of the last Flush: its number, and where the answer goes.
	flushes uint64
	flushed chan proclink.Message
}

// opened is the answer to an Open.
type opened struct {
	message proclink.Message
	file    *os.File
	err     error
}

// Dial says hello over the inherited socket f, which it closes, and returns
// when the peer has said who this process is.
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
			return fmt.Errorf("peer says %q where it should tell this process who it is", m.Type)
		}
	}
}

// Self returns which process of the job this is.
func (l *Link) Self() view.Process { return l.self }

// View returns the view that the process starts with.
func (l *Link) View() view.View { return l.view }

// Heal reports whether new replicas may join this process's rank, so that it is to
// keep what reaches it.
func (l *Link) Heal() bool { return l.heal }

// Joining reports whether this process is new in a rank that runs.
func (l *Link) Joining() bool { return l.joining }

// Bell returns where this process sleeps until something happens in shared
// memory; nil when it has none.
func (l *Link) Bell() *channel.Bell { return l.bell }

// Crowded reports whether the job has more processes on this machine than
// there are processors.
func (l *Link) Crowded() bool { return l.crowded }

// Serve reads the line for e in a goroutine of its own, until Close. It calls
// lost, from that goroutine, when the line ends before the peer said goodbye.
func (l *Link) Serve(e Engine, lost func(error)) {
	l.lost = lost
	go l.read(e) // until the line ends
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

// end is the end of the line.
func (l *Link) end(err error) {
	select {
	case <-l.over:
		return
	default:
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the peer has closed it")
	}
	l.lost(fmt.Errorf("line to the peer: %w", err))
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
		return fmt.Errorf("peer says %q, which is not for a process", m.Type)
	}
	return nil
}

// start takes the Start, of which the first counts.
func (l *Link) start(m proclink.Message) error {
	if n := len(m.Places); n != 0 && n != l.view.N {
		return fmt.Errorf("places of %d ranks in a job of %d", n, l.view.N)
	}
	l.once.Do(func() {
		l.places, l.bears = m.Places, m.Bears
		close(l.started)
	})
	return nil
}

func (l *Link) pong(ping proclink.Message) error {
	return l.conn.Send(proclink.Message{Type: proclink.Pong, Count: ping.Count}, nil)
}

// Start tells the peer that the program is ready, and returns when all
// processes of the job are.
func (l *Link) Start(ctx context.Context) error {
	if err := l.conn.Send(proclink.Message{Type: proclink.Init, Key: l.identity.Key()}, nil); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	select {
	case <-l.started:
		return nil
	case <-l.ended:
		return errors.New("init: the line to the peer has ended")
	case <-ctx.Done():
		return fmt.Errorf("init: %w", context.Cause(ctx))
	}
}

// Places returns where the ranks run, once Start has returned: the number of the
// machine of each, and of its cluster of near machines; or nil.
func (l *Link) Places() [][2]int { return l.places }

// Bears returns for how long the job bears with a peer that is silent, once Start has returned.
func (l *Link) Bears() time.Duration { return l.bears }

// Open implements channel.Opener. For one process, one call at a time. When the
// processes cannot agree on keys over TCP, whatever stands between them, it
// asks for another way.
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

// open asks for a channel, of a kind if that is not empty, and returns what kind
// there is.
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
		o.err = errors.New("the line to the peer has ended")
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

// answer hands o to the Open that waits for it, if there is one.
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

// abandon forgets an Open, and its answer if that has come already.
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

// Finalize tells the peer that this process is done, and what it has sent in all,
// if it knows. It waits for the peer's goodbye.
func (l *Link) Finalize(ctx context.Context, sums []protection.Sum, summed bool) error {
	if err := l.conn.Send(proclink.Message{Type: proclink.Finalized, Summed: summed, Sums: sums}, nil); err != nil {
		return fmt.Errorf("finalize: %w", err)
	}
	select {
	case <-l.over:
	case <-l.ended: // perhaps with a goodbye
	case <-ctx.Done():
		return fmt.Errorf("finalize: %w", context.Cause(ctx))
	}
	select {
	case <-l.over:
		return nil
	default:
		return errors.New("finalize: the line to the peer has ended")
	}
}

// Abort asks the peer to end the whole job, of whose reason it takes a few KiB. The peer then
// ends this process too.
func (l *Link) Abort(code int, reason string) error {
	const most = 4 << 10
	reason = strings.ToValidUTF8(reason[:min(len(reason), most)], "")
	return l.conn.Send(proclink.Message{Type: proclink.Abort, Code: code, Text: reason}, nil)
}

// Diverged tells the peer what this process has produced as a message that not all
// replicas of its rank have produced alike. When the line is gone nobody needs it.
func (l *Link) Diverged(d protection.Divergence) {
	l.conn.Send(proclink.Message{Type: proclink.Diverged, Divergence: &d}, nil)
}

// Joined tells the peer that this process, which is new, does what its rank does,
// after it was given so many messages anew.
func (l *Link) Joined(messages, bytes uint64) {
	l.conn.Send(proclink.Message{Type: proclink.Healed, Count: messages, Bytes: bytes}, nil)
}

// Unkept tells the peer why this process no longer keeps what reaches it, for good or
// until the program's next checkpoint.
func (l *Link) Unkept(why string, forGood bool) {
	l.conn.Send(proclink.Message{Type: proclink.Unkept, Text: why, Lapsed: !forGood}, nil)
}

// Ahead tells the peer that this process has long been ahead of its rank's master.
func (l *Link) Ahead() {
	l.conn.Send(proclink.Message{Type: proclink.Ahead}, nil)
}

// Stalled tells the peer that this process's rank waits for other replicas to receive an outcome.
func (l *Link) Stalled() {
	l.conn.Send(proclink.Message{Type: proclink.Stalled}, nil)
}

// UpToDate tells the peer that this process, which is set aside, lacks nothing any more.
func (l *Link) UpToDate(a protection.UpToDate) {
	l.conn.Send(proclink.Message{Type: proclink.UpToDate, UpToDate: &a}, nil)
}

// Close ends the line, and returns when its goroutine has ended. It counts as
// a goodbye: lost is not called.
func (l *Link) Close() {
	l.leave.Do(func() { close(l.over) })
	l.conn.Close()
	<-l.ended
}
