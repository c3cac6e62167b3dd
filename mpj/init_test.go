package mpj

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// The tests below start this test binary as the processes of a job, and act as their peer.

// programVariable names the program that a started test binary runs.
const programVariable = "MPJ_TEST_PROGRAM"

var programs = map[string]func() int{
	"sum":    sumProgram,
	"busy":   busyProgram,
	"abort":  abortProgram,
	"second": secondProgram,
}

// A process is a process started by a test, as seen from its peer.
type process struct {
	*exec.Cmd
	*proclink.Conn
	output *strings.Builder // standard output and standard error
}

func start(t *testing.T, program string, inherit bool) *process {
	t.Helper()
	conn, line, err := proclink.Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	p := &process{Cmd: exec.Command(os.Args[0]), Conn: conn, output: new(strings.Builder)}
	p.Env = append(os.Environ(), programVariable+"="+program, "GORACE=atexit_sleep_ms=0")
	if inherit {
		p.Env = append(p.Env, proclink.FDVariable+"=3")
		p.ExtraFiles = []*os.File{line}
	}
	p.Stdout, p.Stderr = p.output, p.output
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		p.Process.Kill()
		p.Wait()
	})
	return p
}

// expect returns the next message, which must have the given type.
func (p *process) expect(t *testing.T, want proclink.Type) proclink.Message {
	t.Helper()
	m, _, err := p.Receive()
	if err != nil || m.Type != want {
		t.Fatalf("got %q, %v; want %q\n%s", m.Type, err, want, p.output)
	}
	return m
}

func (p *process) tell(t *testing.T, m proclink.Message) {
	t.Helper()
	if err := p.Send(m, nil); err != nil {
		t.Fatal(err)
	}
}

// greet exchanges messages with p until p has called Init.
func (p *process) greet(t *testing.T, self view.Process, v view.View) {
	t.Helper()
	p.expect(t, proclink.Hello)
	p.tell(t, proclink.Message{Type: proclink.Ping, Count: 1})
	p.tell(t, proclink.Message{Type: proclink.Setup, Job: "job", Process: &self, View: &v})
	p.expect(t, proclink.Pong)
	p.expect(t, proclink.Init)
}

// status returns the exit status of p.
func (p *process) status(t *testing.T) int {
	t.Helper()
	if err := p.Wait(); err != nil && p.ProcessState == nil {
		t.Fatal(err)
	}
	return p.ProcessState.ExitCode()
}

// sumProgram adds the ranks, and then long vectors, so that channels are opened and filled.
func sumProgram() int {
	w, err := Init(context.Background())
	if err != nil {
		fmt.Println(err)
		return 1
	}
	long, sum := make([]float64, 100000), make([]float64, 100000)
	long[99999] = float64(w.Rank())
	if err := first(Allreduce(w.Comm, long, sum, Sum), w.Finalize(), w.Finalize()); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("sum", sum[99999])
	if err := Send(w.Comm, sum, 0, 0); !errors.Is(err, ErrFinalized) {
		fmt.Println("Send in a finalized world:", err)
		return 1
	}
	return 0
}

// A switchboard is the peer of all processes of a job.
type switchboard struct {
	ps map[view.Process]*process

	mu   sync.Mutex
	view view.View
}

// serve answers the requests of a process until it has finalized.
func (b *switchboard) serve(t *testing.T, self view.Process) {
	for {
		m, _, err := b.ps[self].Receive()
		switch {
		case err != nil:
			t.Errorf("control socket of %v: %v\n%s", self, err, b.ps[self].output)
			return
		case m.Type == proclink.Finalized:
			b.ps[self].Send(proclink.Message{Type: proclink.Bye}, nil)
			b.finish(self)
			return
		case m.Type == proclink.Open:
			b.connect(t, self, *m.Process)
		}
	}
}

func (b *switchboard) connect(t *testing.T, from, to view.Process) {
	out, in, err := channel.NewPipe(false)
	if err != nil {
		t.Error(err)
		return
	}
	defer out.Close()
	defer in.Close()
	b.ps[to].Send(proclink.Message{Type: proclink.Accept, Process: &from, Kind: proclink.Stream}, in)
	b.ps[from].Send(proclink.Message{Type: proclink.Channel, Process: &to, Kind: proclink.Stream}, out)
}

// finish tells all processes that p has finished.
func (b *switchboard) finish(p view.Process) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.view, _ = b.view.With(p, view.Finished)
	for _, other := range b.ps {
		other.Send(proclink.Message{Type: proclink.Update, View: &b.view}, nil)
	}
}

func TestProcessesConnectThroughTheirPeer(t *testing.T) {
	for _, v := range []view.View{view.New(1, 1), view.New(3, 1), view.New(2, 2)} {
		t.Run(fmt.Sprintf("n=%d,r=%d", v.N, v.R), func(t *testing.T) {
			b := &switchboard{ps: make(map[view.Process]*process), view: v}
			for _, self := range v.Processes() {
				b.ps[self] = start(t, "sum", true)
				b.ps[self].greet(t, self, v)
			}
			var serving sync.WaitGroup
			for self, p := range b.ps {
				p.tell(t, proclink.Message{Type: proclink.Start, View: &v})
				serving.Go(func() { b.serve(t, self) })
			}
			serving.Wait()
			want := fmt.Sprintln("sum", v.N*(v.N-1)/2)
			for self, p := range b.ps {
				if status := p.status(t); status != 0 || p.output.String() != want {
					t.Errorf("%v ended with status %d and output %q, want %q", self, status, p.output, want)
				}
			}
		})
	}
}

// busyProgram computes forever.
func busyProgram() int {
	if _, err := Init(context.Background()); err != nil {
		return 1
	}
	for i := 0; ; i++ {
		_ = i
	}
}

func TestPingIsAnsweredWhileTheProgramComputes(t *testing.T) {
	p, v := start(t, "busy", true), view.New(1, 1)
	p.greet(t, view.Process{}, v)
	p.tell(t, proclink.Message{Type: proclink.Start, View: &v})
	for i := range uint64(10) {
		p.tell(t, proclink.Message{Type: proclink.Ping, Count: i})
		if m := p.expect(t, proclink.Pong); m.Count != i {
			t.Errorf("got pong %d, want %d", m.Count, i)
		}
	}
}

func TestProcessEndsWithItsPeer(t *testing.T) {
	p, v := start(t, "busy", true), view.New(1, 1)
	p.greet(t, view.Process{}, v)
	p.tell(t, proclink.Message{Type: proclink.Start, View: &v})
	p.Close()
	if status := p.status(t); status != exitLost || !strings.Contains(p.output.String(), "the peer is gone") {
		t.Errorf("the process ended with status %d, output %q; want %d and the reason", status, p.output, exitLost)
	}
}

func abortProgram() int {
	w, err := Init(context.Background())
	if err == nil {
		w.Abort(7, "no more")
	}
	return 1
}

func TestAbortAsksThePeer(t *testing.T) {
	p, v := start(t, "abort", true), view.New(2, 1)
	p.greet(t, view.Process{Rank: 1}, v)
	p.tell(t, proclink.Message{Type: proclink.Start, View: &v})
	if m := p.expect(t, proclink.Abort); m.Code != 7 || m.Text != "no more" {
		t.Errorf("the process sent %+v, want an abort with status 7", m)
	}
}

func TestAbortOfAProgramStartedByHand(t *testing.T) {
	p := start(t, "abort", false)
	if status := p.status(t); status != 7 || !strings.Contains(p.output.String(), "no more") {
		t.Errorf("the process ended with status %d, output %q; want 7 and the reason", status, p.output)
	}
}

// secondProgram calls Init twice.
func secondProgram() int {
	if _, err := Init(context.Background()); err != nil {
		return 1
	}
	_, err := Init(context.Background())
	fmt.Println(err)
	return 0
}

func TestSecondInitIsRefused(t *testing.T) {
	p, v := start(t, "second", true), view.New(1, 1)
	p.greet(t, view.Process{}, v)
	p.tell(t, proclink.Message{Type: proclink.Start, View: &v})
	if status := p.status(t); status != 0 || !strings.Contains(p.output.String(), "joined its job already") {
		t.Errorf("the process ended with status %d, output %q", status, p.output)
	}
}

func TestProgramStartedByHandIsAWorldOfOne(t *testing.T) {
	w, err := Init(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if w.Rank() != 0 || w.Size() != 1 || w.Replica() != 0 {
		t.Errorf("rank %d of %d, replica %d", w.Rank(), w.Size(), w.Replica())
	}
	if err := w.Finalize(); err != nil {
		t.Error(err)
	}
}

func TestInitRefusesAnInvalidDescriptor(t *testing.T) {
	for _, fd := range []string{"", "x", "-1", "99999999999999999999"} {
		t.Setenv(proclink.FDVariable, fd)
		if _, err := Init(context.Background()); err == nil {
			t.Errorf("%q was accepted", fd)
		}
	}
}

func TestCancelledContextEndsBlockedCalls(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(10*time.Millisecond, cancel)
	err := RunLocal(ctx, 2, func(w *World) error {
		_, err := Recv(w.Comm, make([]int, 1), 1-w.Rank(), 0)
		return err
	})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrOther) {
		t.Errorf("RunLocal returned %v, want the end of the context", err)
	}
}
