package engine_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
)

// shared opens the one channel that each of two processes needs.
type shared struct{ sender channel.Sender }

func (s shared) Open(context.Context, view.Process) (channel.Sender, error) { return s.sender, nil }

// joinShared returns the engine of process rank of two. files are a board, the
// ring from rank 0 to 1 and that from 1 to 0.
func joinShared(rank int, files []*os.File) (*engine.Engine, error) {
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
	start := time.Now()
	e := engine.New(context.Background(), engine.Config{
		Self: view.Process{Rank: rank}, View: view.New(2, 1), Opener: shared{s}, Bell: own,
		Clock: func() time.Duration { return time.Since(start) },
	})
	e.Accept(view.Process{Rank: 1 - rank}, r)
	return e, nil
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

const partnerVariable = "ENGINE_BENCH_PARTNER"

// partner is the other process of BenchmarkTwoProcesses: it sends back what it
// gets until an empty message comes.
func partner(rounds string) error {
	e, err := joinShared(1, []*os.File{os.NewFile(3, "board"), os.NewFile(4, "ring"), os.NewFile(5, "ring")})
	if err != nil {
		return err
	}
	defer e.Close()
	size, err := strconv.Atoi(rounds)
	if err != nil {
		return err
	}
	buf := make([]byte, size)
	for {
		s, err := e.Recv(context2, 0, 0, buf)
		if err != nil {
			return err
		}
		if err := e.Send(context2, 0, 0, buf[:s.Size], engine.Standard); err != nil || s.Size == 0 {
			return err
		}
	}
}

// BenchmarkTwoProcesses takes the time of a message there and one back between
// two processes that share memory.
func BenchmarkTwoProcesses(b *testing.B) {
	for _, size := range []int{1, 1 << 10, 64 << 10, 1 << 20, 4 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			files, err := newShared()
			if err != nil {
				b.Skip(err) // not on this system
			}
			other := exec.Command(os.Args[0])
			other.Env = append(os.Environ(), partnerVariable+"="+strconv.Itoa(size))
			other.ExtraFiles, other.Stderr = files, os.Stderr
			if err := other.Start(); err != nil {
				b.Fatal(err)
			}
			defer other.Wait()
			e, err := joinShared(0, files)
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
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
		})
	}
}
