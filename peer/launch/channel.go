package launch

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/pb"
)

// A channelID names a channel. There is one at a time: a process that opens it
// again has given up the one before.
type channelID struct{ from, to view.Process }

// An openChannel is one that this peer has opened, or taken, for one of its processes.
type openChannel struct {
	breakOff context.CancelFunc
	way      way // how it goes; no kind: not known yet, or it was opened elsewhere
	peer     p2ppeer.ID
}

// ways are how messages go from the processes here to others.
type ways struct {
	kinds     []proclink.Kind // of channels that the user and the owner allow, best first
	keys      []byte          // of the processes that were there at the start, rank by rank; nil: they have not begun
	waiting   []func()        // for keys
	channels  map[channelID]*openChannel
	board     *os.File                     // shared memory with the bells of the processes here, or nil
	cells     int                          // of board
	seekings  map[p2ppeer.ID]*seeking      // for better ways to other peers
	distances map[p2ppeer.ID]time.Duration // round trips to other peers, as far as they were measured
	explain   bool                         // the submitter is told how other peers are reached
	told      map[p2ppeer.ID]passage       // what it was told; nil: nothing yet
}

const (
	maxOpening = 1024 // bytes of the messages that open a channel

	// dialTimeout is how long a peer tries to reach another before it tells its
	// process that there is no channel. The process may ask again.
	dialTimeout = 5 * time.Second

	dialPause = 200 * time.Millisecond // between two tries, at first

	directPause     = 30 * time.Second // after a direct connection that could not be made
	turnedAwayPause = time.Second      // and after one to somebody else
)

// open answers a process that wants a channel, of a kind if that is not empty.
func (j *job) open(p *process, to view.Process, want proclink.Kind) {
	if err := j.openable(channelID{p.id, to}); err != nil {
		p.refuse(to, err)
		return
	}
	if q, ok := j.local[to]; ok {
		allowed := j.kinds
		if want != "" {
			allowed = both(allowed, []proclink.Kind{want})
		}
		j.openLocal(p, q, allowed)
		return
	}
	peer := j.members.peerOf[to]
	if want == proclink.Stream { // a process says so when it could not use TCP, which situation then knows
		now := time.Now()
		j.seekingOf(peer, now).fail(now)
	}
	j.running.Add(1)
	go j.openRemote(j.replace(channelID{p.id, to}), p, to, peer, j.situation(p.id, to))
}

// situation is that of two processes on different peers, as far as it is known
// before anything is tried.
func (j *job) situation(from, to view.Process) (s situation) {
	if _, here := j.local[to]; !here && j.limitsUpload() {
		s.noDirect = uploadLimited
	} else if j.keyOf(from) == nil || j.keyOf(to) == nil {
		s.noDirect = "not both processes have a key"
	} else if seeking := j.seekings[j.members.peerOf[to]]; seeking != nil && seeking.avoids(time.Now()) {
		s.noDirect = "the processes could not agree on keys over it"
	}
	return s
}

// keyOf returns the public key of a process, or nil.
func (j *job) keyOf(p view.Process) []byte {
	if p.Rank < 0 || p.Rank >= j.spec.N || p.Replica < 0 || p.Replica >= j.spec.R {
		return j.members.keys[p]
	}
	i := (p.Rank*j.spec.R + p.Replica) * proclink.KeySize
	if i+proclink.KeySize > len(j.keys) {
		return nil
	}
	key := j.keys[i : i+proclink.KeySize]
	if bytes.Count(key, []byte{0}) == len(key) {
		return nil
	}
	return key
}

// openable says whether there may be a channel: both processes are in the view
// and the membership table, and the receiver, if it is here, still runs.
func (j *job) openable(c channelID) error {
	for _, p := range []view.Process{c.from, c.to} {
		if _, ok := j.members.peerOf[p]; !ok || !j.view.Has(p) {
			return fmt.Errorf("process %v is not in the view", p)
		}
	}
	if q, ok := j.local[c.to]; ok && q.exit != nil {
		return fmt.Errorf("process %v has ended", c.to)
	}
	return nil
}

func (p *process) refuse(to view.Process, err error) {
	p.tell(proclink.Message{Type: proclink.Refused, Process: &to, Text: text(err)}, nil)
}

// replace breaks the channel c if there is one, and returns the context of the
// next.
func (j *job) replace(c channelID) context.Context {
	if before, ok := j.channels[c]; ok {
		before.breakOff()
	}
	ctx, cancel := context.WithCancel(j.ctx)
	j.channels[c] = &openChannel{breakOff: cancel}
	return ctx
}

func pbProcess(p view.Process) *pb.Process {
	return &pb.Process{Rank: uint32(p.Rank), Replica: uint32(p.Replica)}
}

func viewProcess(p *pb.Process) view.Process {
	return view.Process{Rank: int(p.GetRank()), Replica: int(p.GetReplica())}
}
