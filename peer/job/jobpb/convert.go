package jobpb

import (
	"fmt"
	"slices"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// MaxMeasured bounds the peers of a job whose distances are measured, since each peer measures all others.
const MaxMeasured = 64

// Bounds on the addresses of a peer: their number, and the length of each in bytes. A peer may claim
// anything about itself.
const (
	MaxAddrs = 32
	MaxAddr  = 256
)

// MaxMessage bounds one message of the control stream, in bytes.
const MaxMessage = 4 << 20

// Left is the code with which a submitter resets a control stream permanently: the peer's part of the job
// is over. Any other end of the stream may be due to the link, or to the submitter's process.
const Left network.StreamErrorCode = 0x1ef7

// Replaced is the code with which a peer resets a submitter's control stream when another process of the
// submitter has resumed the job.
const Replaced network.StreamErrorCode = 0x1ef8

// Unwritten is the code with which either side resets a control stream after a write timeout: the
// connection does not work, but the job has not ended.
const Unwritten network.StreamErrorCode = 0x1ef9

// GroupAgain returns the name of the fault detector's group of a job in a generation.
func GroupAgain(job string, generation uint32) string {
	if generation == 0 {
		return job
	}
	return fmt.Sprintf("%s again %d", job, generation)
}

// GroupOf returns the name of the fault detector's group of the submitter and the peer of process p, which
// has joined the running job.
func GroupOf(job string, p view.Process) string { return job + " " + p.String() }

// FromProcess returns the message for p.
func FromProcess(p view.Process) *Process {
	return &Process{Rank: uint32(p.Rank), Replica: uint32(p.Replica)}
}

// View returns the process. A nil message yields process 0.0, which the receiver must handle like any
// other.
func (p *Process) View() view.Process {
	return view.Process{Rank: int(p.GetRank()), Replica: int(p.GetReplica())}
}

// FromView returns the message for v.
func FromView(v view.View) *View {
	states := make([]byte, len(v.States))
	for i, s := range v.States {
		states[i] = byte(s)
	}
	masters := make([]uint32, len(v.Masters))
	for rank, k := range v.Masters {
		masters[rank] = uint32(k)
	}
	return &View{
		Epoch: v.Epoch, N: uint32(v.N), R: uint32(v.R), States: states, Masters: masters,
		Since: slices.Clone(v.Since), Aside: slices.Clone(v.Aside), Returned: slices.Clone(v.Returned),
	}
}

// View returns the view, or an error if it is not valid.
func (m *View) View() (view.View, error) {
	v := view.View{Epoch: m.GetEpoch(), N: int(m.GetN()), R: int(m.GetR()), Since: slices.Clone(m.GetSince()), Aside: slices.Clone(m.GetAside()), Returned: slices.Clone(m.GetReturned())}
	for _, s := range m.GetStates() {
		v.States = append(v.States, view.State(s))
	}
	for _, k := range m.GetMasters() {
		v.Masters = append(v.Masters, int(k))
	}
	if err := v.Valid(); err != nil {
		return view.View{}, fmt.Errorf("view of epoch %d: %w", v.Epoch, err)
	}
	return v, nil
}

// FromSums returns the messages for sums.
func FromSums(sums []protection.Sum) []*Sum {
	all := make([]*Sum, len(sums))
	for i, s := range sums {
		all[i] = &Sum{Context: s.Context, Dest: uint32(s.Dest), Count: s.Count, Digest: s.Digest}
	}
	return all
}

// Sent returns the sums of a process of a job with view v, or an error if no process can have sent them.
func (m *Account) Sent(v view.View) ([]protection.Sum, error) {
	sums := make([]protection.Sum, 0, min(len(m.GetSums()), protection.MaxSums+1))
	for _, s := range m.GetSums()[:min(len(m.GetSums()), protection.MaxSums+1)] {
		sums = append(sums, protection.Sum{Context: s.GetContext(), Dest: int(s.GetDest()), Count: s.GetCount(), Digest: s.GetDigest()})
	}
	return sums, protection.ValidSums(sums, v)
}

// FromDivergence returns the message for the divergence that process p reports.
func FromDivergence(p view.Process, d protection.Divergence) *Diverged {
	return &Diverged{
		Process: FromProcess(p), Receiver: FromProcess(d.Receiver), Context: d.Context, Seq: d.Seq,
		Tag: d.Tag, Length: d.Length, Produced: d.Produced, Received: d.Received,
	}
}

// Divergence returns the divergence that a process of a job with view v reports, or an error if no process
// of the job can report it.
func (m *Diverged) Divergence(v view.View) (protection.Divergence, error) {
	d := protection.Divergence{
		Receiver: m.GetReceiver().View(), Context: m.GetContext(), Seq: m.GetSeq(), Tag: m.GetTag(),
		Length: m.GetLength(), Produced: m.GetProduced(), Received: m.GetReceived(),
	}
	return d, d.Valid(m.GetProcess().View(), v)
}
