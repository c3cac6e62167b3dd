package launch

import (
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/jobspec"
	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// TestO4OnlyTheLatestViewIsQueued checks that only the latest view waits for a program that does not
// read its control socket, and that the program receives that view.
func TestO4OnlyTheLatestViewIsQueued(t *testing.T) {
	j := &job{ctx: t.Context()}
	j.spec = &jobspec.Spec{N: 2, R: 1}
	p := newProcess(j, view.Process{})
	p.greeted = true
	v := view.New(2, 1)
	for range 2 * maxQueuedMessages {
		v.Epoch++
		p.adopt(v)
	}
	if len(p.queue.outgoing) != 1 || p.reason != "" {
		t.Fatalf("%d messages wait, and the process %q", len(p.queue.outgoing), p.reason)
	}
	line, inherited, err := proclink.Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	program, err := proclink.FromFile(inherited)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	p.live = &instance{socket: line}
	j.running.Go(func() { p.queue.deliver(p.ctx, line) }) // ends with the process
	defer j.running.Wait()
	defer p.cancel()
	for range 2 { // later views arrive too
		m, _, err := program.Receive()
		if err != nil || m.Type != proclink.Update || m.View == nil || m.View.Epoch != v.Epoch {
			t.Fatalf("read %+v (%v), want view %d", m, err, v.Epoch)
		}
		v.Epoch++
		p.adopt(v)
	}
}
