package launch

import (
	"encoding/binary"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/jobspec"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/launch/switchboard"
)

// TestO4AddressesAreRemovedWithTheJob checks that the addresses are removed with the job, except
// those of peers that another job has.
func TestO4AddressesAreRemovedWithTheJob(t *testing.T) {
	m := newMember(t, 0)
	book := m.Peerstore()
	before := len(book.PeersWithAddrs())
	job := func(id string, peers int) *job {
		j := &job{service: m.launch, submitter: "submitter"}
		j.spec = &jobspec.Spec{ID: id, N: peers, R: 1}
		var rows []*jobpb.Member
		for i := range peers {
			rows = append(rows, &jobpb.Member{
				Process: &jobpb.Process{Rank: uint32(i)}, Peer: binary.BigEndian.AppendUint32([]byte{0, 4}, uint32(i)), Addrs: [][]byte{{4, 192, 0, 2, 1, 6, 16, 1}},
			})
		}
		var err error
		if j.members, err = switchboard.NewTable(rows, j.place(), nil); err != nil {
			t.Fatal(err)
		}
		j.protect()
		return j
	}
	wide, narrow := job("wide", 1000), job("narrow", 1)
	if n := len(book.PeersWithAddrs()); n != before+1000 {
		t.Fatalf("%d peers in the address book, %d before", n, before)
	}
	wide.unprotect()
	if n := len(book.PeersWithAddrs()); n != before+1 {
		t.Errorf("%d peers in the address book with one job left, %d before", n, before)
	}
	narrow.unprotect()
	if n := len(book.PeersWithAddrs()); n != before {
		t.Errorf("%d peers in the address book, %d before", n, before)
	}
}
