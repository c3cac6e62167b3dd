package display

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

// State is the state of a running job, derived from its events. It is pure.
type State struct {
	phase        submit.Phase
	count, total int64
	rate, eta    float64 // bytes per second; remaining seconds
	slowest      string
	queue        submit.Queue
	view         view.View
}

// newState returns the state of a job of n ranks with r replicas that has not started yet.
func newState(n, r int) *State { return &State{view: view.New(n, r)} }

func (s *State) update(e submit.Event) {
	switch {
	case e.Kind == submit.ReplicasEvent && e.Choice != nil:
		s.view = view.New(s.view.N, e.Choice.Replicas)
	case e.Kind == submit.PhaseEvent:
		s.phase, s.count, s.total = e.Phase, e.Count, e.Total
		s.rate, s.eta, s.slowest = e.Rate, e.ETA, e.Slowest
		s.queue = submit.Queue{}
		if e.Queue != nil {
			s.queue = *e.Queue
		}
	case e.Kind == submit.ViewEvent && e.View != nil && e.View.Valid() == nil:
		s.view = *e.View
	}
}

// sentence describes the phase for a log.
func (s *State) sentence() string {
	switch s.phase {
	case submit.Reserving:
		return "reserving " + number(s.total, "slot", "slots")
	case submit.Waiting:
		return "waiting for slots: " + s.wait()
	case submit.Starting:
		return "starting " + number(int64(s.view.N*s.view.R), "process", "processes")
	}
	return cmp.Or(sentences[s.phase], string(s.phase))
}

var sentences = map[submit.Phase]string{
	submit.Downloading: "downloading input files",
	submit.Discovering: "looking for peers",
	submit.Staging:     "staging program and input files",
	submit.Running:     "running",
	submit.Collecting:  "collecting output files",
	submit.Releasing:   "releasing the slots",
}

func (s *State) wait() string {
	text := fmt.Sprintf("%d of %d free", s.count, s.total)
	if s.queue.Place > 0 {
		text += fmt.Sprintf(", place %d of %d", s.queue.Place, s.queue.Of)
	}
	return text + fmt.Sprintf(", %d s left", int(s.queue.Left.Seconds()))
}

// number formats a count with the singular or plural of its noun.
func number(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// line returns the state in at most width characters, preceded by the elapsed time.
func (s *State) line(elapsed time.Duration, width int) string {
	head := fmt.Sprintf("%d:%02d %s", int(elapsed.Minutes()), int(elapsed.Seconds())%60, s.phase)
	if s.phase == submit.Waiting {
		head += " for slots"
	}
	var tail string
	switch {
	case (s.phase == submit.Staging || s.phase == submit.Downloading) && s.total > 0:
		tail = fmt.Sprintf("%s of %s", size(s.count), size(s.total)) + s.pace()
	case s.phase == submit.Waiting:
		tail = s.wait()
	case s.phase == submit.Running:
		tail = s.ranks()
		if len([]rune(head))+len([]rune(tail))+2 > width {
			tail = s.summary()
		}
	case s.total > 0:
		tail = fmt.Sprintf("%d of %d", s.count, s.total) + s.pace()
	}
	line := []rune(strings.TrimSpace(head + "  " + tail))
	return string(line[:min(len(line), max(width, 0))])
}

// pace describes the transfer rate and the remaining time, as far as they are known.
func (s *State) pace() (text string) {
	if s.rate > 0 {
		text = "  " + size(int64(s.rate)) + "/s"
	}
	if s.eta > 0 {
		left := time.Duration(s.eta * float64(time.Second)).Round(time.Second)
		text += fmt.Sprintf("  %d:%02d left", int(left.Minutes()), int(left.Seconds())%60)
	}
	if s.slowest != "" {
		text += "  slowest " + submit.ShortPeer(s.slowest)
	}
	return text
}

// The symbols of a process's state. The master is usually the first live replica.
var signs = map[view.State]string{view.Live: "●", view.Finished: "✓", view.Failed: "✗", view.Vacant: " "}

func (s *State) ranks() string {
	var b strings.Builder
	for i := range s.view.N {
		fmt.Fprintf(&b, "  rank %d ", i)
		for k := range s.view.R {
			b.WriteString(signs[s.view.State(view.Process{Rank: i, Replica: k})])
		}
	}
	return strings.TrimSpace(b.String())
}

// summary describes a job that is too large for ranks.
func (s *State) summary() string {
	count := make(map[view.State]int)
	for _, state := range s.view.States {
		count[state]++
	}
	text := number(int64(s.view.N), "rank", "ranks")
	for _, state := range []view.State{view.Live, view.Finished, view.Failed} {
		if count[state] > 0 {
			text += fmt.Sprintf(", %s %s", number(int64(count[state]), "process", "processes"), state)
		}
	}
	return text
}

func size(bytes int64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}
