package viewgroup

import (
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// TestV4PermissionToSetProcessesAside checks that the submitter may set a process aside and make it return, that
// the peer of a process may only make it return, and that other peers may do neither.
func TestV4PermissionToSetProcessesAside(t *testing.T) {
	const host, other = 2, 1
	p := view.Process{Replica: 1}
	member := func(t *testing.T) *Member {
		m, err := New(Config{View: view.New(1, 2), Peers: 3, Members: 3, RunsOn: map[view.Process]int{{}: other, p: host}, IDs: idsOf(3), Verify: verify, Sign: signs(0)})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	aside, returns := view.Change{Process: p, Aside: true}, view.Change{Process: p, Since: 1, At: 2}
	for name, c := range map[string]struct {
		author int
		change view.Change
		want   bool
	}{
		"the submitter sets the process aside":  {submitterPeer, aside, true},
		"the host sets the process aside":       {host, aside, false},
		"the other peer sets the process aside": {other, aside, false},
		"the submitter returns the process":     {submitterPeer, returns, true},
		"the host returns the process":          {host, returns, true},
		"the other peer returns the process":    {other, returns, false},
		"the host makes the process the master": {host, view.Change{Process: p, Since: 1}, false},
		"the host makes another process join":   {host, view.Change{Process: view.Process{Replica: 2}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := member(t)
			if c.change == returns {
				m.accept(new(Output), signed(submitterPeer, aside))
			}
			before := m.View().Epoch
			if got := m.matters(signed(c.author, c.change)); got != c.want {
				t.Errorf("matters: %v, want %v", got, c.want)
			}
			m.accept(new(Output), signed(c.author, c.change))
			if got := m.View().Epoch > before; got != c.want {
				t.Errorf("carried out: %v, want %v", got, c.want)
			}
		})
	}
}

// TestV4ReplayedProposalsSetNoProcessAside makes a malicious leader write the submitter's old proposals
// into the log again.
func TestV4ReplayedProposalsSetNoProcessAside(t *testing.T) {
	p := view.Process{Replica: 1}
	m, err := New(Config{View: view.New(1, 2), Peers: 3, Members: 3, RunsOn: map[view.Process]int{{}: 1, p: 2}, IDs: idsOf(3), Verify: verify, Sign: signs(0)})
	if err != nil {
		t.Fatal(err)
	}
	said := []Proposal{
		signed(submitterPeer, view.Change{Process: p, Aside: true}),
		signed(submitterPeer, view.Change{Process: p, Since: 1, At: 2}),
		signed(submitterPeer, view.Change{Process: p, Aside: true, At: 3}),
		signed(submitterPeer, view.Change{Process: p, Since: 1, At: 4}),
	}
	for i, s := range said {
		m.accept(new(Output), s)
		for range 2 {
			for _, old := range said[:i+1] {
				m.accept(new(Output), old)
			}
		}
		if want := uint64(i + 2); m.View().Epoch != want || m.View().Counts(p) != (i%2 == 1) {
			t.Errorf("after proposal %d: epoch %d, want %d; counts: %v", i, m.View().Epoch, want, m.View().Counts(p))
		}
	}
}
