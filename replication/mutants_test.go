package replication

import (
	"flag"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/mutate"
)

var runMutants = flag.Bool("mutants", false, "build the protocol with each rule broken, and check that exploration finds the fault")

var mutants = []mutate.Mutant{
	{"a message is kept until every replica has it, not only the first", "outbox.go",
		"for _, q := range live {\n\t\tupTo", "for _, q := range live[:1] {\n\t\tupTo", "stream"},
	{"a message that all replicas have before it is produced is not kept", "outbox.go",
		"if b.settled(o.live[b.dest]) >= m.Seq {", "if false {", "stream"},
	{"no message waits for the acknowledgement of a failed process", "protocol.go",
		"p.outbox.forgetGone()\n", "", "stream, a crash"},
	{"arrivals are acknowledged to every replica of the source", "inbox.go",
		"range in.live[a.source] {", "range in.live[a.source][:1] {", "stream"},
	{"only arrived messages are acknowledged", "inbox.go",
		"f := in.control(frame.Ack, a.context, a.next-1, a.last)", "f := in.control(frame.Ack, a.context, a.next, a.last)", "stream"},
	{"a duplicate is dropped", "inbox.go",
		"if f.Seq == a.next {\n", "if f.Seq <= a.next {\n\t\ta.next = max(a.next-1, f.Seq)\n", "stream, a crash"},
	{"a message whose predecessors are missing is dropped", "inbox.go",
		"if f.Seq > a.next || in.lacksLog {\n\t\treturn nil", "if f.Seq > a.next {\n\t\ta.next = f.Seq", "stream, frame lost"},
	{"a new master sends its backup table", "protocol.go",
		"\tp.outbox.flush()\n", "", "stream, a crash"},
	{"messages that a channel may have lost are sent again", "protocol.go",
		"p.outbox.resend(q)", "_ = q", "stream, channel lost"},
	{"arrivals are acknowledged again on a new channel", "join.go",
		"\t\tp.inbox.acknowledgeAll(q)\n", "\t\t_ = q\n", "stream, channel lost"},
	{"frames of failed processes are refused", "protocol.go",
		"if !p.active() || state == view.Failed {", "if !p.active() {", "wildcard, a false suspicion"},
	{"a process that is out of the view sends nothing", "protocol.go",
		"p.reset()\n\tif !p.active() {\n\t\treturn p.out\n\t}\n\tb := ", "p.reset()\n\tb := ", "wildcard, a false suspicion"},
	{"older views are ignored", "protocol.go",
		"v.Epoch <= p.v.Epoch || ", "", "stream, a crash"},
	{"an outcome is seen only when every replica has it", "agreement.go",
		"if !a.exempts(q) {\n\t\t\t\treturn", "if !a.exempts(q) {\n\t\t\t\tbreak", "decisions, r=3"},
	{"a replica sees an outcome only when it is stable", "agreement.go",
		"\ta.emit(from, a.control(frame.DeterminantAck", "\tif h := d.held[det.Point]; !h.shown {\n\t\ta.show(h)\n\t}\n\ta.emit(from, a.control(frame.DeterminantAck", "decisions, r=3"},
	{"replicas are told that an outcome is stable", "agreement.go",
		"\t\ta.emit(q, a.control(frame.Stable, h.Context, h.Index, nil))\n", "\t\t_ = q\n", "decisions, r=3"},
	{"an outcome is seen once", "agreement.go",
		"d.hold(det, !first)", "_ = first\n\t\td.hold(det, false)", "decisions, n=1, r=3, a promotion, a crash"},
	{"an outcome that is proposed again is held again", "agreement.go",
		"if d.held[det.Point] == nil {", "if !d.has(det.Point) {", "decisions, n=1, r=3, a crash, channel lost"},
	{"a new master decides only after it has asked the other replicas", "takeover.go",
		"if t.syncing && !a.awaiting() {", "if t.syncing {", "decisions, r=3, two crashes"},
	{"a new master takes over the outcomes that other replicas hold", "takeover.go",
		"\t\ta.merge(from, det)\n", "\t\t_ = det\n", "decisions, r=3, two crashes"},
	{"a new master proposes the outcomes that it holds again", "takeover.go",
		"\t\t\ta.propose(h)\n", "\t\t\t_ = h\n", "decisions, r=3, two crashes"},
	{"an outcome does not wait for failed replicas", "takeover.go",
		"\t\t\ta.settle(h)\n", "\t\t\t_ = h\n", "decisions, a crash"},
	{"a replica answers only a master that its view names", "takeover.go",
		"a.v.IsMaster(q) && asked == a.term()", "asked > 0", "decisions, n=1, r=3, two promotions"},
	{"an answer counts in the term of its question", "takeover.go",
		"if f.Seq != t.term {", "if t.term == 0 {", "a decision, r=3, two promotions, a crash"},
	{"a master ends its term when the view names another", "takeover.go",
		"\t\tt.term, t.syncing, t.settling = 0, false, false\n", "", "decisions, two promotions"},
	{"a process that becomes master again asks again", "takeover.go",
		"if t.term == a.term() || ", "if t.term != 0 || ", "decisions, n=1, r=3, two promotions"},
	{"a determinant from a master of an earlier term is ignored", "agreement.go",
		"\tif !a.v.IsMaster(from) {\n\t\treturn nil\n\t}\n\td :=", "\td :=", "decisions, n=1, r=3, a promotion, a crash"},
	{"a Stable frame from an earlier master is ignored", "agreement.go",
		"\tif !a.v.IsMaster(from) {\n\t\treturn nil\n\t}\n\tif !a.decisions", "\tif !a.decisions", "decisions, n=1, r=3, two promotions"},

	{"a replica that was asked early answers when its view has arrived", "protocol.go",
		"\t\tp.agreement.answerSync(now)\n", "\t\t_ = now\n", "decisions, r=3, two crashes"},
	{"a lost Stable frame is sent again", "takeover.go",
		"\t\ta.emit(from, a.control(frame.Stable, det.Context, det.Index, nil))\n", "", "decisions, channel lost"},
	{"an acknowledgement that may have been lost is sent again", "takeover.go",
		"\t}\n\ta.answerSync(q)\n", "\t}\n", "decisions, channel lost"},
	{"a new replica requests the message log once all have it in their view", "join.go",
		"if q != p.self && !j.greeted[q] {\n\t\t\t\treturn", "if q != p.self && !j.greeted[q] {\n\t\t\t\tcontinue", "stream, a join"},
	{"messages that are not dropped yet are kept for a new replica", "outbox.go",
		"forgotten := b.forgotten()\n", "forgotten := b.seq\n", "stream, a join"},
	{"a new replica is sent the messages that it lacks", "join.go",
		"\t\tp.outbox.resend(from)\n", "\t\t_ = from\n", "stream, a join"},
	{"a new replica gets acknowledgements of its messages", "join.go",
		"\t\tp.inbox.acknowledgeAll(q)\n", "\t\t_ = q\n", "stream, a join"},
	{"a new replica gets the pending determinants", "join.go",
		"\t\tp.agreement.offerAll(q)\n", "\t\t_ = q\n", "decisions, n=1, a join, two crashes"},
	{"the decider sends its message log after the held outcomes", "logrequest.go",
		"c.answered || !r.agreement.leads() {\n\t\treturn\n\t}\n\tif c.position == 0 && !r.agreement.decisions.reached(q.Replica) {",
		"c.answered {\n\t\treturn\n\t}\n\tif false {", "decisions, n=1, a join, two crashes"},
	{"another donor sends its message log from the beginning", "join.go",
		"j.donor, j.asked, j.told, j.position, j.rest = master, true, false, 0, nil", "j.donor, j.asked, j.rest = master, true, nil", "decisions, n=1, r=3, a join, two crashes"},
	{"a process that resumes from a checkpoint keeps the messages kept in it", "checkpoint.go",
		"\t\ts.Kept = append(s.Kept, k.m)\n", "\t\t_ = k\n", "checkpoints, sends, a join and a crash"},
	{"messages received before a checkpoint are not received again", "checkpoint.go",
		"\t\ta.next = at.Seq + 1\n", "", "checkpoints, receives, a join in pieces and a crash"},
	{"points decided before a checkpoint stay decided", "checkpoint.go",
		"\t\tp.agreement.decisions.markSeen(at.Context, at.Seq)\n", "\t\t_ = at\n", "checkpoints, n=1, a join, a crash, channel lost"},
	{"outcomes seen before a checkpoint are not shown again", "decisions.go",
		"h.shown = h.shown || pt.Context == context && pt.Index <= upTo", "_, _ = pt, h", "checkpoints, n=1, a join, channel lost twice"},
	{"the checkpoint of another donor is rejected", "join.go",
		"\t\tp.out.Lost = otherCheckpoint\n\t\treturn\n", "", "checkpoints, n=1, r=3, a join in pieces, two crashes"},

	{"outcomes wait for a replica set aside once it has reported", "aside.go",
		"since != 0 && a.asides.ready[q.Replica] != since", "since != 0", "decisions, n=1, aside"},
	{"a replica set aside counts again only when it lacks nothing", "aside.go",
		" || !a.decisions.reached(q.Replica)", "", "decisions, n=1, aside, frame lost"},
	{"the master keeps outcomes that a replica set aside lacks", "aside.go",
		"\ta.decisions.mark(h)\n", "\ta.decisions.drop(h)\n", "decisions, n=1, aside twice, channel lost"},
	{"the other replicas keep outcomes that a replica set aside lacks", "agreement.go",
		"if !f.Sync {\n", "if true {\n", "decisions, n=1, r=3, aside, a crash, channel lost"},
	{"a replica set aside reports to each master", "aside.go",
		"now == a.asides.reported", "a.asides.reported.Since == now.Since", "decisions, n=1, r=3, aside, a crash"},
	{"a replica set aside reports again on a new channel", "protocol.go",
		"\t\tp.agreement.reportAgain(q)\n", "", "decisions, n=1, aside twice, channel lost"},
	{"a new master also asks replicas set aside", "takeover.go",
		"if a.takeover.awaited[q.Replica] {", "if a.takeover.awaited[q.Replica] && !a.exempts(q) {", "decisions, n=1, r=3, aside, a crash"},
	{"a replica set aside does not take over", "../internal/view/aside.go",
		"\t\tif v.Counts(p) {\n\t\t\tv.Masters", "\t\tif v.mark(p, 0); v.Counts(p) {\n\t\t\tv.Masters", "decisions, n=1, aside, a crash that may lose the rank"},
	{"a replica set aside is not promoted", "../internal/view/view.go",
		"if !v.Counts(p) || v.IsMaster(p) {\n\t\treturn v, false\n\t}\n\tnext = v.next()\n", "if !v.Live(p) || v.IsMaster(p) {\n\t\treturn v, false\n\t}\n\tnext = v.next()\n\tnext.mark(p, 0)\n", "decisions, n=1, aside, two promotions"},
	{"a replica set aside again must be up to date again", "../internal/view/aside.go",
		"v.AsideSince(p) != since", "v.AsideSince(p) == 0", "decisions, n=1, aside twice, channel lost"},
	{"a statement to count again is valid only in the master's term", "../internal/view/aside.go",
		" || v.Since[p.Rank] != term", "", "a decision, n=1, r=3, aside, a promotion"},
}

// TestMutantsApply checks for each mutant that the code that it replaces occurs exactly once, and that its
// scenario exists.
func TestMutantsApply(t *testing.T) {
	mutate.ExpectApply(t, mutants, scenarios, func(sc scenario) string { return sc.name })
}

// TestMutantsAreFound builds the protocol with each rule broken, and checks that TestEveryInterleaving then fails.
// Where possible, the scenario of a rule reveals the mutant in its exhaustive part, because random exploration may
// miss it. The test takes a minute or two and runs on demand.
func TestMutantsAreFound(t *testing.T) {
	if !*runMutants {
		t.Skip("with -mutants")
	}
	mutate.ExpectFound(t, mutants, ".", "-states", "200000")
}
