package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
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
	nemesisTime  = flag.Duration("nemesis", 20*time.Second, "begin new rounds of TestNemesis for this `DURATION`")
	nemesisSeed  = flag.Uint64("nemesis.seed", 0, "`SEED` of TestNemesis; 0 chooses a new one")
	nemesisOut   = flag.String("nemesis.out", "", "write the table of TestNemesis into `FILE`, such as docs/nemesis.md")
	nemesisRound = flag.Int("nemesis.round", -1, "run only this `ROUND` of TestNemesis; -1 runs all")
)

// TestNemesis runs jobs with known answers on separate machines, and injects faults into their
// processes, peers and network, as planned by package nemesis. A job must survive the required
// faults with the right answer. When a rank has lost all its replicas, p2prun must report that. No
// job may hang or leave anything behind.
func TestNemesis(t *testing.T) {
	seed := *nemesisSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-nemesis.seed=%d", seed)
	newNetns(t) // skips the test without permission to create one
	tally := newTally()
	defer func() {
		t.Logf("after %v:\n%s", tally.took(), tally)
		if *nemesisOut != "" {
			if err := markdown.Insert(*nemesisOut, "nemesis", fmt.Sprintf("%s\n`-nemesis.seed %d`, %v.\n", tally, seed, tally.took())); err != nil {
				t.Error(err)
			}
		}
	}()
	defer tally.demand(t)
	round := func(number int) {
		t.Run(fmt.Sprintf("round %d", number), func(t *testing.T) {
			t.Logf("to repeat this round: -nemesis.seed %d -nemesis.round %d", seed, number)
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

// A field holds the machines on which the jobs of a round run: those of the peers, and the submitter's machine,
// which has the number 0.
type field struct {
	t         *testing.T
	network   *ether.Switch
	machines  []*machine
	submitter *peerProcess
	peers     []*peerProcess // peer i is on machine i+1
	tally     *tally
	lie       string // file that contains the current lie of the liar

	disturbances map[int]disturbance // current disturbances of the network
	disturbed    int
}

func runRound(t *testing.T, r nemesis.Round, tally *tally) {
	f := &field{t: t, tally: tally, disturbances: make(map[int]disturbance)}
	f.machines, f.network = newEther(t, r.Network, nemesis.Peers+1)
	f.submitter = f.startResident(t.TempDir())
	f.submitter.awaitReady()
	command, err := liar()
	if err != nil {
		t.Fatal(err)
	}
	f.lie = filepath.Join(t.TempDir(), "lie")
	deceitful := f.machines[nemesis.Liar+1]
	deceitful.named, deceitful.env = []string{command}, append(deceitful.env, "LIE="+f.lie)
	for i := range nemesis.Peers {
		if i%2 == 0 { // the others have the usual clock
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

// startResident starts the submitter's peer, at the addresses that the other peers know; the caller
// must call awaitReady.
func (f *field) startResident(home string) *peerProcess {
	f.t.Helper()
	args := []string{"--slots", "0", "--listen", "/ip4/0.0.0.0/tcp/4001", "--listen", "/ip4/0.0.0.0/udp/4001/quic-v1"}
	for _, p := range f.peers {
		args = append(args, "--supernode", p.addr)
	}
	return f.machines[0].startPeer(f.t, home, args...)
}

// bootResident boots the submitter's peer again if it was killed.
func (f *field) bootResident() {
	f.t.Helper()
	if !f.submitter.alive() {
		f.submitter = f.startResident(f.submitter.home)
		f.submitter.awaitReady()
	}
}

// boot starts peer i; the caller must call awaitReady.
func (f *field) boot(i int, home string) *peerProcess {
	f.t.Helper()
	return f.machines[i+1].startPeer(f.t, home, "--supernode", f.submitter.addr, "--slots", strconv.Itoa(nemesis.Slots))
}

// run runs one job from its submission until nothing of it is left.
func (f *field) run(j nemesis.Job) {
	b := &battle{
		field: f, plan: j, program: program(j), harm: make(map[nemesis.Process]nemesis.Harm),
		harmed: make(map[nemesis.Process]time.Duration), since: make(map[string]time.Duration),
	}
	f.tally.jobs[j.Program]++
	defer func() {
		if b.failing != "" {
			f.tally.wrongs[b.failing]++
			f.t.Logf("%s:\n%s", b.failing, b)
		}
	}()
	submitted := time.Now()
	took := func() time.Duration { return time.Since(submitted).Round(10 * time.Millisecond) }
	b.failing = nemesis.Hang
	b.submit()
	b.strikeEarly()
	b.job.waitRunning()
	b.note("running after %v", took())
	b.fight()
	b.judge()
	b.note("over after %v", took())
	b.failing = nemesis.Leftovers
	f.recover()
	b.note("nothing left and all peers back after %v", took())
	b.failing = ""
	f.t.Log(b)
}

// recover expects that nothing of the job is left, and boots the killed peers again in their homes.
// Then nothing may be left there either.
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

// A battle is one job with its faults.
type battle struct {
	*field
	plan      nemesis.Job
	program   known
	jobs      []*job    // the p2pruns of the job: the first, and those that have resumed it
	job       *job      // the last of jobs
	home      string    // home in which p2prun kept the job, or that of the peer it was handed to
	orphan    bool      // p2prun was killed, and the job has not been resumed yet
	voteless  bool      // the submitter was killed; its successor has no vote
	begun     time.Time // time when the job began to run
	chronicle *chronicle
	ending    nemesis.Ending // facts known of its end so far

	harm    map[nemesis.Process]nemesis.Harm  // greatest harm to each process
	harmed  map[nemesis.Process]time.Duration // time of the first harm to each process
	since   map[string]time.Duration          // peers that may have been lost, by ID, with the time
	strikes []nemesis.Strike                  // strikes carried out
	early   *peerProcess                      // peer whose disk was full before the job ran
	todo    []moment
	log     []string
	failing nemesis.Verdict // verdict if the test fails now
}

// String describes the job and its faults for a test report.
func (b *battle) String() string {
	return fmt.Sprintf("%s, n=%d r=%d, at %v\n\t%s", b.program.command, b.plan.N, b.plan.R, b.jobs[0].placed, strings.Join(b.log, "\n\t"))
}

func (b *battle) note(format string, args ...any) {
	b.log = append(b.log, fmt.Sprintf(format, args...))
}

// submit submits the job, through the submitter's peer or as a submit-only peer.
func (b *battle) submit() {
	if err := os.WriteFile(b.lie, []byte(b.plan.Lie), 0o600); err != nil {
		b.t.Fatal(err)
	}
	args := []string{"-n", strconv.Itoa(b.plan.N), "-r", strconv.Itoa(b.plan.R), "-w", "60", "--timeout", "180s", "--away", "30s"}
	if b.plan.Concentrate {
		args = append(args, "-a", "concentrate")
	}
	b.home = b.submitter.home
	if !b.plan.Client {
		b.home = b.t.TempDir()
		args = append(args, "--supernode", b.submitter.addr)
	}
	b.job = b.machines[0].submit(b.t, b.home, slices.Concat(args, b.program.options, b.program.command)...)
	b.jobs = append(b.jobs, b.job)
}

// strikeEarly hits a peer that the job may be about to use.
func (b *battle) strikeEarly() {
	early := b.plan.Early
	if early.Phase == "" {
		return
	}
	b.job.waitFor(early.Phase, func(e event) bool { return e.Phase == early.Phase })
	p := b.peers[early.Peer]
	b.note("%s: %s, of number %d, %s", early.Phase, early.Kind, early.Peer, p.id)
	if early.Kind == nemesis.KillPeer {
		p.kill()
	} else if clear, ok := fill(b.t, p.home); ok {
		b.early = p
		b.todo = append(b.todo, moment{end: true, do: clear})
	} else {
		b.tally.undone[string(early.Kind)]++
		return
	}
	b.tally.strikes[string(early.Kind)+", early"]++
}
