package channel

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/frame"
)

// childVariable is the environment variable with the role of a child process of these tests, and its
// number of looks at a ring before it sleeps. A child process runs this test binary.
const childVariable = "P2PMPI_TEST_SHM_CHILD"

func init() {
	role, looks, ok := strings.Cut(os.Getenv(childVariable), " ")
	if !ok {
		return
	}
	n, _ := strconv.Atoi(looks)
	e, err := inherited(n)
	if err == nil {
		err = children[role](e)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, role, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// children contains the roles of a child process.
var children = map[string]func(*pollingEnd) error{
	"echo":     echo,
	"exchange": func(e *pollingEnd) error { return exchange(e, 2) },
	"show":     show,
	"window":   receiveWindows,
}

// A pollingEnd is one side of two rings, used as the engine does: it polls, and sleeps after a
// number of looks without success.
type pollingEnd struct {
	s     *ShmSender
	r     *ShmReceiver
	bell  *Bell
	looks int

	child  *exec.Cmd
	killed bool
}

// kill kills the other process. e must be the end that startChild returned.
func (e *pollingEnd) kill(t testing.TB) {
	t.Helper()
	if err := e.child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	e.child.Wait()
	e.killed = true
}

// forever is a number of looks that is never reached, so that no side sleeps.
const forever = 1 << 30

func (e *pollingEnd) send(f frame.Frame) error {
	return e.until(func() (bool, error) { return e.s.TrySend(f) })
}

func (e *pollingEnd) receive(alloc func(frame.Header) []byte) (f frame.Frame, err error) {
	err = e.until(func() (ok bool, err error) {
		f, ok, err = e.r.TryReceive(alloc)
		return ok, err
	})
	return f, err
}

// until calls step until it is done, and sleeps in between.
func (e *pollingEnd) until(step func() (bool, error)) error {
	for {
		for range e.looks {
			if done, err := step(); done || err != nil {
				return err
			}
		}
		e.bell.Arm()
		if done, err := step(); done || err != nil {
			e.bell.Disarm()
			return err
		}
		e.bell.Sleep()
	}
}

// startChild starts a process with a role at the other end of two new rings.
func startChild(t testing.TB, role string, looks, capacity int) *pollingEnd {
	t.Helper()
	board := must(NewBoard(2))(t)
	there, back := must(NewRing(capacity))(t), must(NewRing(capacity))(t)
	child := exec.CommandContext(context.Background(), os.Args[0])
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", childVariable, role, looks))
	child.Stderr = os.Stderr
	child.ExtraFiles = []*os.File{board, there, back}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	e := must(openEnd(board, there, back, 0, looks))(t)
	e.child = child
	t.Cleanup(func() {
		e.s.Close()
		e.r.Close()
		if e.killed {
			return
		}
		if err := child.Wait(); err != nil {
			t.Errorf("other process: %v", err)
		}
	})
	return e
}

// inherited returns this process's end of the rings that startChild passed to it.
func inherited(looks int) (*pollingEnd, error) {
	return openEnd(os.NewFile(3, "board"), os.NewFile(5, "there"), os.NewFile(4, "back"), 1, looks)
}

// openEnd opens the sender of one ring and the receiver of another.
func openEnd(board, out, in *os.File, cell, looks int) (*pollingEnd, error) {
	defer board.Close()
	defer out.Close()
	defer in.Close()
	b, err := MapBoard(board)
	if err != nil {
		return nil, err
	}
	own, err := b.Bell(cell)
	if err != nil {
		return nil, err
	}
	other, err := b.Bell(1 - cell)
	if err != nil {
		return nil, err
	}
	s, err := OpenShmSender(out, own, other)
	if err != nil {
		return nil, err
	}
	r, err := OpenShmReceiver(in, own, other)
	return &pollingEnd{s: s, r: r, bell: own, looks: looks}, err
}

// echo sends back the frames that it receives.
func echo(e *pollingEnd) error {
	buffer := make([]byte, 4<<20)
	place := func(h frame.Header) []byte { return buffer[:h.Size] }
	for {
		f, err := e.receive(place)
		if err != nil {
			return err
		}
		if err := e.send(f); err != nil {
			return err
		}
	}
}

// window is the number of frames that BenchmarkShmRate sends before it waits for a reply.
const window = 64

// receiveWindows replies to every window of frames with one frame.
func receiveWindows(e *pollingEnd) error {
	buffer := make([]byte, 64<<10)
	place := func(h frame.Header) []byte { return buffer[:h.Size] }
	for {
		for range window {
			if _, err := e.receive(place); err != nil {
				return err
			}
		}
		if err := e.send(numbered(1, nil)); err != nil {
			return err
		}
	}
}

// exchange sends frames of random sizes, and receives the same number of frames. Like a progress
// loop, it makes progress on both in turn.
func exchange(e *pollingEnd, seed uint64) error {
	const frames = 250
	random := rand.New(rand.NewPCG(seed, 0))
	next := randomFrame(random, 0)
	for sent, received := 0, 0; sent < frames || received < frames; {
		err := e.until(func() (progress bool, err error) {
			if sent < frames {
				if progress, err = e.s.TrySend(next); progress {
					sent++
					next = randomFrame(random, sent)
				}
			}
			if err != nil || received == frames {
				return progress, err
			}
			f, ok, err := e.r.TryReceive(fresh)
			if ok {
				err = checkFrame(f, received)
				received++
			}
			return ok || progress, err
		})
		if err != nil {
			return fmt.Errorf("seed %d: %d sent, %d received: %w", seed, sent, received, err)
		}
	}
	return nil
}

// randomFrame returns a frame of one of the relevant sizes, with a checksum in its header.
func randomFrame(random *rand.Rand, seq int) frame.Frame {
	limits := []int{2, inlineSize + 3, 1 << 10, 1 << 14, 3 * streamStep, 1 << 19}
	limit := limits[min(random.IntN(len(limits)), random.IntN(len(limits)))]
	b := make([]byte, random.IntN(limit))
	for i := range b {
		b[i] = byte(i + seq)
	}
	f := numbered(seq, b)
	f.Context = crc32.ChecksumIEEE(b)
	return f
}

func checkFrame(f frame.Frame, seq int) error {
	if f.Seq != uint64(seq) || uint64(len(f.Payload)) != f.Size || crc32.ChecksumIEEE(f.Payload) != f.Context {
		return fmt.Errorf("frame %d arrived as %+v with checksum %x", seq, f.Header, crc32.ChecksumIEEE(f.Payload))
	}
	return nil
}

func TestShmBetweenProcesses(t *testing.T) {
	for name, looks := range map[string]int{"spinning": 2000, "sleeping": 0} {
		for _, capacity := range []int{minRing, RingCapacity} {
			t.Run(fmt.Sprintf("%s, ring of %d", name, capacity), func(t *testing.T) {
				t.Parallel() // more processes than cores
				if err := exchange(startChild(t, "exchange", looks, capacity), 1); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// BenchmarkShmPingPong reports half of a round trip between two processes.
func BenchmarkShmPingPong(b *testing.B) {
	for _, waiting := range []struct {
		name  string
		looks int
	}{{"spin", forever}, {"sleep", 0}} {
		for _, size := range []int{1, 64, 1 << 10, 64 << 10, 1 << 20, 4 << 20} {
			b.Run(fmt.Sprintf("%s/%dB", waiting.name, size), func(b *testing.B) {
				e := startChild(b, "echo", waiting.looks, RingCapacity)
				f, into := numbered(1, make([]byte, size)), make([]byte, size)
				place := func(frame.Header) []byte { return into }
				round := func() {
					if err := e.send(f); err != nil {
						b.Fatal(err)
					}
					if _, err := e.receive(place); err != nil {
						b.Fatal(err)
					}
				}
				round() // the first round touches the memory
				b.SetBytes(2 * int64(size))
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N {
					round()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/half")
			})
		}
	}
}

// BenchmarkShmRate reports the time per frame when a process sends windows of frames to another.
func BenchmarkShmRate(b *testing.B) {
	for _, size := range []int{8, 64, 512} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			e := startChild(b, "window", forever, RingCapacity)
			f := numbered(1, make([]byte, size))
			b.ReportAllocs()
			for b.Loop() {
				for range window {
					if err := e.send(f); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := e.receive(fresh); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(window*b.N), "ns/frame")
		})
	}
}
