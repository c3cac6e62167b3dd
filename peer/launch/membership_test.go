package launch

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/p2pmpi/p2pmpi/internal/jobspec"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// invented returns the row of process p on a nonexistent peer, with the maximum number of addresses.
func invented(p view.Process, number int) *jobpb.Member {
	row := &jobpb.Member{Process: jobpb.FromProcess(p), Peer: binary.BigEndian.AppendUint32([]byte{0, 4}, uint32(number))}
	for port := range jobpb.MaxAddrs {
		row.Addrs = append(row.Addrs, []byte{4, 192, 0, 2, byte(port), 6, 16, byte(port)})
	}
	return row
}

// addresses returns the number of addresses in the table.
func (m *membership) addresses() (n int) {
	for _, as := range m.addrs {
		n += len(as)
	}
	return n
}

// TestO4MembershipTableIsBounded checks the bounds of a table: in a large one, each peer has fewer
// addresses, and no more processes may join than a job can have.
func TestO4MembershipTableIsBounded(t *testing.T) {
	const n = 4096
	var rows []*jobpb.Member
	for i := range n {
		rows = append(rows, invented(view.Process{Rank: i}, i))
	}
	at := place{self: "self", n: n, r: 1}
	table, err := newMembership(rows, at)
	if err != nil || table.addresses() != maxTableAddrs || len(table.addrs[p2ppeer.ID(rows[n-1].Peer)]) != maxTableAddrs/n {
		t.Fatalf("%d addresses, %v", table.addresses(), err)
	}
	joined := 0
	for i := range 100_000 {
		p := view.Process{Rank: i % n, Replica: 1 + i/n}
		if err = table.add(invented(p, n+i), at, jobpb.MaxAddrs); err != nil {
			break
		}
		joined++
	}
	if err == nil || n+joined != view.MaxProcesses || table.addresses() > maxTableAddrs {
		t.Errorf("%d have joined, with %d addresses in all: %v", joined, table.addresses(), err)
	}
}

// TestO4AddressesOfAPeerAreBounded checks that addresses that are too long are skipped, and that an ID
// that is too long is an error.
func TestO4AddressesOfAPeerAreBounded(t *testing.T) {
	at := place{self: "self", n: 1, r: 1}
	long, err := ma.NewMultiaddr("/dns4/" + strings.Repeat("a", jobpb.MaxAddr) + "/tcp/1")
	if err != nil {
		t.Fatal(err)
	}
	row := invented(view.Process{}, 1)
	row.Addrs[0] = long.Bytes()
	table, err := newMembership([]*jobpb.Member{row}, at)
	if err != nil || table.addresses() != jobpb.MaxAddrs-1 || slices.ContainsFunc(table.addrs[p2ppeer.ID(row.Peer)], long.Equal) {
		t.Errorf("read %v (%v)", table.addrs, err)
	}
	row.Peer = append([]byte{0, maxID}, make([]byte, maxID)...)
	if _, err := newMembership([]*jobpb.Member{row}, at); err == nil {
		t.Error("an ID that is too long was accepted")
	}
}

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
			rows = append(rows, invented(view.Process{Rank: i}, i))
		}
		var err error
		if j.members, err = newMembership(rows, j.place()); err != nil {
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
