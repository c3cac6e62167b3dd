package replication

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A pairedJob is a job of three ranks with two replicas each. The replicas of rank 0 send; all others only
// receive.
type pairedJob struct {
	t     *testing.T
	procs map[view.Process]*Protocol
	found map[stream]uint64 // first message for which 0.1 reports a difference
}

func newPairedJob(t *testing.T) *pairedJob {
	w := &pairedJob{t: t, procs: make(map[view.Process]*Protocol), found: make(map[stream]uint64)}
	v := view.New(3, 2)
	for _, p := range v.Processes() {
		w.procs[p] = New(p, v, Secret{byte(p.Rank), byte(p.Replica)})
	}
	return w
}

// carry delivers the output of from, and all frames that are sent in answer to it.
func (w *pairedJob) carry(from view.Process, out protection.Output) {
	for _, d := range out.Diverged {
		if s := (stream{d.Context, d.Receiver.Rank}); from.Replica == 0 {
			w.t.Errorf("the master reports that %+v differs from the message that it sent", d)
		} else if w.found[s] == 0 || d.Seq < w.found[s] {
			w.found[s] = d.Seq
		}
	}
	for _, e := range slices.Clone(out.Send) {
		next, err := w.procs[e.To].Receive(from, e.Frame)
		if err != nil {
			w.t.Error(err)
		}
		w.carry(e.To, next)
	}
}

func (w *pairedJob) send(replica int, ms []protection.Message) {
	from := view.Process{Replica: replica}
	for _, m := range ms {
		m.Payload = slices.Clone(m.Payload)
		w.carry(from, w.procs[from].Send(m))
	}
}

func (w *pairedJob) tick() {
	for _, p := range view.New(3, 2).Processes() {
		w.carry(p, w.procs[p].Tick())
	}
}

// row returns random messages of a program.
func row(rng *rand.Rand) []protection.Message {
	ms := make([]protection.Message, 2+rng.IntN(80))
	for i := range ms {
		b := make([]byte, 1+rng.IntN(600))
		for k := range b {
			b[k] = byte(rng.Uint32())
		}
		ms[i] = protection.Message{Context: uint32(rng.IntN(2)), Dest: 1 + rng.IntN(2), Tag: int32(rng.IntN(3)), Payload: b}
	}
	return ms
}

// names returns the stream of each message, and the number of the message in the stream.
func names(ms []protection.Message) (ss []stream, seqs []uint64) {
	last := make(map[stream]uint64)
	for _, m := range ms {
		s := stream{m.Context, m.Dest}
		last[s]++
		ss, seqs = append(ss, s), append(seqs, last[s])
	}
	return ss, seqs
}

// changes lists the ways in which a replica may treat message i differently.
var changes = []struct {
	name   string
	change func(rng *rand.Rand, ms []protection.Message, i int)
}{
	{"a bit", func(rng *rand.Rand, ms []protection.Message, i int) {
		ms[i].Payload = slices.Clone(ms[i].Payload)
		ms[i].Payload[rng.IntN(len(ms[i].Payload))] ^= 1 << rng.IntN(8)
	}},
	{"shorter", func(_ *rand.Rand, ms []protection.Message, i int) {
		ms[i].Payload = ms[i].Payload[:len(ms[i].Payload)-1]
	}},
	{"longer", func(_ *rand.Rand, ms []protection.Message, i int) {
		ms[i].Payload = append(slices.Clone(ms[i].Payload), 0)
	}},
	{"tag", func(_ *rand.Rand, ms []protection.Message, i int) { ms[i].Tag++ }},
	{"mode", func(_ *rand.Rand, ms []protection.Message, i int) { ms[i].Sync = true }},
	{"another message before it", func(_ *rand.Rand, ms []protection.Message, i int) { ms[i] = ms[len(ms)-1] }},
	{"destination", func(_ *rand.Rand, ms []protection.Message, i int) { ms[i].Dest = 3 - ms[i].Dest }},
	{"communicator", func(_ *rand.Rand, ms []protection.Message, i int) { ms[i].Context = 1 - ms[i].Context }},
}

// firstDifference returns the first difference between two message sequences in each stream: the first number at
// which both have a message, but different ones.
func firstDifference(a, b []protection.Message) map[stream]uint64 {
	find := make(map[string]protection.Message)
	ss, seqs := names(a)
	for i, s := range ss {
		find[fmt.Sprint(s, seqs[i])] = a[i]
	}
	want := make(map[stream]uint64)
	ss, seqs = names(b)
	for i, s := range ss {
		m, ok := find[fmt.Sprint(s, seqs[i])]
		same := m.Tag == b[i].Tag && m.Sync == b[i].Sync && slices.Equal(m.Payload, b[i].Payload)
		if ok && !same && want[s] == 0 {
			want[s] = seqs[i]
		}
	}
	return want
}

// TestR1FirstDifferenceIsFound checks that any difference is found in the first message that differs, with the
// first acknowledgement of that message, whether the replica has already produced the message or not.
func TestR1FirstDifferenceIsFound(t *testing.T) {
	base := rand.Uint64()
	for _, c := range changes {
		for _, behind := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, behind %v", c.name, behind), func(t *testing.T) {
				for n := range uint64(40) {
					rng := rand.New(rand.NewPCG(base, n))
					master := row(rng)
					replica := slices.Clone(master)
					c.change(rng, replica, rng.IntN(len(replica)))
					w := newPairedJob(t)
					if behind {
						w.send(0, master)
						w.tick()
						w.send(1, replica)
					} else {
						w.send(1, replica)
						w.send(0, master)
						w.tick()
					}
					want := firstDifference(master, replica)
					if fmt.Sprint(w.found) != fmt.Sprint(want) {
						t.Fatalf("seed %d, %d: found %v, want %v", base, n, w.found, want)
					}
					if p := w.procs[view.Process{Replica: 1}]; p.audit.claimed < 0 || !behind && p.audit.claimed > claimCost*8*ackMessages {
						t.Fatalf("seed %d, %d: claims of %d bytes", base, n, p.audit.claimed)
					}
				}
			})
		}
	}
}

// TestClaimsAreBoundedAndForgotten checks that a replica that is always behind keeps a bounded number of digests,
// and no digests once it has caught up.
func TestClaimsAreBoundedAndForgotten(t *testing.T) {
	p := New(view.Process{Replica: 1}, view.New(2, 2), Secret{})
	b := make([]byte, keySize+8*ackMessages)
	for n := range uint64(2 * maxClaimed / len(b)) {
		f := control(frame.Ack, 1, (n+1)*ackMessages, string(b))
		if _, err := p.Receive(view.Process{Rank: 1}, f); err != nil {
			t.Fatal(err)
		}
	}
	if c := p.audit.claimed; c < maxClaimed || c > maxClaimed+claimCost+len(b) {
		t.Errorf("claims of %d bytes, want about %d", c, maxClaimed)
	}
	if out := p.Send(protection.Message{Dest: 1}); len(out.Diverged) != 1 || p.audit.claimed != 0 {
		t.Errorf("the process found %v, and keeps claims of %d bytes", out.Diverged, p.audit.claimed)
	}
	out := p.Send(protection.Message{Dest: 1})
	if len(out.Diverged) != 0 {
		t.Errorf("the process reported the difference twice: %v", out.Diverged)
	}
}

// FuzzDecodeClaim checks that any payload of an acknowledgement is harmless, and that an accepted payload contains
// a digest for each message that it covers.
func FuzzDecodeClaim(f *testing.F) {
	f.Add(uint64(0), []byte{})
	f.Add(uint64(3), make([]byte, keySize+16))
	f.Add(uint64(1), make([]byte, keySize+16))
	f.Add(uint64(1<<63), make([]byte, keySize+8*ackMessages))
	f.Fuzz(func(t *testing.T, seq uint64, b []byte) {
		c, err := decodeClaim(seq, b)
		if err != nil {
			return
		}
		if len(b) > 0 && c.end() != seq+1 {
			t.Errorf("messages up to %d: %+v ends with %d", seq, c, c.end()-1)
		}
		for n := c.first; n < c.end(); n++ {
			c.of(n)
		}
		for _, n := range []uint64{0, c.first + 1, c.end(), 1 << 63} {
			if rest := c.from(n); len(rest.digest) > 0 && (rest.first < n || rest.end() != c.end()) {
				t.Errorf("from %d: %+v", n, rest)
			}
		}
	})
}
