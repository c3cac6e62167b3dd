package mpj

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// divergenceReports collects the reports of processes on messages that differ between replicas.
type divergenceReports struct {
	mu     sync.Mutex
	said   map[view.Process][]protection.Divergence
	want   int           // number of processes that must report
	enough chan struct{} // closed when that many have reported
}

func listen(want int) *divergenceReports {
	return &divergenceReports{said: make(map[view.Process][]protection.Divergence), want: want, enough: make(chan struct{})}
}

// await returns after enough reports, so that no process ends earlier.
func (w *divergenceReports) await() error {
	select {
	case <-w.enough:
		return nil
	case <-time.After(time.Minute):
		return fmt.Errorf("fewer than %d processes have reported", w.want)
	}
}

func (w *divergenceReports) record(p view.Process, d protection.Divergence) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said[p] = append(w.said[p], d)
	if len(w.said) == w.want && len(w.said[p]) == 1 {
		close(w.enough)
	}
}

// about returns the processes that report a difference between a received message and the one that
// they have produced, and the processes that report that the two are equal. It fails the test if a
// report is not about message seq.
func (w *divergenceReports) about(t *testing.T, seq uint64) (differing, agreeing []view.Process) {
	for p, ds := range w.said {
		for _, d := range ds {
			if d.Seq != seq {
				t.Errorf("%v reports message %d, want %d: %v", p, d.Seq, seq, d)
			}
			list := &agreeing
			if d.Differs() {
				list = &differing
			}
			if !slices.Contains(*list, p) {
				*list = append(*list, p)
			}
		}
	}
	order := func(a, b view.Process) int { return a.Replica - b.Replica }
	slices.SortFunc(differing, order)
	slices.SortFunc(agreeing, order)
	return differing, agreeing
}

// oddMessage is the number of the message that differs between replicas in the tests below. It is
// not the first message.
const oddMessage = 7

// sendRow makes rank 0 send a sequence of messages to rank 1, and wait for a reply to each.
func sendRow(w *World, message func(i int) (value []int, tag int)) error {
	for i := 1; i <= 2*oddMessage; i++ {
		value, tag := message(i)
		if w.Rank() == 1 {
			if _, err := Recv(w.Comm, make([]int, 9), 0, AnyTag); err != nil {
				return err
			}
			if err := Send(w.Comm, []int{i}, 0, 0); err != nil {
				return err
			}
			continue
		}
		if err := Send(w.Comm, value, 1, tag); err != nil {
			return err
		}
		if _, err := Recv(w.Comm, make([]int, 1), 1, 0); err != nil {
			return err
		}
	}
	return nil
}

// TestDivergenceIsFoundInTheFirstDifferentMessage makes one replica of rank 0 send a message that
// differs from the message of the others.
func TestDivergenceIsFoundInTheFirstDifferentMessage(t *testing.T) {
	odd := map[string]func() (value []int, tag int){
		"value":  func() ([]int, int) { return []int{-1}, oddMessage % 3 },
		"length": func() ([]int, int) { return []int{oddMessage, 0}, oddMessage % 3 },
		"tag":    func() ([]int, int) { return []int{oddMessage}, 9 },
	}
	for name, other := range odd {
		for _, replicas := range []int{2, 3} {
			for odd := range replicas {
				t.Run(name, func(t *testing.T) {
					reports := listen([]int{2: 1, 3: 3}[replicas]) // with two replicas, the other replica is not asked
					job := localworld.New(context.Background(), localworld.Config{Ranks: 2, Replicas: replicas, Sockets: true, Diverged: reports.record})
					err := runIn(job, func(w *World) error {
						err := sendRow(w, func(i int) ([]int, int) {
							if i == oddMessage && w.Replica() == odd && w.Rank() == 0 {
								return other()
							}
							return []int{i}, i % 3
						})
						return first(err, reports.await())
					})
					if err != nil {
						t.Fatal(err)
					}
					reports.check(t, replicas, odd)
				})
			}
		}
	}
}

// check compares the reports with the expected ones if replica odd of rank 0 has sent a different
// message. The receivers have the master's message, so the other replicas differ if odd is the
// master.
func (w *divergenceReports) check(t *testing.T, replicas, odd int) {
	var differ, agree []view.Process
	for k := range replicas {
		p := view.Process{Replica: k}
		switch {
		case (k == odd) != (odd == 0):
			differ = append(differ, p)
		case replicas > 2: // with two replicas, the other replica is not asked
			agree = append(agree, p)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	differing, agreeing := w.about(t, oddMessage)
	if !slices.Equal(differing, differ) || !slices.Equal(agreeing, agree) {
		t.Errorf("differ: %v, agree: %v; want %v and %v", differing, agreeing, differ, agree)
	}
}

// A liar is a sender that changes one message in transit.
type liar struct {
	channel.Sender
	seq uint64
}

// Send implements channel.Sender.
func (l liar) Send(frames ...frame.Frame) error {
	frames = slices.Clone(frames)
	for i, f := range frames {
		if f.Kind == frame.Data && f.Seq == l.seq {
			frames[i].Payload = slices.Clone(f.Payload)
			frames[i].Payload[0] ^= 1
		}
	}
	return l.Sender.Send(frames...)
}

// TestChangedMessageIsFound makes the channel from 0.0 to 1.1 change a message. All replicas of
// rank 0 must report that 1.1 received a different message.
func TestChangedMessageIsFound(t *testing.T) {
	for _, replicas := range []int{2, 3} {
		reports := listen(replicas)
		job := localworld.New(context.Background(), localworld.Config{
			Ranks: 2, Replicas: replicas, Sockets: true, Diverged: reports.record,
			Wrap: func(from, to view.Process, s channel.Sender) channel.Sender {
				if from == (view.Process{}) && to == (view.Process{Rank: 1, Replica: 1}) {
					return liar{s, oddMessage}
				}
				return s
			},
		})
		err := runIn(job, func(w *World) error {
			return first(sendRow(w, func(i int) ([]int, int) { return []int{i}, 0 }), reports.await())
		})
		if err != nil {
			t.Fatal(err)
		}
		reports.mu.Lock()
		if differing, _ := reports.about(t, oddMessage); len(differing) != replicas {
			t.Errorf("r=%d: %v report a difference, want all", replicas, differing)
		}
		for p, ds := range reports.said {
			for _, d := range ds {
				if d.Receiver != (view.Process{Rank: 1, Replica: 1}) {
					t.Errorf("r=%d: %v reports a difference from %v", replicas, p, d)
				}
			}
		}
		reports.mu.Unlock()
	}
}

// TestDivergenceOfAnUnreceivedMessageEndsAJob checks that a difference that no other rank receives is
// found when the replicas have finished.
func TestDivergenceOfAnUnreceivedMessageEndsAJob(t *testing.T) {
	tests := map[string]func(w *World, odd bool) error{
		"no last message": func(w *World, odd bool) error {
			if w.Rank() == 1 {
				return last(Recv(w.Comm, make([]int, 1), 0, 0))
			}
			if odd {
				return nil
			}
			return Send(w.Comm, []int{1}, 1, 0)
		},
		"an additional last message": func(w *World, odd bool) error {
			if odd {
				return Send(w.Comm, []int{1}, 1, 0)
			}
			return nil
		},
		"a message to itself": func(w *World, odd bool) error {
			value := []int{1}
			if odd {
				value[0]++
			}
			r, err := Irecv(w.Comm, make([]int, 1), w.Rank(), 0)
			return first(err, Send(w.Comm, value, w.Rank(), 0), last(r.Wait()))
		},
	}
	for name, program := range tests {
		for replica := range 2 {
			t.Run(fmt.Sprint(name, ", replica ", replica), func(t *testing.T) {
				job := localworld.New(context.Background(), localworld.Config{Ranks: 2, Replicas: 2, Sockets: true})
				var gone sync.WaitGroup // waits for the replicas of rank 0 to end, before rank 1 finds unreceived messages
				gone.Add(2)
				err := runIn(job, func(w *World) error {
					err := program(w, w.Rank() == 0 && w.Replica() == replica)
					if w.Rank() == 1 {
						gone.Wait()
						return err
					}
					defer gone.Done()
					return first(err, w.Finalize())
				})
				if err == nil || !strings.Contains(err.Error(), "of rank 0 has diverged: it sent") {
					t.Errorf("RunLocal returned %v, want a report of the divergence", err)
				}
			})
		}
	}
}

// TestDivergenceEndsAJobInOneProcess checks that a replica that sends a different message is found
// whatever call sends the message. It covers collectives and a message that is sent in many blocks.
func TestDivergenceEndsAJobInOneProcess(t *testing.T) {
	calls := map[string]func(w *World, odd int) error{
		"Allreduce": func(w *World, odd int) error {
			return Allreduce(w.Comm, []int{w.Rank() + odd}, make([]int, 1), Sum)
		},
		"Ibcast": func(w *World, odd int) error {
			r, err := Ibcast(w.Comm, []int{odd}, 0)
			return first(err, last(r.Wait()))
		},
		"long Ssend": func(w *World, odd int) error {
			long := make([]int, 1<<17)
			if w.Rank() == 0 {
				long[len(long)-2] = odd
				return Ssend(w.Comm, long, 1, 0)
			}
			return last(Recv(w.Comm, long, 0, 0))
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			job := localworld.New(context.Background(), localworld.Config{Ranks: 2, Replicas: 2, Sockets: true})
			err := runIn(job, func(w *World) error {
				odd := 0
				if w.Rank() == 0 {
					odd = w.Replica()
				}
				if err := call(w, odd); err != nil {
					return err
				}
				return w.Finalize()
			})
			if err == nil || !strings.Contains(err.Error(), "of rank 0 has diverged: message 1 to rank 1") {
				t.Errorf("RunLocal returned %v, want a report of the divergence", err)
			}
		})
	}
}

// A late is a sender that acts as a slow link: frames arrive some time after Send has accepted them.
type late struct {
	channel.Sender
	taken chan []frame.Frame
	close func()
}

func newLate(s channel.Sender) *late {
	l := &late{Sender: s, taken: make(chan []frame.Frame, 64)}
	l.close = sync.OnceFunc(func() { close(l.taken) })
	go func() { // ends with Close
		defer s.Close()
		for frames := range l.taken {
			time.Sleep(20 * time.Millisecond) // the delay of a slow channel
			s.Send(frames...)
		}
	}()
	return l
}

func (l *late) Send(frames ...frame.Frame) error {
	frames = slices.Clone(frames)
	for i, f := range frames {
		frames[i].Payload = slices.Clone(f.Payload)
	}
	l.taken <- frames
	return nil
}

func (l *late) Close() error {
	l.close()
	return nil
}

// TestDivergenceIsFoundOverASlowLink checks that a receiver finishes only when the sender's replicas
// have its acknowledgements, however slow the link to them is. These replicas compare no messages
// with a process that has finished.
func TestDivergenceIsFoundOverASlowLink(t *testing.T) {
	for replica := range 2 { // replica of rank 0 that sends a different message
		job := localworld.New(t.Context(), localworld.Config{
			Ranks: 2, Replicas: 2, Sockets: true,
			Wrap: func(_, to view.Process, s channel.Sender) channel.Sender {
				if to.Rank == 0 {
					return newLate(s)
				}
				return s
			},
		})
		err := runIn(job, func(w *World) error {
			value := make([]int, 1)
			if w.Rank() == 0 {
				value[0] = w.Replica() ^ replica
			}
			return Bcast(w.Comm, value, 0)
		})
		if err == nil || !strings.Contains(err.Error(), "of rank 0 has diverged: message 1 to rank 1") {
			t.Errorf("replica %d: %v", replica, err)
		}
	}
}
