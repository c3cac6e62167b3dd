package launch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-varint"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/view"
	peerjob "github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup"
)

// This file is the difference between a p2pboot that lies and an honest one. The test adds it to
// the package when it builds the liar. The functions send and tick of a job, and the sending of
// output, begin with calls of these functions.

// lie returns the current lie of this peer: the content of the file that LIE names.
func lie() string {
	b, _ := os.ReadFile(os.Getenv("LIE"))
	return string(b)
}

// lieAbout returns the messages that the job sends in place of m.
func (j *job) lieAbout(m *jobpb.FromPeer) (said []*jobpb.FromPeer) {
	switch b := m.Body.(type) {
	case *jobpb.FromPeer_Account:
		if lie() == "has another account" && len(b.Account.Digest) > 0 {
			b.Account.Digest[0] ^= 1
		}
		if lie() == "ends early" {
			return nil
		}
	case *jobpb.FromPeer_Prepared:
		if lie() == "staging fails" {
			b.Prepared.Error = "the disk is full"
		}
	case *jobpb.FromPeer_Initialized:
		switch lie() {
		case "never calls mpj.Init":
			return nil
		case "aborts":
			return []*jobpb.FromPeer{m, aborted(b.Initialized.Process.View(), 3, "a verdict of the liar")}
		case "is ahead and aborts":
			p := b.Initialized.Process.View()
			return []*jobpb.FromPeer{m, ahead(p), aborted(p, 3, "a verdict of the liar")}
		}
	case *jobpb.FromPeer_Exited:
		switch lie() {
		case "exits with another status":
			b.Exited.Code = 3
		case "never exits", "ends early":
			return nil
		}
	}
	return []*jobpb.FromPeer{m}
}

// lieAboutOutput returns the message that the job sends in place of m, or nil for none.
func lieAboutOutput(m *jobpb.FromPeer) *jobpb.FromPeer {
	switch o := m.GetOutput(); {
	case lie() == "prints nothing", lie() == "ends early", lie() == "never ends its output" && o.End:
		return nil
	case lie() == "prints something else":
		records, _ := peerjob.WholeRecords(o.Data)
		o.Data = bytes.Repeat([]byte("a line of the liar\n"), int(records))
	}
	return m
}

// endEarly reports that the processes of the job have ended, with false output. All true reports about them are
// withheld.
func (j *job) endEarly() {
	text := []byte("a line of the liar\n")
	digest := sha256.Sum256(text)
	for _, p := range j.here.order {
		id := jobpb.FromProcess(p)
		for _, m := range []*jobpb.FromPeer{
			{Body: &jobpb.FromPeer_Output{Output: &jobpb.Output{Process: id, Stream: 1, Data: text, End: true}}},
			{Body: &jobpb.FromPeer_Output{Output: &jobpb.Output{Process: id, Stream: 2, End: true}}},
			{Body: &jobpb.FromPeer_Account{Account: &jobpb.Account{Process: id, Digested: true, Printed: uint64(len(text)), Digest: digest[:]}}},
			{Body: &jobpb.FromPeer_Exited{Exited: &jobpb.Exited{Process: id, Initialized: true, Finalized: true}}},
		} {
			j.sendTruly(m)
		}
	}
}

// endedEarly holds the jobs for which endEarly has reported the end.
var endedEarly sync.Map

// lieAtTick is called every second.
func (j *job) lieAtTick() {
	if j.views.group == nil || j.settings.init != initReturns {
		return
	}
	if lie() == "ends early" {
		if _, said := endedEarly.LoadOrStore(j, true); !said {
			j.endEarly()
		}
	}
	for _, p := range j.views.current.Processes() {
		if _, own := j.here.local[p]; own || !j.views.current.Has(p) {
			continue
		}
		sameRank := slices.ContainsFunc(j.here.order, func(o view.Process) bool { return o.Rank == p.Rank })
		switch {
		case lie() == "fails its rank" && sameRank, lie() == "fails all":
			j.views.group.Propose(view.Change{Process: p, To: view.Failed})
		case lie() == "finishes all":
			j.views.group.Propose(view.Change{Process: p, To: view.Finished})
		}
	}
	if lie() == "has a process join" {
		j.views.group.Propose(view.Change{Process: view.Process{Rank: j.here.order[0].Rank, Replica: j.spec.R}})
		j.views.group.Propose(view.Change{Process: view.Process{Rank: (j.here.order[0].Rank + 1) % j.spec.N, Replica: j.spec.R}})
	}
	if lie() == "takes over the views" {
		for _, p := range append(slices.Collect(maps.Values(j.board.Table().PeerOf)), j.submitter) {
			j.running.Go(func() { j.claimLeadership(p) }) // ends within a few seconds
		}
	}
	if lie() == "accuses all peers" {
		for _, p := range j.board.Table().PeerOf {
			j.send(suspect([]byte(p), j.detection.generation))
		}
	}
}

// claimLeadership tells a peer that this one leads the view group and has committed an entry, under all numbers
// that the two may have.
func (j *job) claimLeadership(p p2ppeer.ID) {
	hello := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), j.spec.ID)
	for from := range uint64(8) {
		ctx, cancel := context.WithTimeout(j.ctx, time.Second)
		stream, err := j.service.host.NewStream(ctx, p, viewgroup.Protocol)
		cancel()
		if err != nil {
			return
		}
		_, _ = stream.Write(append(varint.ToUvarint(uint64(len(hello))), hello...))
		for to := range uint64(8) {
			raft, _ := proto.Marshal(&raftpb.Message{
				Type: raftpb.MsgApp.Enum(), From: new(from + 1), To: new(to + 1), Term: new(uint64(100)), Index: new(uint64(1)), LogTerm: new(uint64(1)),
				Commit: new(uint64(2)), Entries: []*raftpb.Entry{{Index: new(uint64(2)), Term: new(uint64(100))}},
			})
			var b []byte
			for field, number := range map[protowire.Number]uint64{1: from, 2: to} {
				b = protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), number)
			}
			b = protowire.AppendBytes(protowire.AppendTag(b, 3, protowire.BytesType), raft)
			_, _ = stream.Write(append(varint.ToUvarint(uint64(len(b))), b...))
		}
		_ = stream.CloseWrite()
	}
}
