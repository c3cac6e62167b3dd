package submit

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/job"
)

// TestS4EndInAnyPhaseReleasesEverything covers jobs that the user ends and jobs whose listener
// fails.
func TestS4EndInAnyPhaseReleasesEverything(t *testing.T) {
	b := newBed(t, never, 1, 1)
	scripts := map[Phase]func(*part){
		Discovering: nil,
		Reserving:   nil,
		Staging:     func(*part) {},
		Starting:    func(p *part) { p.prepared("") },
		Running:     func(p *part) { p.start() },
		Collecting:  func(p *part) { p.start(); p.ends(p.processes[0]) },
	}
	for phase, script := range scripts {
		for _, silent := range []bool{false, true} {
			name := string(phase) + ", cancelled"
			if silent {
				name = string(phase) + ", without a listener"
			}
			t.Run(name, func(t *testing.T) {
				req := b.in(t).request(2, 1)
				if script == nil {
					req.N = 3 // one slot more than there is
				} else {
					b.play(script)
				}
				req.Outputs, req.OutputDir = []string{"*"}, t.TempDir()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var heard int // after the error
				o := b.runUntil(ctx, req, func(e Event) error {
					switch {
					case heard > 0:
						heard++
					case e.Kind == PhaseEvent && e.Phase == phase && silent:
						heard++
						return errors.New("broken pipe")
					case e.Kind == PhaseEvent && e.Phase == phase:
						cancel()
					}
					return nil
				})
				o.want(job.StatusCancelled, "cancelled")
				if heard > 1 {
					t.Errorf("told %d events after the error", heard-1)
				}
			})
		}
	}
	b.in(t)
}

func TestS4JobTimeLimit(t *testing.T) {
	b := newBed(t, never, 1)
	b.play((*part).start)
	req := b.request(1, 1)
	req.Timeout = 300 * time.Millisecond
	b.run(req, nil).want(job.StatusTimeout, "--timeout ended the job after 300ms")
}

// TestJobEndsAlthoughAPeerDoesNotStop: the submitter stops waiting, and the peer releases its
// slots itself.
func TestJobEndsAlthoughAPeerDoesNotStop(t *testing.T) {
	b := newBed(t, never, 1, 1)
	b.submitter.waits.stop = 300 * time.Millisecond
	cases := map[string]func(*part){
		"says nothing": func(p *part) { p.started("") }, // the submitter does not ask the peer a second time
		"vanishes":     (*part).vanish,
		"goes on":      func(p *part) { p.ends(p.processes[0]) },
	}
	for name, atStop := range cases {
		t.Run(name, func(t *testing.T) {
			b.in(t).play(func(p *part) {
				if p.number == 0 {
					p.atStop = func() { atStop(p) }
				}
				p.start()
				p.ends(p.processes[0])
			})
			b.run(b.request(2, 1), nil).want(job.StatusOK, "")
		})
	}
	b.in(t)
}
