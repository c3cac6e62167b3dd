package reservation

import (
	"testing"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// TestMachineNames: names are equal for the peers of one machine, and cannot be compared between two
// jobs.
func TestMachineNames(t *testing.T) {
	job := Name{Job: "job", Submitter: "submitter"}
	name := machineName("boot", job)
	if len(name) != 2*machineSize || machineName("boot", job) != name {
		t.Errorf("the machine name is %q", name)
	}
	for what, other := range map[string]string{
		"machine":   machineName("another", job),
		"job":       machineName("boot", Name{Job: "another", Submitter: "submitter"}),
		"submitter": machineName("boot", Name{Job: "job", Submitter: "another"}),
	} {
		if other == name {
			t.Errorf("another %s gives the same machine name", what)
		}
	}
	if got := machineName("", job); got != "" {
		t.Errorf("an unknown machine is named %q", got)
	}
}

// TestGrantContainsTheMachineName: over the network, each job gets a different name.
func TestGrantContainsTheMachineName(t *testing.T) {
	peer := newHost(t)
	submitter := newHost(t, peer)
	s := newService(t, peer, Limits{Slots: 4})
	s.machine = "boot"

	var names []string
	for _, job := range []string{"a", "b"} {
		g, err := NewClient(submitter).Hold(t.Context(), peer.ID(), Request{Job: job, Slots: 1})
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, g.Machine)
	}
	if names[0] == "" || names[0] == names[1] {
		t.Errorf("the machine names for two jobs are %q", names)
	}
}

// TestMachineRunsOneReplicaOfARank: slots beyond N on one machine, or on a machine that the job avoids, are
// given back, and other peers are asked instead.
func TestMachineRunsOneReplicaOfARank(t *testing.T) {
	a := newAttempt(candidates(2, 2, 2, 2), Need{Job: "job", N: 2, R: 2, Strategy: Concentrate, NotOn: []string{"avoided"}})
	grant := func(peer int, machine string) {
		index := -1
		for i, p := range a.peers {
			if p.Peer == p2ppeer.ID(rune('a'+peer)) {
				index = i
			}
		}
		a.next()
		a.granted(index, Grant{Key: Key{byte(peer + 1)}, Slots: a.peers[index].wanted, Machine: machine})
	}
	grant(0, "m")
	grant(1, "m")
	grant(2, "avoided")
	if peers, slots := a.found(); peers != 1 || slots != 2 || a.enough() {
		t.Errorf("%d slots of %d peers count, enough: %v", slots, peers, a.enough())
	}
	if short := a.shortage(); short.Reasons[SameMachine] != 2 {
		t.Errorf("the shortage is %v", short)
	}
	grant(3, "")
	placed, err := a.place()
	if err != nil || len(placed) != 2 || placed[0].Machine != "m" {
		t.Fatalf("place returned %v, %v", placed, err)
	}
	if back, _ := a.unused(placed); len(back) != 2 {
		t.Errorf("unused returned the placements %v", back)
	}
}

// TestMachineNameIsKnownBeforeAHold: each submitter gets a different name, which differs from those of
// its jobs.
func TestMachineNameIsKnownBeforeAHold(t *testing.T) {
	s := newService(t, newHost(t), Limits{Slots: 4})
	if got := s.Machine("alice"); got != "" {
		t.Errorf("an unknown machine is named %q", got)
	}
	s.machine = "boot"
	same := newService(t, newHost(t), Limits{Slots: 4})
	same.machine = "boot"
	alice := s.Machine("alice")
	if alice == "" || same.Machine("alice") != alice {
		t.Errorf("two peers of one machine return %q and %q", alice, same.Machine("alice"))
	}
	if alice == s.Machine("bob") || alice == machineName("boot", Name{Submitter: "alice", Job: "job"}) {
		t.Error("two submitters, or a job and its submitter, get the same name")
	}
}

// TestShortageReportsUsableSlots: a shortage reports the slots that the job can use, free or not.
func TestShortageReportsUsableSlots(t *testing.T) {
	a := newAttempt([]Candidate{{Peer: "free", Slots: 1, Total: 1}, {Peer: "taken", Total: 9}, {Peer: "supernode"}}, Need{Job: "job", N: 2, R: 2})
	want := map[p2ppeer.ID]int{"free": 1, "taken": 2, "supernode": 0}
	for _, o := range a.shortage().Outcomes {
		if o.Offers != want[o.Peer] {
			t.Errorf("%s could give %d slots, want %d", o.Peer, o.Offers, want[o.Peer])
		}
	}
}
