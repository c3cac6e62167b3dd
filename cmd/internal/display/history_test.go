package display

import (
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/control/status"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/owner/journal"
)

func TestO3HistoryShowsRunningAndFinishedJobs(t *testing.T) {
	const who, digest = "12D3KooWGzxzKZYveHXtpG6AsrUJBcWxHBFS2HsEoGTxrMLvKXtf", "0a1b2c3d4e5f"
	now := time.Now()
	running := Jobs([]status.HostedJob{
		{Job: "3f2b8c1e77", Submitter: who, Class: "everyone", Program: "heat", Kind: "wasm", Digest: digest, Slots: 2, State: "running", Since: now.Add(-90 * time.Second), Use: launch.Use{CPU: 170 * time.Second, Memory: 40 << 20}},
		{Job: "77", Submitter: who, Slots: 1, State: "running", Use: launch.Use{Starved: 1}},
		{Job: "78", Submitter: who, Slots: 1, State: "running", Paused: now},
		{Job: "99", Submitter: who, Slots: 1, State: "held"},
	}, now)
	expectFits(t, running, "3f2b8c1e  "+submit.ShortPeer(who)+"  everyone  heat     wasm  0a1b2c3d\n",
		"  running: 2 slots, 1m30s, CPU 2m50s, memory 40.0 MiB\n", "  running, starved: 1 slot\n", "  running, suspended: 1 slot\n", "  held: 1 slot\n")
	past := History([]journal.Entry{
		{Job: "3f2b8c1e77", Submitter: who, Class: "everyone", Program: "\x1b]0;owned\x07" + strings.Repeat("x", 300), Kind: "native", Digest: digest, Processes: 2,
			Since: now.Add(-time.Hour), Until: now, CPU: 90 * time.Minute, Memory: 64 << 20, Staged: 3 << 20, Output: 5 << 10,
			Ended: "stopped by the submitter: \x1b[2J" + strings.Repeat("y", 300)},
		{Job: "98", Submitter: who, Class: "mine", Program: "quick", Processes: 1, Since: now, Until: now, Ended: "this peer is closing"},
		{Job: "99", Submitter: who, Program: "cut", Processes: 1, Since: now},
	})
	expectFits(t, past, "  everyone  ", "  native  0a1b2c3d\n", "  ?]0;owned?x…  ",
		"  2 processes: 1h0m0s, CPU 1h30m0s, memory 64.0 MiB, files 3.0 MiB,\n               output 5.0 KiB\n",
		"  ended: stopped by the submitter: ?[2Jyyy",
		"  1 process: 0s, CPU 0s, memory -, files 0.0 KiB, output 0.0 KiB\n  ended: this peer is closing\n",
		"  1 process: running, or the peer was killed before the job ended\n")
	if strings.ContainsAny(past, "\x1b\x07") {
		t.Errorf("the output contains a stranger's control sequences: %q", past)
	}
	if Jobs(nil, now) == "" || History(nil) == "" {
		t.Error("empty output for no jobs")
	}
}
