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

// A channelID names a channel. At most one channel with an ID exists: a process that opens it again has
// given up the earlier one.
type channelID struct{ from, to view.Process }

// An openChannel is a channel that this peer has opened or accepted for one of its processes.
type openChannel struct {
	breakOff context.CancelFunc
	route    route // path of the channel; without a kind: not known yet, or opened by the other peer
	peer     p2ppeer.ID
}

// A channelState holds the channels of the processes here, and what they depend on.
type channelState struct {
	kinds     []proclink.Kind // allowed by the user and the owner, best first
	keys      []byte          // of the processes that were there at the start, rank by rank; nil until the job has begun
	waiting   []func()        // functions that wait for keys
	channels  map[channelID]*openChannel
	board     *os.File                     // shared memory with the doorbells of the processes here, or nil
	cells     int                          // number of cells of board
	searches  map[p2ppeer.ID]*pathSearch   // searches for better paths to other peers
	distances map[p2ppeer.ID]time.Duration // measured round trips to other peers
	explain   bool                         // the submitter is told how other peers are reached
	told      map[p2ppeer.ID]channelPath   // the paths that it was told; nil: nothing yet
}

const (
	maxOpening = 1024 // bytes of the messages that open a channel

	// dialTimeout bounds the time in which a peer tries to reach another peer, before it refuses the
	// channel to its process. The process may ask again.
	dialTimeout = 5 * time.Second

	dialPause = 200 * time.Millisecond // initial pause between two attempts

	directPause   = 30 * time.Second // pause after a failed direct connection
	rejectedPause = time.Second      // pause after a direct connection that the listener turned away
)

// open handles a process's request for a channel to another process. If want is not empty, the channel must
// have that kind.
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
	if want == proclink.Stream { // the process could not use TCP, so situation avoids it for a while
		now := time.Now()
		j.searchOf(peer, now).failTCP(now)
	}
	j.running.Add(1)
	go j.openRemote(j.replace(channelID{p.id, to}), p, to, peer, j.situation(p.id, to))
}

// situation returns the obstacles between two processes that are known before any attempt. The processes
// are normally on different peers.
func (j *job) situation(from, to view.Process) (s situation) {
	if _, here := j.local[to]; !here && j.limitsUpload() {
		s.noDirect = uploadLimited
	} else if j.keyOf(from) == nil || j.keyOf(to) == nil {
		s.noDirect = "not both processes have a key"
	} else if search := j.searches[j.members.peerOf[to]]; search != nil && search.avoidsTCP(time.Now()) {
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

// openable returns an error unless the channel is permitted. Both processes must be in the view and in the
// membership table, and a receiver on this peer must still run.
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
	p.send(proclink.Message{Type: proclink.Refused, Process: &to, Text: text(err)}, nil)
}

// replace closes the channel c if it exists, and returns the context of the next one.
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
