package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/internal/ether"
	"github.com/p2pmpi/p2pmpi/e2e/internal/markdown"
	"github.com/p2pmpi/p2pmpi/e2e/internal/nemesis"
)

var (
	nemesisTime  = flag.Duration("nemesis", 20*time.Second, "how long TestNemesis begins new rounds")
	nemesisSeed  = flag.Uint64("nemesis.seed", 0, "of TestNemesis; 0 for a new one")
	nemesisOut   = flag.String("nemesis.out", "", "file to write TestNemesis's table into, docs/nemesis.md")
	nemesisRound = flag.Int("nemesis.round", -1, "only this round of TestNemesis; -1 for all")
)

// TestNemesis runs jobs whose every answer is known on machines of their own, and
// strikes at their processes, peers and network as package nemesis has planned. What a
// job has to survive it survives with the right answer; when a rank has lost all
// its replicas the job says so; no job hangs, and nothing is left of any.
func TestNemesis(t *testing.T) {
	seed := *nemesisSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-nemesis.seed=%d", seed)
	tally := newTally()
	defer func() {
		t.Logf("after %v:\n%s", tally.took(), tally)
		if *nemesisOut != "" {
			if err := markdown.Insert(*nemesisOut, "nemesis", fmt.Sprintf("%s\n`-nemesis.seed %d`, %v.\n", tally, seed, tally.took())); err != nil {
				t.Error(err)
			}
		}
	}()
	round := func(number int) {
		t.Run(fmt.Sprintf("round %d", number), func(t *testing.T) {
			t.Logf("to have this round again: -nemesis.seed %d -nemesis.round %d", seed, number)
			runRound(t, nemesis.Of(seed, number), tally)
		})
	}
	if *nemesisRound >= 0 {
		round(*nemesisRound)
		return
	}
	for number := 0; tally.took() < *nemesisTime; number++ {
		round(number)
	}
}

// A field is where the jobs of a round run: peers on machines of their own, and the
// submitter's machine, which has the number 0.
type field struct {
	t         *testing.T
	network   *ether.Switch
	machines  []*machine
	submitter *peerProcess
	peers     []*peerProcess // peer i is on machine i+1
	tally     *tally

	disturbances map[int]disturbance // of the network, now
	disturbed    int
}

func runRound(t *testing.T, r nemesis.Round, tally *tally) {
	f := &field{t: t, tally: tally, disturbances: make(map[int]disturbance)}
	f.machines, f.network = newEther(t, r.Network, nemesis.Peers+1)
	f.submitter = f.machines[0].startPeer(t, t.TempDir(), "--slots", "0")
	f.submitter.awaitReady()
	for i := range nemesis.Peers {
		if i%2 == 0 { // the others are as they always are
			f.machines[i+1].clock = filepath.Join(t.TempDir(), "clock")
		}
		f.peers = append(f.peers, f.boot(i, diskOf(t)))
	}
	for _, p := range f.peers {
		p.awaitReady()
	}
	for _, j := range r.Jobs {
		f.run(j)
	}
}

// boot starts peer i; awaitReady has to follow.
func (f *field) boot(i int, home string) *peerProcess {
	f.t.Helper()
	return f.machines[i+1].startPeer(f.t, home, "--supernode", f.submitter.addr, "--slots", strconv.Itoa(nemesis.Slots))
}

// run runs one job from its submission until nothing of it is left.
func (f *field) run(j nemesis.Job) {
	b := &battle{field: f, plan: j, program: program(j), harm: make(map[nemesis.Process]nemesis.Harm), struck: make(map[*peerProcess]bool)}
	f.tally.jobs[j.Program]++
	defer func() {
		if b.failing != "" {
			f.tally.failures[b.failing]++
			f.t.Logf("%s:\n%s", b.failing, b)
		}
	}()
	begun := time.Now()
	took := func() time.Duration { return time.Since(begun).Round(10 * time.Millisecond) }
	b.failing = "hang"
	b.submit()
	b.strikeEarly()
	b.job.waitRunning()
	b.note("running after %v", took())
	b.fight()
	b.judge()
	b.note("over after %v", took())
	b.failing = "leftovers"
	f.recover()
	b.note("nothing left and all peers back after %v", took())
	b.failing = ""
	f.t.Log(b)
}

// recover expects that nothing of the job is left, and boots the peers again that
// were killed, in their homes: then nothing is left there either.
func (f *field) recover() {
	f.t.Helper()
	expectNothingLeft(f.t, f.peers)
	var back []*peerProcess
	for i, p := range f.peers {
		if !p.alive() {
			f.peers[i] = f.boot(i, p.home)
			back = append(back, f.peers[i])
		}
	}
	for _, p := range back {
		p.awaitReady()
	}
	expectNothingLeft(f.t, back)
}

// A battle is one job, and what is done to it.
type battle struct {
	*field
	plan    nemesis.Job
	program known
	job     *job
	harm    map[nemesis.Process]nemesis.Harm // the most that was done to each
	struck  map[*peerProcess]bool            // peers that may have been lost
	orphan  bool                             // p2prun was killed
	home    string                           // where it kept the job; "" if it handed it to a peer
	severed bool                             // the submitter was cut off from all peers for long
	begun   time.Time                        // the job runs
	early   *peerProcess                     // whose disk was full before the job ran
	todo    []moment
	log     []string
	failing string // what it is if the test fails now
}

// String is all that was done, for whoever looks for the reason.
func (b *battle) String() string {
	return fmt.Sprintf("%s, n=%d r=%d, at %v\n\t%s", b.program.command, b.plan.N, b.plan.R, b.job.placed, strings.Join(b.log, "\n\t"))
}

func (b *battle) note(format string, args ...any) {
	b.log = append(b.log, fmt.Sprintf(format, args...))
}

// submit hands the job in, at the peer that lives on or as a peer of its own.
func (b *battle) submit() {
	args := []string{"-n", strconv.Itoa(b.plan.N), "-r", strconv.Itoa(b.plan.R), "-w", "60", "--timeout", "180s", "--away", "30s"}
	if b.plan.Concentrate {
		args = append(args, "-a", "concentrate")
	}
	home := b.submitter.home
	if !b.plan.Client {
		home = b.t.TempDir()
		b.home = home
		args = append(args, "--supernode", b.submitter.addr)
	}
	b.job = b.machines[0].submit(b.t, home, slices.Concat(args, b.program.options, b.program.command)...)
}

// strikeEarly hits a peer that the job may be about to use, or not.
func (b *battle) strikeEarly() {
	early := b.plan.Early
	if early.Phase == "" {
		return
	}
	b.job.waitFor(early.Phase, func(e event) bool { return e.Phase == early.Phase })
	p := b.peers[early.Peer]
	b.note("%s: %s, of number %d, %s", early.Phase, early.Kind, early.Peer, p.id)
	b.tally.strikes[string(early.Kind)+", early"]++
	if early.Kind == nemesis.KillPeer {
		p.kill()
		return
	}
	b.early = p
	b.todo = append(b.todo, moment{end: true, do: fill(b.t, p.home)})
}

// judge expects the right answer, or the right reason why there is none.
func (b *battle) judge() {
	b.t.Helper()
	status := b.job.wait()
	if b.orphan && b.home != "" && status == -1 {
		status = b.attach()
	}
	said := strings.Join(strings.Fields(b.job.stderr.String()), " ") // lines are folded
	for e := range b.job.events {                                    // until its end
		if e.Event == "view" && e.Text != "" {
			b.note("view, at %v: %s", e.Time.Sub(b.begun).Round(time.Millisecond), e.Text)
		}
	}
	b.note("last output at %v", b.job.stdout.lastWritten().Sub(b.begun).Round(time.Millisecond))
	b.note("exit status %d", status)
	b.failing = "wrong status"
	switch {
	case b.orphan && status != 0 && status != 70, b.orphan && strings.Contains(said, "nothing of job"): // killed in time
		b.tally.outcomes["submitter killed"]++
	case status == 0:
		b.failing = "wrong answer"
		if err := b.program.right(b.job.stdout.String(), b.job.cmd.Dir); err != nil {
			b.t.Fatalf("wrong answer: %v", err)
		}
		b.tally.outcomes["right answer"]++
	case status == 70 && slices.ContainsFunc(b.exposed(), func(rank int) bool {
		return strings.Contains(said, fmt.Sprintf("rank %d lost all its replicas", rank))
	}):
		b.tally.outcomes["a rank lost, and said so"]++
	case status == 70 && b.severed && partedSaid(said):
		b.tally.outcomes["submitter cut off, and said so"]++
	case status == 70 && b.outvoted() && strings.Contains(said, "cut off from the majority of the job's peers"):
		b.tally.outcomes["no majority, and said so"]++
	default:
		b.t.Fatalf("exit status %d; ranks that may have been lost: %v", status, b.exposed())
	}
}

// attach goes on with a job whose p2prun was killed, and returns its exit status. A line may
// have been written just before that and not noted.
func (b *battle) attach() int {
	b.t.Helper()
	second := b.machines[0].startJob(b.t, "--home", b.home, "--json", "--attach")
	status := second.wait()
	before, text := b.job.stdout.String(), second.stdout.String()
	if last := before[strings.LastIndexByte(strings.TrimSuffix(before, "\n"), '\n')+1:]; last != "" {
		text = strings.TrimPrefix(text, last)
	}
	b.job.stdout.Write([]byte(text))
	b.job.stderr.Write([]byte(second.stderr.String()))
	b.note("gone on with: exit status %d", status)
	return status
}

// partedSaid reports whether a submitter that was cut off from all peers says so in one
// of the ways in which it can notice: it has heard of no majority; or of one that had
// some peers left, and not all ranks; or the job was over but for its files.
func partedSaid(said string) bool {
	return slices.ContainsFunc([]string{
		"cut off from the majority of the job's peers", "lost all its replicas", "could not be collected",
	}, func(reason string) bool { return strings.Contains(said, reason) })
}

// outvoted reports whether the majority of those who agree on the views may have been
// lost before others took their places: they are the submitter's peer and, of those of
// the job, two, or four where it has so many.
func (b *battle) outvoted() bool {
	peers := make(map[string]bool)
	for _, id := range b.job.placed {
		peers[id] = true
	}
	if len(peers) < 4 {
		return len(b.struck) > 1
	}
	return len(b.struck) > 2
}

// exposed are the ranks none of whose replicas is sure to have survived.
func (b *battle) exposed() []int {
	var ranks []int
	for rank := range b.plan.N {
		safe := 0
		for replica := range b.plan.R {
			if b.harm[nemesis.Process{Rank: rank, Replica: replica}] == nemesis.None {
				safe++
			}
		}
		if safe == 0 {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}
