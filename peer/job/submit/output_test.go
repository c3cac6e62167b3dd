package submit

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// unlucky are orders in which the peers of a rank's master and other replica send messages, with
// the output that the user should get.
var unlucky = map[string]struct {
	master, other func(*part)
	want          string
}{
	"exits come before output": {
		func(p *part) {
			p.exits(master, job.Exit{})
			p.until(other, view.Finished)
			p.writes(master, 0, "a\n")
			p.closes(master, 1)
		},
		func(p *part) { p.exits(other, job.Exit{}) },
		"a\n",
	},
	"records come twice": {
		func(p *part) {
			p.writes(master, 0, "a\n", "b\n")
			p.writes(master, 1, "b\n", "c\n")
			p.closes(master, 3)
			p.exits(master, job.Exit{})
		},
		func(p *part) { p.exits(other, job.Exit{}) },
		"a\nb\nc\n",
	},
	"the master is lost and the other begins at the beginning": {
		func(p *part) { p.writes(master, 0, "a\n", "b\n"); p.acknowledged(2); p.vanish() },
		func(p *part) { p.until(master, view.Failed); p.ends(other, "a\n", "b\n", "c\n") },
		"a\nb\nc\n",
	},
	"the master is lost and the other begins where the user is": {
		func(p *part) { p.writes(master, 0, "a\n", "b\n"); p.acknowledged(2); p.vanish() },
		func(p *part) {
			p.acknowledged(2)
			p.until(master, view.Failed)
			p.writes(other, 2, "c\n")
			p.closes(other, 3)
			p.exits(other, job.Exit{})
		},
		"a\nb\nc\n",
	},
	"the master is lost after its exit and before its output": {
		func(p *part) { p.exits(master, job.Exit{}); p.until(other, view.Finished); p.vanish() },
		func(p *part) {
			p.exits(other, job.Exit{})
			p.until(master, view.Failed)
			p.writes(other, 0, "a\n")
			p.closes(other, 1)
		},
		"a\n",
	},
	"the master is lost within a line": {
		func(p *part) { p.writes(master, 0, "a\n", "half a li"); p.acknowledged(1); p.vanish() },
		func(p *part) { p.until(master, view.Failed); p.ends(other, "a\n", "half a line\n", "rest") },
		"a\nhalf a line\nrest",
	},
	"the master is killed and its last words count": {
		func(p *part) {
			p.exits(master, job.Exit{Code: -1, Signal: "killed"})
			p.writes(master, 0, "a\n")
			p.closes(master, 1)
		},
		func(p *part) { p.until(master, view.Failed); p.ends(other, "a\n", "b\n") },
		"a\nb\n",
	},
	"output of a replica that is not the leader": {
		func(p *part) { p.ends(master, "a\n") },
		func(p *part) {
			p.writes(other, 0, "x\n")
			p.until(master, view.Finished)
			p.exits(other, job.Exit{})
		},
		"a\n",
	},
	"output before the leadership is known": { // it is the first one to finish
		func(p *part) { p.until(other, view.Finished); p.ends(master, "a\n") },
		func(p *part) { p.ends(other, "a\n") },
		"a\n",
	},
	"the other is lost": {
		func(p *part) { p.until(other, view.Failed); p.ends(master, "a\n") },
		(*part).vanish,
		"a\n",
	},
}

// The processes of a job of one rank.
var master, other = proc(0, 0), proc(0, 1)

func TestR6OutputIsShownOnce(t *testing.T) {
	b := newBed(t, never, 1, 1)
	for name, c := range unlucky {
		t.Run(name, func(t *testing.T) {
			b.in(t).play(func(p *part) {
				p.start()
				if p.runs(master) {
					c.master(p)
				} else {
					c.other(p)
				}
			})
			o := b.run(b.request(1, 2), nil)
			o.want(job.StatusOK, "")
			o.wrote(0, job.Stdout, c.want)
		})
	}
	b.in(t)
}

// TestR6UnrecordedOutputIsAcknowledgedAfterResume: the process that started the job was killed when
// the user had ten more records than were recorded. The peers have dropped these records, and the user learns which
// peer says so, since it may lie (V4).
func TestR6UnrecordedOutputIsAcknowledgedAfterResume(t *testing.T) {
	e := newHearing(t)
	var told []string
	e.j.events = Showing(func(e Event) error {
		if e.Kind == WarningEvent {
			told = append(told, e.Text)
		}
		return nil
	})
	e.outputs.resume([][2]uint64{{90, 0}, {}}, e.outputs.printed)
	e.outputs.recordLeaders(e.state.View())
	if r := e.handle(received{link: e.peers.links[0], msg: outputMessage(master, job.Stdout, 100, false, "a\n", "b\n")}); r != nil || e.peers.links[0].err != nil {
		t.Fatalf("result %v, link %v", r, e.peers.links[0].err)
	}
	e.j.events.finish()
	if r := e.shown(); r != nil {
		t.Fatal(r)
	}
	if got := e.outputs.emitted(0).GetEmitted().GetStdout(); got != 102 {
		t.Errorf("acknowledged %d records, want 102", got)
	}
	want := "lines 91 to 100 of the standard output of rank 0 are not printed: peer " + e.peers.peerOf(master)
	if len(told) != 1 || !strings.HasPrefix(told[0], want) {
		t.Errorf("the user was told %q, want %q", told, want)
	}
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

// TestPeerThatBreaksTheProtocolIsLost: the job continues without the peer.
func TestPeerThatBreaksTheProtocolIsLost(t *testing.T) {
	m, q := proc(0, 0), proc(0, 1)
	b := newBed(t, never, 1, 1)
	cases := map[string]func(*part){
		"a gap in the output":              func(p *part) { p.writes(m, 1, "b\n") },
		"an end after a gap":               func(p *part) { p.closes(m, 1) },
		"more after an unfinished line":    func(p *part) { p.writes(m, 0, "a"); p.writes(m, 1, "b\n") },
		"output after its end":             func(p *part) { p.closes(m, 0); p.writes(m, 0, "b\n") },
		"a third stream":                   func(p *part) { p.say(outputMessage(m, 3, 0, false, "a\n")) },
		"another peer's process":           func(p *part) { p.exits(q, job.Exit{}) },
		"an invalid process":               func(p *part) { p.exits(proc(1<<31, 1<<31), job.Exit{}) },
		"output without a process":         func(p *part) { p.say(&jobpb.FromPeer{Body: &jobpb.FromPeer_Output{}}) },
		"unrequested files":                func(p *part) { p.say(collectedMessage(m, nil, "")) },
		"an answer after its time":         func(p *part) { p.say(startedMessage("")) },
		"an answer before its time":        func(p *part) { p.say(&jobpb.FromPeer{Body: &jobpb.FromPeer_Stopped{}}) },
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
						p.writes(m, i*(1<<20/job.MaxRecord), strings.Repeat("x", 1<<20-1)+"\n")
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
			o.want(job.StatusOK, "")
			if !strings.Contains(o.texts(), "violated the protocol") {
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

// TestSlowReaderDoesNotDelayViews: while the user does not read the first line, the master's
// peer is lost, and the other replica gets the new view.
func TestSlowReaderDoesNotDelayViews(t *testing.T) {
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
		if strings.HasPrefix(string(e.Data), "a\n") {
			close(reading)
			select {
			case <-heard:
			case <-time.After(eventTimeout):
				t.Error("the view waits for the user")
			}
		}
		return nil
	})
	o.want(job.StatusOK, "")
	o.wrote(0, job.Stdout, "a\nb\nc\n")
}

// TestLinesOfAMessageMakeOneEvent: all lines of a message make one event, and so one
// write.
func TestLinesOfAMessageMakeOneEvent(t *testing.T) {
	m := proc(0, 0)
	b := newBed(t, never, 1)
	b.play(func(p *part) {
		p.start()
		p.ends(m, slices.Repeat([]string{"a line\n"}, 1000)...)
	})
	events := 0
	o := b.run(b.request(1, 1), func(e Event) error {
		if e.Kind == OutputEvent {
			events++
		}
		return nil
	})
	o.want(job.StatusOK, "")
	o.wrote(0, job.Stdout, strings.Repeat("a line\n", 1000))
	if events != 1 {
		t.Errorf("%d events for one message", events)
	}
}

// TestPartlyShownOutputIsCut: the event is cut at the first record that the user lacks.
func TestPartlyShownOutputIsCut(t *testing.T) {
	long := strings.Repeat("x", job.MaxRecord)
	e := outputEvent(0, job.Stdout, []byte("one\n"+long+"three\n\n"))
	e.Record, e.Records = 14, 4
	for shown, want := range map[uint64]string{10: "one\n" + long + "three\n\n", 11: long + "three\n\n", 12: "three\n\n", 13: "\n", 14: "", 99: ""} {
		rest, ok := e.After(shown)
		if ok != (want != "") || ok && (string(rest.Data) != want || rest.Record != 14 || rest.Records != 14-max(10, shown)) {
			t.Errorf("after %d: got %.20q and %d records, %v", shown, rest.Data, rest.Records, ok)
		}
	}
	tail := outputEvent(0, job.Stdout, []byte("unfinished"))
	if rest, ok := tail.After(99); !ok || string(rest.Data) != "unfinished" {
		t.Error("an unfinished line is no record, and was cut")
	}
	wrong := outputEvent(0, job.Stdout, []byte("one\n"))
	wrong.Record, wrong.Records = 14, 9 // from a peer that lies
	if rest, ok := wrong.After(12); !ok || len(rest.Data) != 0 {
		t.Errorf("got %q, %v", rest.Data, ok)
	}
}

// TestR6EarlyOutputWaitsForItsLeader: output of a replica counts once a view makes it the output
// leader, and its peer owes the rest once the user has read it.
func TestR6EarlyOutputWaitsForItsLeader(t *testing.T) {
	v := view.New(1, 2)
	o := newOutputs(v)
	early := received{msg: outputMessage(other, job.Stdout, 0, false, "a\n")}
	if event, _, err := o.add(early, other); err != nil || event != nil || len(o.takeEarly()) > 0 {
		t.Fatalf("event %v, %v; want that it waits", event, err)
	}
	v, _ = view.Change{Process: master, To: view.Failed}.Apply(v)
	o.recordLeaders(v)
	if waited := o.takeEarly(); len(waited) != 1 || len(o.takeEarly()) > 0 {
		t.Fatalf("%d messages have waited, want one, once", len(waited))
	}
	event, _, err := o.add(early, other)
	if err != nil || event == nil || string(event.Data) != "a\n" {
		t.Fatalf("event %v, %v", event, err)
	}
	if o.owes(other) {
		t.Error("the peer owes output before the user has read any")
	}
	if drained := o.shown(map[job.Source]uint64{{Rank: 0, Stream: job.Stdout}: 1}); len(drained) > 0 || !o.owes(other) || o.emitted(0).GetEmitted().GetStdout() != 1 {
		t.Errorf("drained %v; tells %v", drained, o.emitted(0))
	}
}

// TestProcessIsDrainedOnce: the user has all output of a process that has closed its streams, or, at a
// resident peer, the output waits in the queue.
func TestProcessIsDrainedOnce(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		o := newOutputs(view.New(1, 1))
		o.ahead = ahead
		for _, m := range []*jobpb.FromPeer{
			outputMessage(master, job.Stdout, 0, false, "a\n", "b\n"),
			outputMessage(master, job.Stdout, 2, true),
			outputMessage(master, job.Stderr, 0, true, "c\n"),
		} {
			if got := o.drained(0); len(got) > 0 {
				t.Errorf("%v is drained before it has closed its streams", got)
			}
			if _, _, err := o.add(received{msg: m}, master); err != nil {
				t.Fatal(err)
			}
		}
		drained := []int{len(o.drained(0))}
		for _, last := range []map[job.Source]uint64{{{Stream: job.Stdout}: 1}, {{Stream: job.Stderr}: 1}, {{Stream: job.Stdout}: 2}, {{Stream: job.Stdout}: 2}} {
			drained = append(drained, len(o.shown(last)))
		}
		if want := map[bool][]int{false: {0, 0, 0, 1, 0}, true: {1, 0, 0, 0, 0}}[ahead]; !slices.Equal(drained, want) {
			t.Errorf("ahead %t: drained %v, want %v", ahead, drained, want)
		}
	}
}

// TestR6RejectedOutputTakesNoNumber: the user gets a record of the next output leader although an earlier
// one has sent a record with the same number after the end of its output.
func TestR6RejectedOutputTakesNoNumber(t *testing.T) {
	o := newOutputs(view.New(1, 2))
	o.leaders[other] = true
	if _, _, err := o.add(received{msg: outputMessage(master, job.Stdout, 0, true)}, master); err != nil {
		t.Fatal(err)
	}
	if event, _, err := o.add(received{msg: outputMessage(master, job.Stdout, 0, false, "late\n")}, master); err == nil || event != nil {
		t.Errorf("a record after the end: %+v", event)
	}
	event, _, err := o.add(received{msg: outputMessage(other, job.Stdout, 0, false, "a\n")}, other)
	if err != nil || event == nil || string(event.Data) != "a\n" || event.Record != 1 {
		t.Errorf("event %+v, %v", event, err)
	}
}
