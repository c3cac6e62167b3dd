//go:build !wasip1

package mpj

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
	"github.com/p2pmpi/p2pmpi/mpj/internal/deadlock"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
)

// With P2PMPI_CHECK=1 and without replicas, deadlocked ranks get an error. Rank 0 repeatedly asks
// all ranks for the events that their goroutines wait for; package deadlock judges the answers.
//
//	rank 0                        every other rank
//	  |---- ask ------------------->|
//	  |<--- state ------------------|  once per round
//	  |---- deadlock, and report -->|  a deadlocked rank fails all its calls
//	  |---- over ------------------>|  after all ranks have finalized
//
// The messages use a separate context, and the engine does not count them. The detection needs rank
// 0 until all ranks have finalized, so Finalize waits for all ranks.

// The kinds of messages from rank 0, stored in the first byte.
const (
	askState     byte = 's'
	tellDeadlock byte = 'd' // followed by the report
	tellOver     byte = 'o'
)

const (
	// askPause is the time between two rounds. The detection of a deadlock takes two or three
	// rounds; a shorter pause would disturb ranks that compute.
	askPause = 200 * time.Millisecond
	// When rank 0 has finalized, it asks at once. The following pauses double, from twice askSoon
	// up to askPause.
	askSoon = time.Millisecond
	// partingPause is the time for acknowledgements of the last messages before an engine stops.
	partingPause = 50 * time.Millisecond
	// dumpSize bounds the goroutine dump of a process that is examined, in bytes. A process with a
	// longer dump counts as running.
	dumpSize = 4 << 20
	// stateSize bounds the state received from another rank, in bytes.
	stateSize = 4 << 20
)

// A detector is one rank's part in deadlock detection.
type detector struct {
	world *World
	root  uint64   // ancestor of all goroutines of this rank; 0 means all goroutines of the process
	slept []uint64 // numbers of the waits at the last look

	ended chan struct{} // closed when this rank sends no more messages
	over  chan struct{} // closed when the search is over; never at a deadlocked rank other than 0
}

// detect starts the search for deadlocks. It ends with the engine at the latest.
func (w *World) detect(root uint64) {
	if w.engine().Replicated() {
		if w.Rank() == 0 && w.replica == 0 {
			fmt.Fprintf(os.Stderr, "mpj: %s checks arguments; deadlocks are detected only without replicas\n", checkVariable)
		}
		return
	}
	w.detector = &detector{world: w, root: root, ended: make(chan struct{}), over: make(chan struct{})}
	w.engine().Go(w.detector.run)
}

// await waits until all ranks have called Finalize. Finalize calls it once.
func (d *detector) await() {
	close(d.ended)
	select {
	case <-d.over:
	case <-d.world.engine().Context().Done():
	}
}

func (d *detector) run() {
	if d.world.Rank() == 0 {
		d.ask()
	} else {
		d.answer()
	}
}

func (d *detector) context() uint32 { return d.world.context(detectorSlot) }

// answer answers rank 0's messages at all other ranks.
func (d *detector) answer() {
	e := d.world.engine()
	for {
		b, err := e.RecvUncounted(d.context(), 0)
		switch {
		case err != nil || len(b) == 0:
			return
		case b[0] == askState:
			state, err := json.Marshal(d.state())
			if err != nil || e.SendUncounted(d.context(), 0, state) != nil {
				return
			}
		case b[0] == tellDeadlock:
			if e.SendUncounted(d.context(), 0, nil) == nil {
				d.pause(partingPause)
			}
			e.Fail(&core.DeadlockError{Report: string(b[1:])})
			return
		default:
			close(d.over)
			return
		}
	}
}

// ask runs the search at rank 0.
func (d *detector) ask() {
	wait, ended := askPause, d.ended
	var before []deadlock.State
	for {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ended:
			ended, wait = nil, askSoon
		case <-d.world.engine().Context().Done():
			timer.Stop()
			return
		}
		timer.Stop()
		states, err := d.round()
		if err != nil {
			return
		}
		if stuck := deadlock.Find(before, states); len(stuck) > 0 || allEnded(states) {
			d.finish(stuck, states)
			return
		}
		before = states
		wait = min(2*wait, askPause)
	}
}

func allEnded(states []deadlock.State) bool {
	for _, s := range states {
		if !s.Ended {
			return false
		}
	}
	return true
}

// round asks all ranks for their states.
func (d *detector) round() ([]deadlock.State, error) {
	e, n := d.world.engine(), d.world.Size()
	for rank := 1; rank < n; rank++ {
		if err := e.SendUncounted(d.context(), rank, []byte{askState}); err != nil {
			return nil, err
		}
	}
	states := make([]deadlock.State, n)
	for rank := 1; rank < n; rank++ {
		b, err := e.RecvUncounted(d.context(), rank)
		if err != nil {
			return nil, err
		}
		if states[rank], err = parseState(b); err != nil {
			return nil, fmt.Errorf("state of rank %d: %w", rank, err)
		}
	}
	states[0] = d.state()
	return states, nil
}

func parseState(b []byte) (s deadlock.State, err error) {
	if len(b) > stateSize {
		return s, fmt.Errorf("%d bytes, at most %d are allowed", len(b), stateSize)
	}
	return s, json.Unmarshal(b, &s)
}

// finish sends the report to the deadlocked ranks, and tells all others that the search is over.
func (d *detector) finish(stuck []int, states []deadlock.State) {
	e := d.world.engine()
	isStuck := make([]bool, len(states))
	for _, rank := range stuck {
		isStuck[rank] = true
	}
	report := reportOf(isStuck, states)
	for rank := 1; rank < len(states); rank++ {
		tidings := []byte{tellOver}
		if isStuck[rank] {
			tidings = append([]byte{tellDeadlock}, report...)
		}
		if e.SendUncounted(d.context(), rank, tidings) != nil {
			return
		}
	}
	for rank, s := range isStuck[1:] {
		if s {
			if _, err := e.RecvUncounted(d.context(), rank+1); err != nil {
				return
			}
		}
	}
	if isStuck[0] {
		d.pause(partingPause)
		e.Fail(&core.DeadlockError{Report: report})
	}
	close(d.over)
}

// pause waits for the given time, or until the engine stops.
func (d *detector) pause(long time.Duration) {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.world.engine().Context().Done():
	}
}

// state returns what this rank waits for, as an answer to rank 0.
func (d *detector) state() deadlock.State {
	select {
	case <-d.ended:
		w := d.world.engine().Waiting()
		return deadlock.State{Ended: true, Sent: w.Sent, Received: w.Received}
	default:
	}
	w, slept := d.look()
	idle := w.Known && len(slept) > 0 && slices.Equal(slept, d.slept) && d.goroutinesIdle()
	d.slept = slept
	if !idle {
		return deadlock.State{}
	}
	w, slept = d.look() // look again: no waiting goroutine may have been woken meanwhile
	s := deadlock.State{Idle: w.Known && slices.Equal(slept, d.slept), Sent: w.Sent, Received: w.Received}
	for _, c := range w.Calls {
		text, ranks := d.world.describe(c)
		s.Waits = append(s.Waits, deadlock.Wait{Number: c.Number, For: ranks, Text: text})
	}
	return s
}

// look returns the calls in which goroutines wait, and the numbers of these waits.
func (d *detector) look() (engineapi.Waiting, []uint64) {
	w := d.world.engine().Waiting()
	numbers := make([]uint64, len(w.Calls))
	for i, c := range w.Calls {
		numbers[i] = c.Number
	}
	return w, numbers
}

// goroutinesIdle reports whether no goroutine of this rank can proceed by itself.
func (d *detector) goroutinesIdle() bool {
	dump := make([]byte, 64<<10)
	for {
		n := runtime.Stack(dump, true)
		if n < len(dump) {
			return deadlock.Idle(dump[:n], d.root)
		}
		if len(dump) >= dumpSize {
			return false
		}
		dump = make([]byte, 4*len(dump))
	}
}

// currentGoroutine returns the number of the calling goroutine.
func currentGoroutine() uint64 {
	own := make([]byte, 64)
	return deadlock.Current(own[:runtime.Stack(own, false)])
}
