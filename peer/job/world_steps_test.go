package job

import (
	"fmt"
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A step is an event of a world: of a host, of a request, or of the job.
type step struct {
	action        *action
	host, request int // -1: of none
}

// An action is a kind of step.
type action struct {
	name  string
	class class
	can   func(w *world, h *host, i int) bool
	do    func(w *world, h *host, i int) error
}

// A class determines when a step happens.
type class byte

const (
	fault    class = iota // perhaps never
	progress              // eventually
	program               // eventually, but perhaps only after all steps of class progress
	waiting               // after all other steps, except faults and steps of programs
)

// hostActions are the events at a host.
var hostActions = []action{
	{"calls mpj.Init", program, func(w *world, h *host, _ int) bool { return h.runs() && !h.called && !h.joining && !w.plain }, call},
	{"calls mpj.Init at a new peer", progress, func(w *world, h *host, _ int) bool { return h.runs() && !h.called && h.joining }, call},
	{"gets Begin", progress, func(w *world, h *host, _ int) bool {
		return w.hears(h) && h.runs() && h.called && !h.began && w.sub.state.Begun() && w.sub.state.View().Live(h.p)
	}, func(_ *world, h *host, _ int) error {
		h.began = true
		return nil
	}},
	{"catches up", progress, func(w *world, h *host, _ int) bool { return h.runs() && h.began && h.behind && w.donor(h) },
		func(_ *world, h *host, _ int) error {
			h.behind = false
			h.say(message{kind: saysHealed})
			return nil
		}},
	{"ends, since no replica is left to catch up with", progress, func(w *world, h *host, _ int) bool {
		return h.runs() && h.began && h.behind && !w.donor(h)
	}, func(_ *world, h *host, _ int) error {
		h.ends(&Exit{Code: 1, Initialized: true})
		return nil
	}},
	{"writes a line", program, func(w *world, h *host, _ int) bool { return w.computes(h) && h.written < len(text) },
		func(_ *world, h *host, _ int) error {
			h.written++
			return nil
		}},
	{"ends", program, func(w *world, h *host, _ int) bool { return w.computes(h) && h.written == len(text) },
		func(w *world, h *host, _ int) error {
			if w.aborts {
				h.say(message{kind: saysAborted})
				h.ends(&Exit{Code: -1, Signal: "killed", Reason: "has called Abort", Initialized: true})
				return nil
			}
			h.ends(&Exit{Initialized: !w.plain, Finalized: !w.plain})
			h.say(message{kind: saysAccount})
			return nil
		}},
	{"is heard", progress, func(w *world, h *host, _ int) bool { return w.hears(h) && h.heard < len(h.said) && w.ready(h) }, (*world).hear},
	{"delivers output", progress, func(w *world, h *host, i int) bool {
		return w.hears(h) && h.spoke && w.sub.leaders[i] && !h.ended && h.heard >= h.expected && (h.isHeard(saysExited) || len(h.output(h.sent)) > 0)
	}, (*world).deliver},
	{"has its output read", progress, func(w *world, h *host, i int) bool { return w.sub != nil && h.ended && !w.sub.drained[i] },
		func(w *world, h *host, i int) error {
			w.sub.drained[i] = true
			return w.follow(Drained{h.p})
		}},
	{"learns which output the user has", fault, func(w *world, h *host, _ int) bool {
		return w.hears(h) && w.allowed.breaks+w.allowed.kills+w.allowed.cuts > 0 && h.acked < int(w.sub.emission.Next(h.p.Rank, Stdout))
	}, func(w *world, h *host, _ int) error {
		h.acked = int(w.sub.emission.Next(h.p.Rank, Stdout))
		return nil
	}},
	{"reconnects", progress, func(w *world, h *host, _ int) bool { return w.sub != nil && h.used && h.alive && !h.connected },
		func(_ *world, h *host, _ int) error {
			h.connected, h.expected, h.sent, h.ended = true, len(h.said), h.acked, false
			return nil
		}},
	{"is up to date again", progress, (*world).returns, func(w *world, h *host, _ int) error {
		m, _ := w.view.Master(h.p.Rank)
		master := &w.hosts[w.hostOf(m)]
		master.say(message{saysUpToDate, h.p, w.view.AsideSince(h.p), w.view.Since[h.p.Rank]})
		return nil
	}},
	{"is reported as failed by the other peers", progress, func(w *world, h *host, _ int) bool {
		return h.used && h.known && !h.alive && w.view.State(h.p) == view.Live && w.decideAlone() && !w.isPending(h.p, view.Failed)
	}, func(w *world, h *host, _ int) error {
		w.pending = append(w.pending, request{view.Change{Process: h.p, To: view.Failed}, true})
		return nil
	}},
	{"makes its process finish", fault, func(w *world, h *host, _ int) bool {
		return h.used && h.known && h.alive && w.view.Live(h.p) && (w.sub == nil || w.sub.cut) && h.exit != nil && h.exit.Good() && !w.isPending(h.p, view.Finished)
	}, func(w *world, h *host, _ int) error {
		w.pending = append(w.pending, request{view.Change{Process: h.p, To: view.Finished}, true})
		return nil
	}},
	{"departs", progress, func(w *world, h *host, _ int) bool {
		return h.used && h.alive && h.leaves && w.view.State(h.p) == view.Failed
	}, func(_ *world, h *host, _ int) error {
		h.alive = false
		return nil
	}},
	{"is given up", progress, (*world).canLose, (*world).lose},
}

// hostFaults are the events at a host that need not happen.
var hostFaults = []action{
	{"crashes", fault, func(w *world, h *host, _ int) bool { return w.allowed.crashes > 0 && h.alive && h.used },
		func(w *world, h *host, _ int) error {
			w.allowed.crashes--
			h.alive = false
			return nil
		}},
	{"has its process killed", fault, func(w *world, h *host, _ int) bool { return w.allowed.deaths > 0 && h.runs() && h.began },
		func(w *world, h *host, _ int) error {
			w.allowed.deaths--
			h.torn = h.written < len(text) && !h.behind
			h.ends(killedExit)
			return nil
		}},
	{"loses its stream", fault, func(w *world, h *host, _ int) bool {
		return w.allowed.breaks > 0 && w.hears(h) && h.known && w.begun
	}, func(w *world, h *host, _ int) error {
		w.allowed.breaks--
		h.connected = false
		return nil
	}},
	{"is wanted by its owner", fault, func(w *world, h *host, _ int) bool {
		return w.allowed.departs > 0 && h.runs() && h.began && !h.leaves
	}, func(w *world, h *host, _ int) error {
		w.allowed.departs--
		h.leaves = true
		h.say(message{kind: saysLeaves})
		return nil
	}},
	{"is ahead", fault, func(w *world, h *host, _ int) bool {
		return w.allowed.moves > 0 && h.runs() && h.began && !h.behind && w.view.Live(h.p) && !w.view.IsMaster(h.p)
	}, func(w *world, h *host, _ int) error {
		w.allowed.moves--
		h.say(message{kind: saysAhead})
		return nil
	}},
	{"is missed by its master", fault, func(w *world, h *host, _ int) bool {
		return w.allowed.silences > 0 && h.runs() && h.began && !h.behind && w.view.Counts(h.p) && !w.view.IsMaster(h.p) && w.master(h.p.Rank) != nil
	}, func(w *world, h *host, _ int) error {
		w.allowed.silences--
		w.master(h.p.Rank).say(message{kind: saysStalled, about: h.p})
		return nil
	}},
	{"hangs before mpj.Init", fault, func(w *world, h *host, _ int) bool { return w.allowed.hangs > 0 && h.runs() && !h.called && !h.joining },
		func(w *world, h *host, _ int) error {
			w.allowed.hangs--
			h.hangs = true
			return nil
		}},
	{"computes something else", fault, func(w *world, h *host, _ int) bool { return w.allowed.wrongs > 0 && h.runs() && h.written == 0 },
		func(w *world, h *host, _ int) error {
			w.allowed.wrongs--
			h.wrong = true
			return nil
		}},
}

func call(_ *world, h *host, _ int) error {
	h.called = true
	h.say(message{kind: saysInitialized})
	return nil
}

func (h *host) say(m message) { h.said = append(h.said, m) }

func (h *host) ends(e *Exit) {
	h.exit = e
	h.say(message{kind: saysExited})
}

// isHeard reports whether the submitter has received a message of this kind.
func (h *host) isHeard(k messageKind) bool {
	return slices.ContainsFunc(h.said[:h.heard], func(m message) bool { return m.kind == k })
}

// decideAlone reports whether the peers themselves detect crashed peers.
func (w *world) decideAlone() bool { return w.sub == nil || w.sub.resumed || w.sub.cut }

// computes reports whether the program of h can continue.
func (w *world) computes(h *host) bool { return h.runs() && (h.began || w.plain) && !h.behind }

// hears reports whether the submitter gets messages of h.
func (w *world) hears(h *host) bool {
	return w.sub != nil && h.used && h.alive && h.connected && !w.sub.lost[w.hostOf(h.p)]
}

// ready reports whether the submitter can handle the next message of h. Messages of a recruit wait until it has
// joined, except the first one.
func (w *world) ready(h *host) bool {
	return w.sub.state.View().State(h.p) != view.Vacant || h.said[h.heard].kind == saysInitialized && !h.known || w.sub.resumed && h.heard == 0 && !h.known
}

// donor reports whether another replica can bring h up to date.
func (w *world) donor(h *host) bool {
	return slices.ContainsFunc(w.rankOf(h.p.Rank), func(q *host) bool {
		return q.p != h.p && q.alive && !q.behind && q.exit == nil && w.view.Live(q.p)
	})
}

// master returns the host of a rank's master that can send messages, or nil.
func (w *world) master(rank int) *host {
	if m, ok := w.view.Master(rank); ok {
		if h := &w.hosts[w.hostOf(m)]; h.runs() {
			return h
		}
	}
	return nil
}

// returns reports whether h, which is set aside, has yet to be reported as up to date in this term of its master.
func (w *world) returns(h *host, _ int) bool {
	if !h.runs() || w.view.AsideSince(h.p) == 0 {
		return false
	}
	m := w.master(h.p.Rank)
	return m != nil && !slices.Contains(m.said, message{saysUpToDate, h.p, w.view.AsideSince(h.p), w.view.Since[h.p.Rank]})
}

func (w *world) isPending(p view.Process, to view.State) bool {
	return slices.ContainsFunc(w.pending, func(r request) bool { return r.change.Process == p && r.change.To == to })
}

// jobActions are the events that belong to no host.
var jobActions = []action{
	{"learns the next change", progress, func(w *world, _ *host, _ int) bool {
		return w.sub != nil && !w.sub.resumed && !w.sub.cut && w.sub.learned < len(w.log)
	}, func(w *world, _ *host, _ int) error { return w.learn() }},
	{"takes the changes that its peers report", progress, func(w *world, _ *host, _ int) bool {
		return w.caughtUp() && w.sub.learned < len(w.log)
	}, func(w *world, _ *host, _ int) error {
		for w.result == nil && w.sub.learned < len(w.log) {
			if err := w.learn(); err != nil {
				return err
			}
		}
		return nil
	}},
	{"checks which ranks lack a replica", progress, (*world).heals, func(w *world, _ *host, _ int) error { return w.heal() }},
	{"finds a peer, or none", progress, func(w *world, _ *host, _ int) bool { return w.sub != nil && w.sub.search >= 0 },
		func(w *world, _ *host, _ int) error { return w.find() }},
	{"confirms the answer", progress, func(w *world, _ *host, _ int) bool {
		return w.sub != nil && w.sub.done && len(w.accounts().Unconfirmed(w.confirming())) == 0
	}, func(w *world, _ *host, _ int) error {
		if err := w.judge(true); err != nil || w.result != nil {
			return err
		}
		return w.end(w.sub.state.Answer())
	}},
	{"finds that no peer is left", progress, func(w *world, _ *host, _ int) bool {
		return w.sub != nil && w.sub.resumed && !slices.ContainsFunc(w.hosts, func(h host) bool { return h.known && h.alive })
	}, func(w *world, _ *host, _ int) error {
		return w.end(Result{Status: StatusLost, Message: "nothing is left"})
	}},
	{"waits", waiting, func(w *world, _ *host, _ int) bool {
		return w.sub != nil && (w.isBackingOff() || !w.sub.state.Begun() && slices.ContainsFunc(w.hosts, func(h host) bool { return h.hangs }))
	}, func(w *world, _ *host, _ int) error { return w.wait() }},
	{"is cut off", fault, func(w *world, _ *host, _ int) bool {
		return w.allowed.cuts > 0 && w.sub != nil && w.begun && !w.sub.resumed && !w.sub.cut
	}, func(w *world, _ *host, _ int) error { return w.cut() }},
	{"is in touch again", progress, func(w *world, _ *host, _ int) bool {
		return w.sub != nil && w.sub.cut && !slices.ContainsFunc(w.hosts, func(h host) bool {
			return h.used && h.known && !w.sub.lost[w.hostOf(h.p)] && (!h.alive || !h.connected || h.heard < h.expected)
		})
	}, func(w *world, _ *host, _ int) error {
		w.sub.cut = false
		return nil
	}},
	{"is killed", fault, func(w *world, _ *host, _ int) bool { return w.allowed.kills > 0 && w.sub != nil && w.begun },
		func(w *world, _ *host, _ int) error { return w.kill() }},
	{"is killed before it has recorded a position", fault, func(w *world, _ *host, _ int) bool {
		return w.allowed.kills > 0 && w.allowed.unkept > 0 && w.sub != nil && w.begun && w.kept[0][0] > 0 && !w.repeats[0]
	}, func(w *world, _ *host, _ int) error {
		w.allowed.unkept--
		w.kept[0][0]--
		w.repeats[0] = true
		return w.kill()
	}},
	{"is resumed", progress, func(w *world, _ *host, _ int) bool { return w.sub == nil }, func(w *world, _ *host, _ int) error { return w.resume() }},
}

// requestActions are the events of a request.
var requestActions = []action{
	{"is agreed on", progress, func(*world, *host, int) bool { return true }, func(w *world, _ *host, i int) error { return w.agree(i) }},
	{"is lost with the submitter", fault, func(w *world, _ *host, i int) bool { return w.sub == nil && !w.pending[i].peers },
		func(w *world, _ *host, i int) error {
			w.pending = slices.Delete(w.pending, i, i+1)
			return nil
		}},
}

// steps returns the steps that can happen.
func (w *world) steps() (all []step) {
	if w.result != nil {
		return nil
	}
	for i := range w.hosts {
		h := &w.hosts[i]
		for _, list := range [][]action{hostActions, hostFaults} {
			for k := range list {
				if list[k].can(w, h, i) {
					all = append(all, step{&list[k], i, -1})
				}
			}
		}
	}
	for k := range jobActions {
		if jobActions[k].can(w, nil, 0) {
			all = append(all, step{&jobActions[k], -1, -1})
		}
	}
	for i := range w.pending {
		for k := range requestActions {
			if requestActions[k].can(w, nil, i) {
				all = append(all, step{&requestActions[k], -1, i})
			}
		}
	}
	return w.withoutHaste(all)
}

// withoutHaste removes the steps of class waiting unless only programs have something to do: peers and streams are
// fast in comparison.
func (w *world) withoutHaste(all []step) []step {
	hasty := slices.ContainsFunc(all, func(s step) bool { return s.action.class == progress || s.action.class == program && !w.begun })
	return slices.DeleteFunc(all, func(s step) bool { return s.action.class == waiting && hasty })
}

// take takes a step.
func (w *world) take(s step) error {
	if s.host >= 0 {
		return s.action.do(w, &w.hosts[s.host], s.host)
	}
	return s.action.do(w, nil, s.request)
}

// describe describes a step before it happens.
func (w *world) describe(s step) string {
	switch {
	case s.request >= 0:
		return fmt.Sprintf("the request that %v %s", w.pending[s.request].change, s.action.name)
	case s.host < 0:
		return "the submitter " + s.action.name
	case !w.hosts[s.host].used:
		return fmt.Sprintf("peer %d %s", s.host, s.action.name)
	}
	return fmt.Sprintf("%v %s", w.hosts[s.host].p, s.action.name)
}
