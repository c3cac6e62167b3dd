package job

import (
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
)

// TestR6OutputIsThereOnce lets the master of the one rank, 0.0, and its other
// replica, 0.1, say things in unlucky orders.
func TestR6OutputIsThereOnce(t *testing.T) {
	m, q := proc(0, 0), proc(0, 1)
	b := newBed(t, never, 1, 1)
	cases := map[string]struct {
		master, other func(*part)
		want          string
	}{
		"exits come before output": {
			func(p *part) { p.exits(m, Exit{}); p.until(q, view.Finished); p.writes(m, 0, "a\n"); p.closes(m, 1) },
			func(p *part) { p.exits(q, Exit{}) },
			"a\n",
		},
		"records come twice": {
			func(p *part) {
				p.writes(m, 0, "a\n", "b\n")
				p.writes(m, 1, "b\n", "c\n")
				p.closes(m, 3)
				p.exits(m, Exit{})
			},
			func(p *part) {},
			"a\nb\nc\n",
		},
		"the master is lost and the other begins at the beginning": {
			func(p *part) { p.writes(m, 0, "a\n", "b\n"); p.acknowledged(2); p.vanish() },
			func(p *part) { p.until(m, view.Failed); p.ends(q, "a\n", "b\n", "c\n") },
			"a\nb\nc\n",
		},
		"the master is lost and the other begins where the user is": {
			func(p *part) { p.writes(m, 0, "a\n", "b\n"); p.acknowledged(2); p.vanish() },
			func(p *part) {
				p.acknowledged(2)
				p.until(m, view.Failed)
				p.writes(q, 2, "c\n")
				p.closes(q, 3)
				p.exits(q, Exit{})
			},
			"a\nb\nc\n",
		},
		"the master is lost after its exit and before its output": {
			func(p *part) { p.exits(m, Exit{}); p.until(q, view.Finished); p.vanish() },
			func(p *part) { p.exits(q, Exit{}); p.until(m, view.Failed); p.writes(q, 0, "a\n"); p.closes(q, 1) },
			"a\n",
		},
		"the master is lost within a line": {
			func(p *part) { p.writes(m, 0, "a\n", "half a li"); p.acknowledged(1); p.vanish() },
			func(p *part) { p.until(m, view.Failed); p.ends(q, "a\n", "half a line\n", "rest") },
			"a\nhalf a line\nrest",
		},
		"the master is killed and its last words count": {
			func(p *part) { p.exits(m, Exit{Code: -1, Signal: "killed"}); p.writes(m, 0, "a\n"); p.closes(m, 1) },
			func(p *part) { p.until(m, view.Failed); p.ends(q, "a\n", "b\n") },
			"a\nb\n",
		},
		"the other speaks out of turn": {
			func(p *part) { p.until(q, view.Finished); p.ends(m, "a\n") },
			func(p *part) { p.ends(q, "x\n") },
			"a\n",
		},
		"the other is lost": {
			func(p *part) { p.until(q, view.Failed); p.ends(m, "a\n") },
			(*part).vanish,
			"a\n",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b.in(t).play(func(p *part) {
				p.start()
				if p.runs(m) {
					c.master(p)
				} else {
					c.other(p)
				}
			})
			o := b.run(b.request(1, 2), nil)
			o.want(StatusOK, "")
			o.wrote(0, Stdout, c.want)
		})
	}
	b.in(t)
}

// acknowledged waits until the user has count records of the part's first rank.
func (p *part) acknowledged(count uint64) {
	await(p, func(m *jobpb.ToPeer) *jobpb.Emitted {
		if e := m.GetEmitted(); e != nil && e.Stdout >= count {
			return e
		}
		return nil
	})
}

// TestPeerThatBreaksTheProtocolIsLost: and the job goes on without it.
func TestPeerThatBreaksTheProtocolIsLost(t *testing.T) {
	m, q := proc(0, 0), proc(0, 1)
	b := newBed(t, never, 1, 1)
	cases := map[string]func(*part){
		"a gap in the output":              func(p *part) { p.writes(m, 1, "b\n") },
		"an end after a gap":               func(p *part) { p.closes(m, 1) },
		"more after an unfinished line":    func(p *part) { p.writes(m, 0, "a", "b\n") },
		"output after its end":             func(p *part) { p.closes(m, 0); p.writes(m, 0, "b\n") },
		"a third stream":                   func(p *part) { p.say(outputMessage(m, 3, 0, false, "a\n")) },
		"another peer's process":           func(p *part) { p.exits(q, Exit{}) },
		"a process that is none":           func(p *part) { p.exits(proc(1<<31, 1<<31), Exit{}) },
		"output of nobody":                 func(p *part) { p.say(&jobpb.FromPeer{Body: &jobpb.FromPeer_Output{}}) },
		"files that nobody asked for":      func(p *part) { p.say(collectedMessage(m, nil, "")) },
		"an answer that is due no more":    func(p *part) { p.say(startedMessage("")) },
		"an answer that is not due yet":    func(p *part) { p.say(&jobpb.FromPeer{Body: &jobpb.FromPeer_Stopped{}}) },
		"an empty message":                 func(p *part) { p.say(&jobpb.FromPeer{}) },
		"garbage":                          func(p *part) { p.stream.Write([]byte{2, 0xff, 0xff}) },
		"more than the user can have read": nil,
	}
	for name, breach := range cases {
		t.Run(name, func(t *testing.T) {
			blocked := make(chan struct{})
			if breach == nil {
				breach = func(p *part) {
					for i := range uint64(5) {
						p.writes(m, i, strings.Repeat("x", 1<<20-1)+"\n")
					}
				}
			} else {
				close(blocked)
			}
			b.in(t).play(func(p *part) {
				p.start()
				if p.runs(m) {
					breach(p)
					return
				}
				p.until(m, view.Failed)
				if name == "more than the user can have read" {
					close(blocked)
					p.ends(q, manyLines(5)...)
					return
				}
				p.ends(q)
			})
			o := b.run(b.request(1, 2), func(e Event) error {
				if e.Kind == OutputEvent {
					<-blocked
				}
				return nil
			})
			o.want(StatusOK, "")
			if !strings.Contains(o.texts(), "broke") {
				t.Errorf("the user was told %q", o.texts())
			}
		})
	}
	b.in(t)
}

func manyLines(n int) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = strings.Repeat("x", 1<<19) + "\n"
	}
	return lines
}

// TestUserWhoDoesNotReadHoldsUpNoView: while the user sits on the first line,
// the master's peer is lost, and the other replica hears of it.
func TestUserWhoDoesNotReadHoldsUpNoView(t *testing.T) {
	m, q := proc(0, 0), proc(0, 1)
	b := newBed(t, never, 1, 1)
	reading, heard := make(chan struct{}), make(chan struct{})
	b.play(func(p *part) {
		p.start()
		if p.runs(m) {
			p.writes(m, 0, "a\n", "b\n")
			<-reading
			p.vanish()
		}
		p.until(m, view.Failed)
		close(heard)
		p.ends(q, "a\n", "b\n", "c\n")
	})
	o := b.run(b.request(1, 2), func(e Event) error {
		if string(e.Data) == "a\n" {
			close(reading)
			select {
			case <-heard:
			case <-time.After(patience):
				t.Error("the view waits for the user")
			}
		}
		return nil
	})
	o.want(StatusOK, "")
	o.wrote(0, Stdout, "a\nb\nc\n")
}
