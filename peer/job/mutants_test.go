package job

import (
	"flag"
	"path/filepath"
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/mutate"
)

var runMutants = flag.Bool("mutants", false, "build the core with each rule broken, and check that exploration finds the fault")

var mutants = []mutate.Mutant{
	{"the job begins once all live processes have called mpj.Init", "state.go",
		"case !s.at(p).initialized:\n\t\t\tmissing = true", "case !s.at(p).initialized:", "n=1, r=3, a process hangs before mpj.Init"},
	{"a finished process fails with its peer if the user lacks its output", "state.go",
		"state == view.Live || state == view.Finished && !s.at(p).drained {", "state == view.Live {", "n=1, a crash"},
	{"a rank is done once the user has its output", "state.go",
		"s.at(p).drained && (s.begun", "(s.begun", "n=1"},
	{"a replica that was killed fails if it is not the output leader", "state.go",
		"case !leads || drained:", "case drained:", "n=1, a killed process, a recruit"},
	{"there is one result", "state.go",
		"\ts.over = true\n", "", "n=1"},
	{"a rank without a replica ends the job", "state.go",
		"if _, ok := s.view.OutputLeader(rank); !ok {", "if _, ok := s.view.OutputLeader(rank); !ok && s.over {", "n=2, r=1, a crash"},
	{"the view in which the job was done decides whose output counts", "state.go",
		"if s.done != nil {", "if s.done != nil && s.done.R == 0 {", "n=1, a crash"},
	{"a job that is resumed has begun", "state.go",
		"func (Resumed) apply(s *State, _ *Effects) { s.begun = true }", "func (Resumed) apply(*State, *Effects) {}", "n=1, submitter killed"},
	{"Abort ends the job once the user has the output before it", "state.go",
		"case leads && drained && !s.over:", "case leads && !s.over:", "n=1, Abort, a crash"},
	{"the end of a recruit that cannot catch up is not the program's", "exit.go",
		"p.exit.endedByItself() && !p.joining {", "p.exit.endedByItself() {", "n=1, a peer departs, a crash, a recruit"},

	{"a rank with fewer replicas than at the start lacks one", "join.go",
		"staying+done < s.r", "staying+done < s.r-1", "n=1, a killed process, a recruit"},
	{"a rank with its replicas lacks none", "join.go",
		"staying+done < s.r", "staying+done <= s.r", "n=1, a killed process, a recruit"},
	{"a new replica counts once it has caught up", "join.go",
		"watched{initialized: true, joining: true}", "watched{initialized: true}", "n=1, two peers depart, two recruits"},
	{"a new replica that lags fails only if no other replica is left", "join.go",
		"case s.view.Has(p) && !done:\n\t\t\treturn\n", "", "n=1, a killed process, a recruit"},
	{"a join that was agreed on is not pending any more", "join.go",
		"\ts.forgetJoin(p.Rank)\n", "", "n=1, two crashes, two recruits"},

	{"a rank whose recruit was lost is served again", "healing.go",
		"\ta.served = false\n", "", "n=1, two crashes, two recruits"},
	{"a rank that lacks a replica is observed", "healing.go",
		"\ta.lacks = lacks\n", "", "n=1, a killed process, a recruit"},

	{"the user gets each record once", "emission.go",
		"\tdata = data[RecordsLen(data, o.next-first):]\n", "", "n=1, a crash"},
	{"records that the user has received are counted", "emission.go",
		"\to.next += records\n", "", "n=1, a crash"},
	{"the record of positions may be behind", "emission.go",
		"!(late && first-o.next <= maxUncounted)", "true", "n=1, submitter killed, position not recorded"},
	{"the torn line of a killed process is dropped", "emission.go",
		"v.State(t.from) == view.Finished) && ", "v.State(t.from) != view.Vacant) && ", "n=1, a killed process, a recruit"},

	{"a replica leaves only if another one stays", "leave.go",
		"!a.leaving && ", "", "n=1, two peers depart, two recruits"},
	{"a request to leave that had no effect is made again", "leave.go",
		"s.at(p).leave.Apply(s.view); !possible {", "s.at(p).leave.Apply(s.view); !possible && s.over {", "n=1, aside, a peer departs"},
	{"a replica leaves at once if another one stays", "leave.go",
		"s.at(e.Process).leaving = true\n\ts.settle(out)", "s.at(e.Process).leaving = true", "n=1, a peer departs"},

	{"a request to leave names a replica that stays", "leave.go",
		"To: view.Failed, At: uint64(counting[i].Replica) + 1}", "To: view.Failed, At: uint64(p.Replica) + 1}", "n=1, a peer departs"},
	{"a replica that called Abort ends the job when it becomes the output leader", "state.go",
		"\ts.judgeReplicas(out, c.Process.Rank) // the output leader may have changed\n", "\tif !c.Promotes() {\n\t\ts.judgeReplicas(out, c.Process.Rank)\n\t}\n", "n=1, Abort, two moves"},

	{"a replica set aside counts again, even if its report came before that", "state.go",
		"\ts.requestAgain(out, c.Process.Rank)\n", "", "n=1, aside"},

	{"a program that does not use mpj ends", "init.go",
		"return 2*len(e.skipped) > e.all", "return 2*len(e.skipped) > 2*e.all", "n=1, without mpj, a crash"},
	{"a replica that hangs before mpj.Init fails if most others have called it", "entry.go",
		"if 2*len(n.waiting(v, p.Rank, least, now)) > len(replicasOf(v, p.Rank)) {", "if len(n.waiting(v, p.Rank, least, now)) > len(replicasOf(v, p.Rank)) {", "n=1, r=3, a process hangs before mpj.Init"},
	{"one of two replicas that hangs before mpj.Init ends the job", "entry.go",
		"len(waits) == 1 && ", "len(waits) == 2 && ", "n=1, a process hangs before mpj.Init"},

	{"most replicas decide which account is right", "account.go",
		"case len(counting) >= Quorum && 2*agree", "case len(counting) > 2*Quorum && 2*agree", "n=1, r=3, another result"},
	{"most replicas confirm the answer", "account.go",
		"2*agree[p.Rank] > all[p.Rank] })", "2*agree[p.Rank] > 0 })", "n=1, another result"},
	{"the output that the user has received is compared with the accounts", "account.go",
		"if got, known := a.Shown(rank); known && got != x.Printed {", "if got, known := a.Shown(rank); !known && got != x.Printed {", "n=1, r=3, another result"},
}

// core returns the files that the exploration needs, without the tests that need the network, so that a mutant builds
// fast.
func core(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(f string) bool {
		return f == "healing_test.go" || f == "mutants_test.go" || f == "race_test.go"
	})
}

// TestMutantsApply checks that each mutant still applies: the code that it replaces occurs once, and its scenario
// exists.
func TestMutantsApply(t *testing.T) {
	mutate.ExpectApply(t, mutants, scenarios, func(sc scenario) string { return sc.name })
}

// TestMutantsAreFound builds the core with each rule broken, and checks that TestEveryInterleaving then fails. It takes a
// minute or two and runs on demand.
func TestMutantsAreFound(t *testing.T) {
	if !*runMutants {
		t.Skip("with -mutants")
	}
	mutate.ExpectFound(t, mutants, append(core(t), "-states", "100000")...)
}
