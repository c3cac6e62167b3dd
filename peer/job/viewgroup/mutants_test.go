package viewgroup

import (
	"flag"
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/mutate"
)

var runMutants = flag.Bool("mutants", false, "build the core with each rule broken, and see that exploring finds it")

// A mutant is the core with one rule broken, and the scenario that detects it.
type mutant struct {
	rule     string
	file     string
	old      string // occurs once
	new      string
	scenario string
}

var mutants = []mutant{
	{"what is in the log is true when it is committed", "member.go",
		"range r.CommittedEntries {", "range r.Entries {", "two wishes, a cut"},
	{"what a member wants is not true for that", "member.go",
		"m.wanted = append(m.wanted, p)", "m.wanted = append(m.wanted, p)\n\t\tm.view, _ = p.Change.Apply(m.view)", "two wishes"},
	{"a change that changes nothing makes no view", "proposal.go",
		"p.Change.Apply(m.view); !changes {\n\t\treturn\n", "p.Change.Apply(m.view); !changes && false {\n\t\treturn\n", "two wishes"},
	{"what has been lost is proposed again", "member.go",
		"\t\tm.offer(p)\n\t}\n}", "\t\t_ = p\n\t}\n}", "an old leader comes back"},
	{"what is agreed on is wanted no more", "member.go",
		"return w.repeats(p) || !m.matters(w)", "return false", "two wishes"},
	{"who reaches no majority says so", "member.go",
		"case m.broken != nil || silence > cutOffTicks:", "case m.broken != nil:", "two wishes, a cut"},
	{"what a member has been sent it keeps", "member.go",
		"if err := m.store.Append(r.Entries); err != nil {", "if err := m.store.Append(nil); err != nil {", "two wishes"},
	{"who comes is taken in before its process is in the view", "member.go",
		"return m.Leads() && m.wantedMembership() != nil || m.awaits(p.Change.Process)", "return m.Leads() && m.wantedMembership() != nil && len(m.newcomers) == 0", "a newcomer is introduced while a member is lost"},
	{"who hears of one that comes waits for who leads", "member.go",
		" || m.awaits(p.Change.Process)", "", "a peer comes, as several are told"},
	{"who has come does not come again, whoever is told how late", "newcomer.go",
		"if p == n.Process || peer == n.Peer && !m.isMember(n) {", "if p == n.Process && peer != n.Peer {", "a peer comes, as one is told who leads later"},
	{"who has been taken in is not taken in again", "newcomer.go",
		"slices.DeleteFunc(m.newcomers, n.excludes)", "slices.Clone(m.newcomers)", "a peer comes"},
	{"who comes has the log from its beginning", "member.go",
		"id < uint64(c.Members)", "id < uint64(c.Members) && c.Self < c.Peers", "a peer comes"},
	{"a member that is lost is replaced by one that comes", "membership.go",
		"if len(voters) < want(following) ||", "if", "a lost member is replaced, and another one is lost"},
	{"all know where one is that has come", "newcomer.go",
		"m.config.RunsOn[n.Process] = n.Peer\n", "if m.config.Self == 0 {\n\t\tm.config.RunsOn[n.Process] = n.Peer\n\t}\n", "a peer comes"},
	{"who is gone votes no more, the submitter's too", "membership.go",
		"if m.gone[id] ||", "if m.gone[id] && id != submitter ||", "the submitter's is gone, and another one is lost"},
	{"a submitter's that is silent votes no more", "membership.go",
		"if slices.Contains(voters, submitter) && m.missing", "if false && m.missing", "the submitter's is silent for long, and another one is lost"},
	{"a submitter's that is back votes and leads", "membership.go",
		" || better {", " || better && false {", "the submitter's comes back after it has been replaced"},
}

// core are the files that the exploration needs, without those of the service, so that a mutant builds
// within a second.
var core = []string{
	"doc.go", "proposal.go", "member.go", "membership.go", "newcomer.go", "log.go", "logger.go",
	"world_test.go", "whole_test.go", "explore_test.go", "norace_test.go",
}

// TestMutantsApply checks that each mutant still applies: the code that it replaces occurs once, and its
// scenario exists.
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

// TestMutantsAreFound builds the core with each rule broken and checks that TestEveryInterleaving then
// fails. It takes a minute or two and runs on demand.
func TestMutantsAreFound(t *testing.T) {
	if !*runMutants {
		t.Skip("with -mutants")
	}
	for _, m := range mutants {
		t.Run(m.rule, func(t *testing.T) {
			t.Parallel()
			mutate.ExpectFound(t, mutate.Overlay(t, m.file, m.old, m.new), m.scenario, append(slices.Clone(core), "-states", "1500")...)
		})
	}
}
