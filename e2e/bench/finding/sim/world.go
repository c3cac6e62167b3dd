package sim

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/discovery"
)

// A Config configures a World.
type Config struct {
	Seed     uint64
	Live     int     // number of peers that are up
	Habits   Habits  // habits of all peers
	Suitable float64 // share of the peers that can run the program
	Idle     float64 // share of the suitable peers that have a free slot
	Found    int     // records that one lookup accepts
	Placed   float64 // share of the peers whose position the searcher knows, with an error of about 15 %

	Discovery discovery.Config // configuration of the searcher; only Parallel, ParallelPerSlot and Grace are used
}

// DefaultConfig returns a world of volunteers like those of SETI@home, with a searcher in default
// configuration. The shares of suitable and idle peers are assumed.
func DefaultConfig() Config {
	return Config{Live: 1000, Habits: seti, Suitable: 0.7, Idle: 0.7, Found: 500, Discovery: discovery.DefaultConfig()}
}

// recordLife is how long a record is kept after its peer's last announcement, and announcing is the
// interval between announcements, both in hours.
const (
	recordLife = 48
	announcing = 0.25
)

// A World is a set of volunteers at the moment of a search. Peers are ordered by their DHT keys.
type World struct {
	Config
	rnd   *rand.Rand
	peers []volunteer
}

// A volunteer is a peer, which is up or down.
type volunteer struct {
	key      uint64    // first bits of its DHT key
	sessions []session // the last one first
	place    place
	suitable bool
	idle     bool
}

// New returns a world.
func New(c Config) *World {
	w := &World{Config: c, rnd: rand.New(rand.NewPCG(c.Seed, uint64(c.Live)))}
	for live := 0; live < c.Live; {
		v := volunteer{
			key: w.rnd.Uint64(), sessions: c.Habits.sessions(w.rnd), place: somewhere(w.rnd),
			suitable: w.rnd.Float64() < c.Suitable, idle: w.rnd.Float64() < c.Idle,
		}
		if v.up(0) {
			live++
		}
		if len(v.sessions) > 0 {
			w.peers = append(w.peers, v)
		}
	}
	slices.SortFunc(w.peers, func(a, b volunteer) int { return cmp.Compare(a.key, b.key) })
	return w
}

// up reports whether v is up at the given hour.
func (v *volunteer) up(hour float64) bool {
	for _, s := range v.sessions {
		if s.from <= hour {
			return hour < s.to
		}
	}
	return false
}

// announcedSince reports whether v has announced itself between the given hour and the search.
func (v *volunteer) announcedSince(hour float64) bool {
	for _, s := range v.sessions {
		end := min(s.to, 0)
		last := s.from + announcing*float64(int((end-s.from)/announcing))
		if s.from < 0 && last >= hour {
			return true
		}
	}
	return false
}

// id returns the peer ID of peer i.
func id(i int) p2ppeer.ID {
	return p2ppeer.ID(binary.BigEndian.AppendUint64([]byte("peer"), uint64(i)))
}

// index returns the index of the peer with the given ID.
func index(id p2ppeer.ID) int { return int(binary.BigEndian.Uint64([]byte(id)[4:])) }

// randomPeer returns a random peer that is up.
func (w *World) randomPeer() int {
	for {
		if i := w.rnd.IntN(len(w.peers)); w.peers[i].up(0) {
			return i
		}
	}
}

// rtt returns one measured round-trip time between two peers, with jitter.
func (w *World) rtt(i, j int) time.Duration {
	return time.Duration(float64(w.peers[i].place.rtt(w.peers[j].place)) * (1 + 0.1*w.rnd.ExpFloat64()))
}
