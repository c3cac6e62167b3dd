package viewgroup

import (
	"flag"
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/mutate"
)

var runMutants = flag.Bool("mutants", false, "build the core with each rule broken, and see that exploring finds it")

var mutants = []mutate.Mutant{
	{"only committed entries take effect", "member.go",
		"range r.CommittedEntries {", "range r.Entries {", "two proposals, a partition"},
	{"a proposal alone does not change the view", "member.go",
		"m.wanted = append(m.wanted, p)", "m.wanted = append(m.wanted, p)\n\t\tm.view, _ = p.Change.Apply(m.view)", "two proposals"},
	{"a change without effect makes no view", "proposal.go",
		"p.Change.Apply(m.view); !changes {\n\t\treturn\n", "p.Change.Apply(m.view); !changes && false {\n\t\treturn\n", "two proposals"},
	{"lost proposals are repeated", "member.go",
		"\t\tm.offer(p)\n\t}\n}", "\t\t_ = p\n\t}\n}", "an old leader returns"},
	{"committed proposals are not repeated", "member.go",
		"return w.repeats(p) || !m.matters(w)", "return false", "two proposals"},
	{"a member without a majority reports it", "contact.go",
		"case silence > cutOffTicks:", "case false:", "two proposals, a partition"},
	{"a member stores received entries", "member.go",
		"if err := m.store.Append(r.Entries); err != nil {", "if err := m.store.Append(nil); err != nil {", "two proposals"},
	{"a newcomer is admitted before its process joins the view", "member.go",
		"return m.Leads() && m.wantedMembership() != nil || m.awaits(p.Change.Process)", "return m.Leads() && m.wantedMembership() != nil && len(m.newcomers) == 0", "a newcomer is introduced while a member is lost"},
	{"a proposal of an unadmitted process waits", "member.go",
		" || m.awaits(p.Change.Process)", "", "the submitter's new process introduces a newcomer"},
	{"a member is not admitted again after a late introduction", "membership.go",
		"if _, runs := m.config.RunsOn[n.Process]; runs {", "if false {", "the submitter's new process introduces a newcomer again"},
	{"an admitted newcomer is not admitted again", "membership.go",
		"slices.DeleteFunc(m.newcomers, n.excludes)", "slices.Clone(m.newcomers)", "a newcomer"},
	{"a newcomer gets the log from its beginning", "member.go",
		"id < uint64(c.Members)", "id < uint64(c.Members) && c.Self < c.Peers", "a newcomer"},
	{"a lost member is replaced by a newcomer", "membership.go",
		"if len(voters) < want(following) ||", "if", "a lost member is replaced, and another one is lost"},
	{"all members know the peer of a newcomer's process", "membership.go",
		"m.config.RunsOn[n.Process] = n.Peer\n", "if m.config.Self == 0 {\n\t\tm.config.RunsOn[n.Process] = n.Peer\n\t}\n", "a newcomer"},
	{"a peer that is gone loses its vote", "membership.go",
		"if m.gone[id] && mayGo ||", "if m.gone[id] && mayGo && m.config.Self > 9 ||", "a lost member is replaced, and another one is lost"},
	{"an earlier number of the submitter's peer is removed", "membership.go",
		"map[int]bool{m.lastSubmitter(): true}", "map[int]bool{m.lastSubmitter(): true, 0: true}", "the submitter's process is resumed, and a member is lost"},
	{"a new process of the submitter asks for the log", "receive.go",
		"return m.isSubmitter() &&", "return m.isSubmitter() && m.config.Self == 0 &&", "the submitter's process is killed and resumed"},
	{"a new process of the submitter has its rights", "membership.go",
		"m.proofs.submitter = max(m.proofs.submitter, n.Peer)", "_ = n", "the submitter's process is killed and resumed"},
	{"a new process of the submitter decides about every process", "proposal.go",
		"return m.config.isSubmitter(p.Author) ||", "return p.Author == 0 ||", "the submitter's process is killed and resumed"},
	{"proposals of a new process of the submitter wait until it is admitted", "proposal.go",
		"if p.Author == m.config.Self && m.isSubmitter() {", "if false {", "the submitter's process is killed and resumed"},
	{"a silent submitter's peer loses its vote", "membership.go",
		"slices.Contains(voters, submitter) && m.missing", "submitter == 0 && m.missing", "the submitter's peer is silent for long, and another one is lost"},
	{"a returned submitter's peer votes and leads", "membership.go",
		" || better {", " || better && false {", "the submitter's peer returns after its replacement"},
	{"a voter that leaves is replaced", "membership.go",
		"	if m.departures.include(id) {\n		rank = 6", "	if m.departures.include(id) {\n		rank = 0", "a voter leaves, and a member is lost"},
	{"a voter that leaves remains until it is replaced", "leave.go",
		"now-d.voted > graceTicks || ", "true || ", "two voters leave, and the submitter's peer is lost"},
	{"a voter that leaves fails its own processes", "membership.go",
		"if m.view.Live(p) && m.config.RunsOn[p] == m.config.Self {", "if false {", "a voter leaves that no learner can replace"},
	{"a leader has the votes of a majority", "check.go",
		"k.followers(in.from, term), in.behind) {", "k.followers(in.from, term), in.behind) && false {", "a peer says that it leads"},
	{"votes are signed", "statement.go",
		"if !k.isSigned(s) {\n\t\t\treturn nil", "if false {\n\t\t\treturn nil", "a peer says that it leads, while an election is due"},
	{"a majority allows a term to begin", "check.go",
		"return k.shown != nil, err", "return true, nil", "a peer says that a later term has begun"},
	{"only the leader hands over", "check.go",
		"if in.status.Lead != uint64(in.from)+1 || in.raft.GetTerm() != k.term {", "if in.raft.GetTerm() != k.term {", "a peer wants an election"},
	{"an election beside a leader needs its permission", "check.go",
		"return k.leads > 0 && k.leads+1 == s.GetTerm() && k.leader == int(s.GetBy())", "return k.leads > 0", "a peer wants an election"},
	{"a permission is signed", "check.go",
		"decides(s) && k.isSigned(s) {", "decides(s) {", "a peer forges a permission"},
	{"only the submitter's peer orders an election", "check.go",
		"return int(s.GetBy()) == k.submitter\n", "return true\n", "a peer orders an election"},
	{"an order is obeyed only if it is the submitter's", "check.go",
		"if from != k.submitter || !k.isBallot", "if !k.isBallot", "a peer orders an election"},
	{"a permission is for the candidate", "check.go",
		"int(shown[0].GetCandidate()) != in.from || ", "", "a peer shows the permission of another"},
	{"entries of a leader are signed", "receive.go",
		"if !m.accepts(r) || !m.proofs.signsEntries(in) {", "if !m.accepts(r) {", "a leader sends entries that it has not signed"},
	{"a change of the voters shows that the previous one is committed", "receive.go",
		"if !m.accepts(r) || !m.proofs.signsEntries(in) {", "if !m.proofs.signsEntries(in) {", "a leader changes the voters twice at once"},
	{"a message has one change of the voters, which begins it", "receive.go",
		"if !isNew(entries[0]) || slices.ContainsFunc(entries[1:], isNew) {", "if false {", "a leader changes the voters twice at once"},
	{"a leader sends each change of the voters apart", "voterchange.go",
		"if i > 0 && voterChangeIn(e) != nil {", "if false {", "the submitter's process is resumed, and a member is lost"},
	{"a peer keeps the signature of the entries that it accepts", "relay.go",
		"k.keep(s)\n", "", "two proposals, a partition"},
	{"a leader waits until it can show that the previous change is committed", "membership.go",
		"case !m.certify(c): // a new leader has to commit an entry first\n\t\treturn\n", "", "the submitter's process is resumed, and a member is lost"},
	{"a change of the voters shows what a new leader knows to be committed", "membership.go",
		"told.Settled = last.proof(m.proofs)\n", "told.Settled = []*Statement{}\n", "the submitter's process is resumed, and a member is lost"},
	{"relayed entries are the leader's", "receive.go",
		"if head == nil {", "if false {", "a peer changes an entry that it relays"},
}

// core are the files that the exploration needs, without those of the service, so that a mutant builds
// within a second.
var core = []string{
	"doc.go", "contact.go", "proposal.go", "member.go", "membership.go", "leave.go", "newcomer.go", "logger.go",
	"voterchange.go", "receive.go", "relay.go", "statement.go", "chain.go", "check.go", "justify.go",
	"world_test.go", "whole_test.go", "explore_test.go", "lies_test.go", "norace_test.go",
}

// TestMutantsApply checks that each mutant still applies: the code that it replaces occurs once, and its
// scenario exists.
func TestMutantsApply(t *testing.T) {
	mutate.ExpectApply(t, mutants, scenarios, func(sc scenario) string { return sc.name })
}

// TestMutantsAreFound builds the core with each rule broken and checks that TestEveryInterleaving then
// fails. It takes a minute or two and runs on demand.
func TestMutantsAreFound(t *testing.T) {
	if !*runMutants {
		t.Skip("with -mutants")
	}
	mutate.ExpectFound(t, mutants, append(slices.Clone(core), "-states", "1500")...)
}
