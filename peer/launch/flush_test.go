package launch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
)

// flusher prints more than a pipe holds, asks what the user has, then within a line,
// and at last goes on behind what it has not printed.
func flusher() int {
	l := enter(version.Protocol)
	l.say(proclink.Init, withKey)
	l.await(proclink.Start)
	asked := uint64(0)
	ask := func(behind *[2]uint64) *[2]uint64 {
		asked++
		l.say(proclink.Flush, func(m *proclink.Message) { m.Count, m.Records = asked, behind })
		m := l.await(proclink.Flushed)
		if m.Count != asked {
			fmt.Println("an answer to", m.Count)
		}
		return m.Records
	}
	for i := range 20_000 {
		fmt.Println("line", i)
	}
	fmt.Println("user has", *ask(nil))
	fmt.Print("half")
	fmt.Println(" a line:", ask(nil))
	fmt.Println("user has", *ask(nil))
	ask(nil)
	ask(&[2]uint64{30_000, 7})
	fmt.Println("behind")
	l.say(proclink.Finalized, nil)
	l.await(proclink.Bye)
	return 0
}

// TestWhoGoesOnFromACheckpointPrintsBehindWhatTheUserHas holds R6 of a process that has
// not printed what others of its rank have.
func TestWhoGoesOnFromACheckpointPrintsBehindWhatTheUserHas(t *testing.T) {
	j := newTestJob(t, 1, 1, nil, "flush")
	j.start()
	j.awaitInitialized()
	j.begin()
	p, l := view.Process{}, j.links[0]
	texts := make(map[uint64]string)
	for end := false; !end; {
		o := await(l, (*jobpb.FromPeer).GetOutput)
		if o.Stream != 1 {
			continue
		}
		for i, r := range o.Records {
			texts[o.First+uint64(i)] = strings.TrimSuffix(string(r), "\n")
		}
		shown := o.First + uint64(len(o.Records))
		l.say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Emitted{Emitted: &jobpb.Emitted{Stdout: shown}}})
		end = o.End
	}
	want := map[uint64]string{
		0: "line 0", 19_999: "line 19999", 20_000: "user has [20000 0]",
		20_001: "half a line: <nil>", 20_002: "user has [20002 0]", 30_000: "behind",
	}
	for n, text := range want {
		if texts[n] != text {
			t.Errorf("record %d is %q, want %q", n, texts[n], text)
		}
	}
	if len(texts) != 20_004 {
		t.Errorf("%d records", len(texts))
	}
	l.exited(p)
	j.stop()
}
