package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine/direct"
)

// A shared opens the only channel that each of two processes needs.
type shared struct{ sender channel.Sender }

func (s shared) Open(context.Context, view.Process) (channel.Sender, error) { return s.sender, nil }

// joinShared returns a function that makes the engine of one of two processes, joined by rings.
// reading determines whether they may read each other's memory.
func joinShared(reading channel.Reading) func(rank int, files []*os.File) (*engine.Engine, error) {
	return func(rank int, files []*os.File) (*engine.Engine, error) { return joinRings(rank, files, reading) }
}

// joinRings returns the engine of one of two ranks. files are a board, the ring from rank 0 to 1 and
// the ring from 1 to 0.
func joinRings(rank int, files []*os.File, reading channel.Reading) (*engine.Engine, error) {
	board, err := channel.MapBoard(files[0])
	if err != nil {
		return nil, err
	}
	own, err := board.Bell(rank)
	if err != nil {
		return nil, err
	}
	other, err := board.Bell(1 - rank)
	if err != nil {
		return nil, err
	}
	s, err := channel.OpenShmSender(files[1+rank], own, other)
	if err != nil {
		return nil, err
	}
	r, err := channel.OpenShmReceiver(files[2-rank], own, other)
	if err != nil {
		return nil, err
	}
	r.SetReading(reading)
	start := time.Now()
	e := engine.New(context.Background(), engine.Config{
		Self: view.Process{Rank: rank}, View: view.New(2, 1), Transport: direct.New, Opener: shared{s}, Bell: own,
		Clock: func() time.Duration { return time.Since(start) },
	})
	e.Accept(view.Process{Rank: 1 - rank}, r)
	return e, nil
}

// joinSocket is like joinShared, but over socket pairs. files are the socket from rank 0 to 1 and
// the socket from 1 to 0.
func joinSocket(rank int, files []*os.File) (*engine.Engine, error) {
	out, err := channel.FromFile(files[rank])
	if err != nil {
		return nil, err
	}
	in, err := channel.FromFile(files[1-rank])
	if err != nil {
		return nil, err
	}
	start := time.Now()
	e := engine.New(context.Background(), engine.Config{
		Self: view.Process{Rank: rank}, View: view.New(2, 1), Transport: direct.New, Opener: shared{channel.NewStreamSender(out)},
		Clock: func() time.Duration { return time.Since(start) },
	})
	e.Accept(view.Process{Rank: 1 - rank}, channel.NewStreamReceiver(in))
	return e, nil
}

func newSockets() (ours, theirs []*os.File, err error) {
	for range 2 {
		a, b, err := proclink.SocketPair()
		if err != nil {
			return nil, nil, err
		}
		ours, theirs = append(ours, a), append(theirs, b)
	}
	return ours, theirs, nil
}

func openShared() (ours, theirs []*os.File, err error) {
	ours, err = newShared()
	return ours, ours, err
}

func newShared() (files []*os.File, err error) {
	for _, open := range []func() (*os.File, error){
		func() (*os.File, error) { return channel.NewBoard(2) },
		func() (*os.File, error) { return channel.NewRing(1 << 18) },
		func() (*os.File, error) { return channel.NewRing(1 << 18) },
	} {
		f, err := open()
		if err != nil {
			return files, err
		}
		files = append(files, f)
	}
	return files, nil
}

// A connection is a way to join the two processes of the benchmark.
type connection struct {
	open func() (ours, theirs []*os.File, err error)
	join func(rank int, files []*os.File) (*engine.Engine, error)
}

// joinTCP is like joinSocket, but over TCP with TLS. The two processes first exchange their keys;
// authentication does not matter here.
func joinTCP(rank int, files []*os.File) (*engine.Engine, error) {
	self, err := channel.NewIdentity()
	if err != nil {
		return nil, err
	}
	var conns [2]net.Conn
	var keys [2][]byte
	for i, f := range files[:2] {
		if conns[i], err = channel.OpenTCP(f); err != nil {
			return nil, err
		}
		keys[i] = make([]byte, channel.KeySize)
		if _, err := conns[i].Write(self.Key()); err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(conns[i], keys[i]); err != nil {
			return nil, err
		}
	}
	start := time.Now()
	opener := &later{conn: conns[rank], self: self, other: keys[rank]}
	e := engine.New(context.Background(), engine.Config{
		Self: view.Process{Rank: rank}, View: view.New(2, 1), Transport: direct.New, Opener: opener,
		Clock: func() time.Duration { return time.Since(start) },
	})
	e.Accept(view.Process{Rank: 1 - rank}, channel.OpenTCPReceiver(conns[1-rank], self, keys[1-rank]))
	return e, nil
}

// A later is an opener that opens a TCP channel on request.
type later struct {
	conn  net.Conn
	self  *channel.Identity
	other []byte
}

func (l *later) Open(ctx context.Context, _ view.Process) (channel.Sender, error) {
	return channel.OpenTCPSender(ctx, l.conn, l.self, l.other)
}

func newTCP() (ours, theirs []*os.File, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer listener.Close()
	for range 2 {
		a, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			return nil, nil, err
		}
		b, err := listener.Accept()
		if err != nil {
			return nil, nil, err
		}
		defer a.Close()
		defer b.Close()
		x, errA := a.(*net.TCPConn).File()
		y, errB := b.(*net.TCPConn).File()
		if err := errors.Join(errA, errB); err != nil {
			return nil, nil, err
		}
		ours, theirs = append(ours, x), append(theirs, y)
	}
	return ours, theirs, nil
}

var ways = map[string]connection{
	"tcp":            {newTCP, joinTCP},
	"shm":            {openShared, joinShared(channel.ReadOthers)},
	"shm-unreadable": {openShared, joinShared(channel.ReadNone)}, // like shm, where processes cannot read each other's memory
	"socket":         {newSockets, joinSocket},
}

const (
	partnerVariable = "ENGINE_BENCH_PARTNER" // name of the connection
	sizeVariable    = "ENGINE_BENCH_SIZE"
	windowVariable  = "ENGINE_BENCH_WINDOW" // number of messages before a reply
)

// partner is the other process of the benchmarks. It sends back each message, or the last of each
// window of messages, until an empty message arrives.
func partner(way string) error {
	e, err := ways[way].join(1, []*os.File{os.NewFile(3, ""), os.NewFile(4, ""), os.NewFile(5, "")})
	if err != nil {
		return err
	}
	defer e.Close()
	size, err := strconv.Atoi(os.Getenv(sizeVariable))
	if err != nil {
		return err
	}
	window, err := strconv.Atoi(os.Getenv(windowVariable))
	if err != nil {
		return err
	}
	buf, requests := make([]byte, size), make([]*engine.Request, window)
	for {
		s, err := receiveWindow(e, requests, buf)
		if err != nil {
			return err
		}
		if err := e.Send(context2, 0, 0, buf[:s.Size], engine.Standard); err != nil || s.Size == 0 {
			return err
		}
	}
}

// receiveWindow receives a message for each request, and returns the status of the last one.
func receiveWindow(e *engine.Engine, requests []*engine.Request, buf []byte) (s engine.Status, err error) {
	if len(requests) == 1 {
		return e.Recv(context2, 0, 0, buf)
	}
	for i := range requests {
		if requests[i], err = e.Irecv(context2, 0, 0, buf); err != nil {
			return s, err
		}
	}
	for _, r := range requests {
		if s, err = e.Wait(r); err != nil {
			return s, err
		}
	}
	return s, nil
}

// BenchmarkTwoProcesses measures the time of a message and its reply between two processes.
func BenchmarkTwoProcesses(b *testing.B) {
	for name := range ways {
		for _, size := range []int{1, 1 << 10, 64 << 10, 1 << 20, 4 << 20} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) { twoProcesses(b, name, size) })
		}
	}
}

func twoProcesses(b *testing.B, way string, size int) {
	e, stop := startPartner(b, way, size, 1)
	defer stop()
	buf := make([]byte, size)
	exchange := func(out []byte) {
		if err := e.Send(context2, 1, 0, out, engine.Standard); err != nil {
			b.Fatal(err)
		}
		if _, err := e.Recv(context2, 1, 0, buf); err != nil {
			b.Fatal(err)
		}
	}
	for range 100 {
		exchange(buf)
	}
	b.SetBytes(int64(2 * size))
	b.ReportAllocs()
	for b.Loop() {
		exchange(buf)
	}
	exchange(nil)
}

// startPartner starts the other process of a benchmark, and returns the engine of this process and a
// function that ends both.
func startPartner(b *testing.B, way string, size, window int) (e *engine.Engine, stop func()) {
	ours, theirs, err := ways[way].open()
	if err != nil {
		skip.Lacks(b, err)
	}
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), partnerVariable+"="+way, sizeVariable+"="+strconv.Itoa(size), windowVariable+"="+strconv.Itoa(window))
	other.ExtraFiles, other.Stderr = theirs, os.Stderr
	if err := other.Start(); err != nil {
		b.Fatal(err)
	}
	e, err = ways[way].join(0, ours)
	if err != nil {
		b.Fatal(err)
	}
	return e, func() {
		e.Close()
		other.Wait()
	}
}

// BenchmarkMessageRate measures the time per message when a process sends windows of messages and
// waits for a reply to each window.
func BenchmarkMessageRate(b *testing.B) {
	for _, name := range []string{"shm", "tcp"} {
		for _, size := range []int{8, 512} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) { messageRate(b, name, size) })
		}
	}
}

func messageRate(b *testing.B, way string, size int) {
	var requests [64]*engine.Request
	e, stop := startPartner(b, way, size, len(requests))
	defer stop()
	buf := make([]byte, size)
	exchange := func(out []byte) {
		for i := range requests {
			r, err := e.Isend(context2, 1, 0, out, engine.Standard)
			if err != nil {
				b.Fatal(err)
			}
			requests[i] = r
		}
		for _, r := range requests {
			if _, err := e.Wait(r); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := e.Recv(context2, 1, 0, buf); err != nil {
			b.Fatal(err)
		}
	}
	for range 100 {
		exchange(buf)
	}
	b.ReportAllocs()
	for b.Loop() {
		exchange(buf)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(len(requests)*b.N), "ns/message")
	exchange(nil)
}
