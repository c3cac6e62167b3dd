package mpj

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// outcomes runs program as the ranks of a world, and returns the result of each rank. It returns an
// error if the ranks do not end in time.
func outcomes(shape localworld.Config, program func(*World) error) ([]error, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	errs := make([]error, shape.Ranks)
	err := runIn(localworld.New(ctx, shape), func(w *World) error {
		err := program(w)
		if w.Replica() == 0 {
			errs[w.Rank()] = err
		}
		return nil
	})
	if ctx.Err() != nil {
		return errs, fmt.Errorf("a rank still waits: %w", err)
	}
	return errs, nil
}

// TestFailedCollectiveEndsAtAllRanks makes one rank pass a length that differs from the length of
// the others, with every algorithm. All ranks must get an error, in that call or in the next call.
func TestFailedCollectiveEndsAtAllRanks(t *testing.T) {
	skip.Long(t)
	all := subjects[int64](Sum, Prod)
	for k, forced := range forcedInTurn() {
		t.Setenv(collectiveVariable, forced)
		for i, s := range all {
			n := 2 + (i+k)%4
			odd := i % n
			errs, err := outcomes(localworld.Config{Ranks: n, Replicas: 1}, func(w *World) error {
				return first(s.call(w.Comm, asked{count: either(w.Rank() == odd, 5, 3)}), Barrier(w.Comm))
			})
			where := fmt.Sprintf("%s, n=%d, rank %d is odd, %s", s.name, n, odd, forced)
			if err != nil {
				t.Fatalf("%s: %v: %v", where, err, errs)
			}
			if isImmediate(s.name) || strings.HasPrefix(s.name, "Neighbor") { // Barrier uses another context
				continue
			}
			for rank, err := range errs {
				if err == nil || !showsLengths(err) {
					t.Errorf("%s: rank %d got %v", where, rank, err)
				}
			}
		}
	}
}

// TestCollectiveOfDifferentLengthsEndsAtAllRanks uses four ranks, one of which may choose a
// different algorithm because of its length. Ranks that send long messages to a failed rank must not
// wait. The test also covers replicas.
func TestCollectiveOfDifferentLengthsEndsAtAllRanks(t *testing.T) {
	cases := []struct {
		name string
		call func(c *Comm, odd bool) error
	}{
		{"Bcast of 8 and 16 bytes", func(c *Comm, odd bool) error { return Bcast(c, make([]byte, either(odd, 16, 8)), 0) }},
		{"Bcast of 8 bytes and 1 MB", func(c *Comm, odd bool) error { return Bcast(c, make([]byte, either(odd, 1<<20, 8)), 0) }},
		{"Bcast of 1 MB and 8 bytes", func(c *Comm, odd bool) error { return Bcast(c, make([]byte, either(odd, 8, 1<<20)), 0) }},
		{"Allreduce of 16 bytes and 8 MB", func(c *Comm, odd bool) error {
			return Allreduce(c, nil, make([]int64, either(odd, 1<<20, 2)), Sum)
		}},
		{"Allreduce of 8 MB and 16 bytes", func(c *Comm, odd bool) error {
			return Allreduce(c, nil, make([]int64, either(odd, 2, 1<<20)), Sum)
		}},
		{"Gather of 1 MB and 8 bytes", func(c *Comm, odd bool) error {
			mine := make([]byte, either(odd, 8, 1<<20))
			return Gather(c, mine, make([]byte, c.Size()*len(mine)), 0)
		}},
		{"Reduce of 1 MB and 8 bytes", func(c *Comm, odd bool) error {
			mine := make([]byte, either(odd, 8, 1<<20))
			return Reduce(c, mine, make([]byte, len(mine)), Sum, 0)
		}},
		{"Alltoall of 1 MB and 8 bytes", func(c *Comm, odd bool) error {
			send := make([]byte, c.Size()*either(odd, 8, 1<<20))
			return Alltoall(c, send, make([]byte, len(send)))
		}},
	}
	for i, c := range cases {
		for _, shape := range []localworld.Config{{Ranks: 4, Replicas: 1}, {Ranks: 4, Replicas: 1, Rings: true}, {Ranks: 4, Replicas: 2}} {
			for _, odd := range []int{i % 2, 2 + i%2} {
				errs, err := outcomes(shape, func(w *World) error { return first(c.call(w.Comm, w.Rank() == odd), Barrier(w.Comm)) })
				if err != nil {
					t.Fatalf("%s, %+v, odd is rank %d: %v: %v", c.name, shape, odd, err, errs)
				}
				for rank, err := range errs {
					if err == nil || !showsLengths(err) && !errors.Is(err, ErrComm) {
						t.Errorf("%s, odd is rank %d: rank %d got %v", c.name, odd, rank, err)
					}
				}
			}
		}
	}
}

func either[T any](condition bool, a, b T) T {
	if condition {
		return a
	}
	return b
}

// TestFailedCollectiveNamesTheFirst checks that the errors of other ranks name the first failed
// rank, with its reason. A duplicate of the failed communicator and point-to-point messages must
// still work.
func TestFailedCollectiveNamesTheFirst(t *testing.T) {
	errs, err := outcomes(localworld.Config{Ranks: 4, Replicas: 1}, func(w *World) error {
		err := Bcast(w.Comm, make([]byte, either(w.Rank() == 2, 16, 8)), 0)
		if err == nil && w.Rank() >= 2 { // rank 3 receives from rank 2
			t.Errorf("rank %d: Bcast returns %v", w.Rank(), err)
		}
		err = first(err, Barrier(w.Comm))
		again, dupErr := w.Dup()
		if dupErr != nil {
			t.Errorf("rank %d: %v", w.Rank(), dupErr)
			return err
		}
		if err := works(again, numbers(0, 1, again.Size())...); err != nil {
			t.Errorf("rank %d: %v", w.Rank(), err)
		}
		if later := Barrier(w.Comm); !errors.Is(later, ErrCount) {
			t.Errorf("rank %d: the next Barrier returns %v", w.Rank(), later)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	const reason = "rank 0 sent 8 bytes where rank 2 expects 16"
	for rank, err := range errs {
		says := "bcast with root 0 has failed at rank 2: " + reason
		if rank == 2 {
			says = reason
		}
		if !errors.Is(err, ErrCount) || !strings.Contains(err.Error(), says) {
			t.Errorf("rank %d: got %v, want %s", rank, err, says)
		}
	}
}

// TestFinalizeReportsACollectiveThatFailedAtAnotherRank checks that a rank that already has its data
// gets the error of a failed rank in Finalize, with the reason: the ranks pass different lengths.
func TestFinalizeReportsACollectiveThatFailedAtAnotherRank(t *testing.T) {
	calls := []struct {
		failed int // rank at which the call fails; the other has its data
		call   func(w *World) error
		class  Class
		says   string
	}{
		{1, func(w *World) error { return Bcast(w.Comm, make([]byte, 8+8*w.Rank()), 0) },
			ErrCount, "bcast with root 0 has failed at rank 1: rank 0 sent 8 bytes where rank 1 expects 16"},
		{0, func(w *World) error { return Gather(w.Comm, make([]byte, 8+8*w.Rank()), make([]byte, 16), 0) },
			ErrTruncate, "gather with root 0 has failed at rank 0: rank 1 sent 16 bytes where rank 0 expects 8"},
		{0, func(w *World) error {
			return Reduce(w.Comm, make([]int64, 1+w.Rank()), make([]int64, 1+w.Rank()), Sum, 0)
		}, ErrTruncate, "reduce with root 0 has failed at rank 0: rank 1 sent 16 bytes where rank 0 expects 8"},
	}
	for _, c := range calls {
		for _, shape := range []localworld.Config{{Replicas: 1}, {Replicas: 1, Sockets: true}, {Replicas: 2}, {Replicas: 2, Sockets: true}} {
			shape.Ranks = 2
			says := fmt.Sprintf("mpj.Finalize at rank %d: %v: in communicator \"world\" %s", 1-c.failed, c.class, c.says)
			_, err := outcomes(shape, func(w *World) error {
				err := c.call(w)
				if w.Rank() == c.failed { // the failure notice is sent before this message
					return first(Send(w.Comm, []byte{1}, 1-c.failed, 0), err)
				}
				_, received := Recv(w.Comm, make([]byte, 1), c.failed, 0)
				err = first(err, received, w.Finalize())
				// The other replica may already have ended the job with that error.
				if err == nil || !strings.HasSuffix(err.Error(), says) {
					t.Errorf("%+v: got %q, want %s", shape, err, says)
				}
				return nil
			})
			if err != nil {
				t.Errorf("%+v: %v", shape, err)
			}
		}
	}
}

// TestDifferentCollectivesEndAtAllRanks makes one rank call Allreduce while the others call Bcast,
// get their data, and finalize. The rank that calls Allreduce must get an error even without
// P2PMPI_CHECK.
func TestDifferentCollectivesEndAtAllRanks(t *testing.T) {
	for _, shape := range []localworld.Config{{Replicas: 1}, {Replicas: 1, Rings: true}, {Replicas: 1, Sockets: true}, {Replicas: 2}, {Replicas: 2, Sockets: true}} {
		for shape.Ranks = 2; shape.Ranks <= 5; shape.Ranks++ {
			for root := range shape.Ranks {
				odd := (root + 1) % shape.Ranks // no rank receives the broadcast from this rank
				var others sync.WaitGroup
				others.Add((shape.Ranks - 1) * shape.Replicas)
				errs, err := outcomes(shape, func(w *World) error {
					if w.Rank() == odd {
						others.Wait()
						return Allreduce(w.Comm, []int{1}, make([]int, 1), Sum)
					}
					defer others.Done()
					return first(Bcast(w.Comm, []int{1}, root), w.Finalize())
				})
				// The error comes from the message of the other call, or from the end of the other
				// rank.
				if why := fmt.Sprint(errs[odd]); err != nil || !strings.Contains(why, "calls bcast") && !strings.Contains(why, "has finalized") {
					t.Errorf("%+v, root %d: %v, %q", shape, root, err, errs)
				}
			}
		}
	}
}

// TestCollectiveWithAFinalizedRankFails checks that calls that would wait forever for a finalized
// rank fail with an error that names the cause.
func TestCollectiveWithAFinalizedRankFails(t *testing.T) {
	calls := []struct {
		name string
		call func(w *World) error
	}{
		{"Recv", func(w *World) error { _, err := Recv(w.Comm, make([]byte, 1), 0, 7); return err }},
		{"Probe", func(w *World) error { _, err := Probe(w.Comm, 0, 7); return err }},
		{"Mprobe", func(w *World) error { _, _, err := Mprobe(w.Comm, 0, 7); return err }},
		{"Scatter", func(w *World) error { return Scatter(w.Comm, nil, make([]byte, 3), 0) }},
		{"Bcast", func(w *World) error { return Bcast(w.Comm, make([]byte, 3), 0) }},
		{"Ibcast", func(w *World) error {
			r, err := Ibcast(w.Comm, make([]int, 1), 0)
			if err != nil {
				return err
			}
			_, err = r.Wait()
			return err
		}},
		{"Waitany", func(w *World) error {
			r, err := Irecv(w.Comm, make([]byte, 1), 0, 7)
			if err != nil {
				return err
			}
			_, _, err = Waitany(r)
			return err
		}},
		{"a wildcard before", func(w *World) error {
			any, err := Irecv(w.Comm, make([]byte, 1), AnySource, 5)
			if err != nil {
				return err
			}
			named, err := Irecv(w.Comm, make([]byte, 1), 0, 5)
			if err != nil {
				return err
			}
			if _, err := any.Wait(); err != nil { // takes the message of rank 0
				return fmt.Errorf("the wildcard: %w", err)
			}
			_, err = named.Wait()
			return err
		}},
	}
	for _, c := range calls {
		for _, shape := range []localworld.Config{{Replicas: 1}, {Replicas: 1, Rings: true}, {Replicas: 1, Sockets: true}, {Replicas: 2}, {Replicas: 2, Sockets: true}} {
			shape.Ranks = 2
			errs, err := outcomes(shape, func(w *World) error {
				if w.Rank() == 0 {
					return first(Send(w.Comm, []byte{1}, 1, 5), w.Finalize())
				}
				err := c.call(w)
				if c.name != "a wildcard before" {
					if _, err := Recv(w.Comm, make([]byte, 1), 0, 5); err != nil {
						t.Errorf("%s, %+v: a message that was sent before: %v", c.name, shape, err)
					}
				}
				return err
			})
			const says = "rank 0 of the world has finalized"
			if err != nil || errs[0] != nil || errs[1] == nil || !strings.Contains(errs[1].Error(), says) {
				t.Errorf("%s, %+v: %v, %q, want %s", c.name, shape, err, errs, says)
			}
		}
	}
}

// TestNeighbourhoodIsUsableAfterAnError checks that neighbourhood collectives work after blocks of
// an unexpected length: no data of the failed call remains in the program's buffers or in transit.
func TestNeighbourhoodIsUsableAfterAnError(t *testing.T) {
	inEveryShape(t, func(w *World) error {
		g, err := w.CartCreate([]int{w.Size()}, []bool{true}, false)
		if err != nil {
			return err
		}
		odd := w.Size() - 1
		recv := make([]int, either(g.Rank() == odd, 4, 2))
		err = NeighborAllgather(g, make([]int, len(recv)/2), recv)
		if touched := w.Size() > 1 && (g.Rank() == odd || g.Rank() == 0 || g.Rank() == odd-1); (err != nil) != touched {
			return fmt.Errorf("a block of a different length: %w", err)
		}
		before := slices.Clone(recv)
		right := make([]int, 2)
		err = NeighborAllgather(g, []int{g.Rank()}, right)
		below, above := (g.Rank()+odd)%w.Size(), (g.Rank()+1)%w.Size()
		return first(err, want("NeighborAllgather", right, []int{below, above}), want("the buffer of the call that failed", recv, before))
	})
}
