package switchboard

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

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
func (t *Table) addresses() (n int) {
	for _, as := range t.Addrs {
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
	at := Place{Self: "self", N: n, R: 1}
	table, err := NewTable(rows, at, nil)
	if err != nil || table.addresses() != maxTableAddrs || len(table.Addrs[p2ppeer.ID(rows[n-1].Peer)]) != maxTableAddrs/n {
		t.Fatalf("%d addresses, %v", table.addresses(), err)
	}
	joined := 0
	for i := range 100_000 {
		p := view.Process{Rank: i % n, Replica: 1 + i/n}
		if err = table.Add(invented(p, n+i), false); err != nil {
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
	at := Place{Self: "self", N: 1, R: 1}
	long, err := ma.NewMultiaddr("/dns4/" + strings.Repeat("a", jobpb.MaxAddr) + "/tcp/1")
	if err != nil {
		t.Fatal(err)
	}
	row := invented(view.Process{}, 1)
	row.Addrs[0] = long.Bytes()
	table, err := NewTable([]*jobpb.Member{row}, at, nil)
	if err != nil || table.addresses() != jobpb.MaxAddrs-1 || slices.ContainsFunc(table.Addrs[p2ppeer.ID(row.Peer)], long.Equal) {
		t.Errorf("read %v (%v)", table.Addrs, err)
	}
	row.Peer = append([]byte{0, maxID}, make([]byte, maxID)...)
	if _, err := NewTable([]*jobpb.Member{row}, at, nil); err == nil {
		t.Error("an ID that is too long was accepted")
	}
}
