package replication

import (
	"flag"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/mutate"
)

var runMutants = flag.Bool("mutants", false, "build the protocol with each rule broken, and see that exploring finds it")

// A mutant is the protocol with one rule broken, and a scenario that reveals it.
type mutant struct {
	rule     string
	file     string
	old      string // occurs exactly once
	new      string
	scenario string
}

var mutants = []mutant{
	{"a message is kept until every replica has it, not the first alone", "outbox.go",
		"for _, q := range live {\n\t\tupTo", "for _, q := range live[:1] {\n\t\tupTo", "stream"},
	{"a message that all have before it is produced is not kept", "outbox.go",
		"if b.settled(o.live[b.dest]) >= m.Seq {", "if false {", "stream"},
	{"nobody waits for the acknowledgement of a failed process", "protocol.go",
		"p.outbox.forgetGone()\n", "", "stream, a crash"},
	{"every replica of the source is told what has arrived", "inbox.go",
		"range in.live[a.source] {", "range in.live[a.source][:1] {", "stream"},
	{"no more is acknowledged than has arrived", "inbox.go",
		"f := in.control(frame.Ack, a.context, a.next-1, a.last)", "f := in.control(frame.Ack, a.context, a.next, a.last)", "stream"},
	{"a duplicate is dropped", "inbox.go",
		"if f.Seq == a.next {\n", "if f.Seq <= a.next {\n\t\ta.next = max(a.next-1, f.Seq)\n", "stream, a crash"},
	{"what is too early is dropped", "inbox.go",
		"if f.Seq > a.next || in.partial {\n\t\treturn nil", "if f.Seq > a.next {\n\t\ta.next = f.Seq", "stream, frame lost"},
	{"a new master sends what its table holds", "protocol.go",
		"\tp.outbox.flush()\n", "", "stream, a crash"},
	{"what a channel may have lost is sent again", "protocol.go",
		"p.outbox.resend(q)", "_ = q", "stream, channel lost"},
	{"what arrived is acknowledged again on a new channel", "join.go",
		"\t\tp.inbox.acknowledgeAll(q)\n", "\t\t_ = q\n", "stream, channel lost"},
	{"frames of failed processes are refused", "protocol.go",
		"if !p.active() || state == view.Failed {", "if !p.active() {", "wildcard, a false suspicion"},
	{"who is out of the view sends no more", "protocol.go",
		"p.reset()\n\tif !p.active() {\n\t\treturn p.out\n\t}\n\tb := ", "p.reset()\n\tb := ", "wildcard, a false suspicion"},
	{"older views are ignored", "protocol.go",
		"v.Epoch <= p.v.Epoch || ", "", "stream, a crash"},
	{"an outcome is seen only when every replica has it", "agreement.go",
		"if !a.spares(q) {\n\t\t\t\treturn", "if !a.spares(q) {\n\t\t\t\tbreak", "decisions, r=3"},
	{"a replica sees an outcome only when it is stable", "agreement.go",
		"\ta.emit(from, a.control(frame.DeterminantAck", "\tif h := d.held[det.Point]; !h.shown {\n\t\ta.show(h)\n\t}\n\ta.emit(from, a.control(frame.DeterminantAck", "decisions, r=3"},
	{"replicas are told that an outcome is stable", "agreement.go",
		"\t\ta.emit(q, a.control(frame.Stable, h.Context, h.Index, nil))\n", "\t\t_ = q\n", "decisions, r=3"},
	{"an outcome is seen once", "agreement.go",
		"d.hold(det, !first)", "_ = first\n\t\td.hold(det, false)", "decisions, n=1, r=3, a promotion, a crash"},
	{"what is proposed again is held again", "agreement.go",
		"if d.held[det.Point] == nil {", "if !d.has(det.Point) {", "decisions, n=1, r=3, a crash, channel lost"},
	{"a new master decides only after it has asked the others", "takeover.go",
		"if t.syncing && !a.awaiting() {", "if t.syncing {", "decisions, r=3, two crashes"},
	{"a new master takes over what the others hold", "takeover.go",
		"\t\ta.merge(from, det)\n", "\t\t_ = det\n", "decisions, r=3, two crashes"},
	{"a new master proposes what it holds anew", "takeover.go",
		"\t\t\ta.propose(h)\n", "\t\t\t_ = h\n", "decisions, r=3, two crashes"},
	{"an outcome does not wait for failed replicas", "takeover.go",
		"\t\t\ta.settle(h)\n", "\t\t\t_ = h\n", "decisions, a crash"},
	{"a replica answers only a master that its view names", "takeover.go",
		"a.v.IsMaster(q) && asked == a.term()", "asked > 0", "decisions, n=1, r=3, two promotions"},
	{"an answer counts in the term of its question", "takeover.go",
		"if f.Seq != t.term {", "if t.term == 0 {", "a decision, r=3, two promotions, a crash"},
	{"a master ends its term when the view names another", "takeover.go",
		"\t\tt.term, t.syncing, t.settling = 0, false, false\n", "", "decisions, two promotions"},
	{"a master that comes back asks anew", "takeover.go",
		"if t.term == a.term() || ", "if t.term != 0 || ", "decisions, n=1, r=3, two promotions"},
	{"a master of an earlier term is not heard", "agreement.go",
		"\tif !a.v.IsMaster(from) {\n\t\treturn nil\n\t}\n\td :=", "\td :=", "decisions, n=1, r=3, a promotion, a crash"},
	{"an outcome is not stable because an earlier master says so", "agreement.go",
		"\tif !a.v.IsMaster(from) {\n\t\treturn nil\n\t}\n\tif !a.decisions", "\tif !a.decisions", "decisions, n=1, r=3, two promotions"},

	{"a replica that was asked early answers when its view is there", "protocol.go",
		"\t\tp.agreement.answerSync(now)\n", "\t\t_ = now\n", "decisions, r=3, two crashes"},
	{"a replica that missed that an outcome is stable is told again", "takeover.go",
		"\t\ta.emit(from, a.control(frame.Stable, det.Context, det.Index, nil))\n", "", "decisions, channel lost"},
	{"a replica says again what it may have acknowledged in vain", "takeover.go",
		"\t}\n\ta.answerSync(q)\n", "\t}\n", "decisions, channel lost"},
	{"a new replica asks for the past when all have it in their view", "join.go",
		"if q != p.self && !j.greeted[q] {\n\t\t\t\treturn", "if q != p.self && !j.greeted[q] {\n\t\t\t\tcontinue", "stream, a join"},
	{"what is not forgotten is kept for a new replica", "outbox.go",
		"forgotten := b.forgotten()\n", "forgotten := b.seq\n", "stream, a join"},
	{"a new replica is sent what it lacks", "join.go",
		"\t\tp.outbox.resend(from)\n", "\t\t_ = from\n", "stream, a join"},
	{"a new replica is told what others have of its messages", "join.go",
		"\t\tp.inbox.acknowledgeAll(q)\n", "\t\t_ = q\n", "stream, a join"},
	{"a new replica takes part in what is being decided", "join.go",
		"\t\tp.agreement.offerAll(q)\n", "\t\t_ = q\n", "decisions, n=1, a join, two crashes"},
	{"the past is told by who decides, once what is held is there", "recall.go",
		"c.answered || !r.agreement.leads() {\n\t\treturn\n\t}\n\tif c.position == 0 && !r.agreement.decisions.reached(q.Replica) {",
		"c.answered {\n\t\treturn\n\t}\n\tif false {", "decisions, n=1, a join, two crashes"},
	{"another donor tells the past from its beginning", "join.go",
		"j.donor, j.asked, j.told, j.position, j.rest = master, true, false, 0, nil", "j.donor, j.asked, j.rest = master, true, nil", "decisions, n=1, r=3, a join, two crashes"},
	{"what is kept at a checkpoint is kept by who goes on from it", "checkpoint.go",
		"\t\ts.Kept = append(s.Kept, k.m)\n", "\t\t_ = k\n", "checkpoints, sends, a join and a crash"},
	{"what has been received before a checkpoint is not received again", "checkpoint.go",
		"\t\ta.next = at.Seq + 1\n", "", "checkpoints, receives, a join in pieces and a crash"},
	{"what has been decided before a checkpoint is decided", "checkpoint.go",
		"\t\tp.agreement.decisions.pass(at.Context, at.Seq)\n", "\t\t_ = at\n", "checkpoints, n=1, a join, a crash, channel lost"},
	{"what the program has seen before a checkpoint it is not shown again", "decisions.go",
		"h.shown = h.shown || pt.Context == context && pt.Index <= upTo", "_, _ = pt, h", "checkpoints, n=1, a join, channel lost twice"},
	{"nothing is taken of another donor's checkpoint", "join.go",
		"\t\tp.out.Lost = otherCheckpoint\n\t\treturn\n", "", "checkpoints, n=1, r=3, a join in pieces, two crashes"},

	{"a replica set aside is waited for once it has been heard", "aside.go",
		"since != 0 && a.asides.ready[q.Replica] != since", "since != 0", "decisions, n=1, aside"},
	{"a replica set aside counts again only when it lacks nothing", "aside.go",
		" || !a.decisions.reached(q.Replica)", "", "decisions, n=1, aside, frame lost"},
	{"the master keeps what a replica set aside lacks", "aside.go",
		"\ta.decisions.mark(h)\n", "\ta.decisions.drop(h)\n", "decisions, n=1, aside twice, channel lost"},
	{"the other replicas keep what a replica set aside lacks", "agreement.go",
		"if !f.Sync {\n", "if true {\n", "decisions, n=1, r=3, aside, a crash, channel lost"},
	{"a replica set aside reports to each master", "aside.go",
		"now == a.asides.reported", "a.asides.reported.Since == now.Since", "decisions, n=1, r=3, aside, a crash"},
	{"a replica set aside reports again on a new channel", "protocol.go",
		"\t\tp.agreement.reportAgain(q)\n", "", "decisions, n=1, aside twice, channel lost"},
	{"a new master also asks replicas set aside", "takeover.go",
		"if a.takeover.awaited[q.Replica] {", "if a.takeover.awaited[q.Replica] && !a.spares(q) {", "decisions, n=1, r=3, aside, a crash"},
	{"a replica set aside does not take over", "../internal/view/aside.go",
		"\t\tif v.Counts(p) {\n\t\t\tv.Masters", "\t\tif v.mark(p, 0); v.Counts(p) {\n\t\t\tv.Masters", "decisions, n=1, aside, a crash that may lose the rank"},
	{"a replica set aside is not promoted", "../internal/view/view.go",
		"if !v.Counts(p) || v.IsMaster(p) {\n\t\treturn v, false\n\t}\n\tnext = v.next()\n", "if !v.Live(p) || v.IsMaster(p) {\n\t\treturn v, false\n\t}\n\tnext = v.next()\n\tnext.mark(p, 0)\n", "decisions, n=1, aside, two promotions"},
	{"a replica set aside again has to show again that it lacks nothing", "../internal/view/aside.go",
		"v.AsideSince(p) != since", "v.AsideSince(p) == 0", "decisions, n=1, aside twice, channel lost"},
	{"a statement to count again is valid only in the master's term", "../internal/view/aside.go",
		" || v.Since[p.Rank] != term", "", "a decision, n=1, r=3, aside, a promotion"},
}

// TestMutantsApply checks that each mutant still applies: the code that it changes occurs exactly once,
// and its scenario exists.
func TestMutantsApply(t *testing.T) {
	known := make(map[string]bool)
	for _, sc := range scenarios {
		known[sc.name] = true
	}
	for _, m := range mutants {
		t.Run(m.rule, func(t *testing.T) {
			mutate.Overlay(t, m.file, m.old, m.new)
			if !known[m.scenario] {
				t.Errorf("no scenario %q", m.scenario)
			}
		})
	}
}

// TestMutantsAreFound builds the protocol with each rule broken and explores it; TestEveryInterleaving
// must fail. Where possible, the scenario of a rule reveals the mutant in the exhaustive part, because
// random exploration may miss it. The test takes a minute or two and runs on demand.
func TestMutantsAreFound(t *testing.T) {
	if !*runMutants {
		t.Skip("with -mutants")
	}
	for _, m := range mutants {
		t.Run(m.rule, func(t *testing.T) {
			t.Parallel()
			mutate.ExpectFound(t, mutate.Overlay(t, m.file, m.old, m.new), m.scenario, ".", "-states", "200000")
		})
	}
}
