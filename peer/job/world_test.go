package job

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A world is one whole job: the submitter, the peers with one process each, and the log of the view group.
//
//	host -- messages, output --> submitter -- requests --> log --> view of the hosts
//	  ^                              |  ^                   |
//	  +------ Begin, positions ------+  +-- agreed changes -+
type world struct {
	scenario
	hosts   []host
	sub     *submitter    // nil: its process was killed
	log     []view.Change // agreed on, in one order for all
	view    view.View     // after the log
	pending []request     // not agreed on yet
	user    []string      // by rank: output that the user has received
	kept    [][2]uint64   // by rank: recorded number of records that the user has received
	repeats []bool        // by rank: the user may get the last record twice, since it was not recorded
	begun   bool          // the submitter has recorded that the job has begun
	now     time.Duration
	result  *Result
}

// faults are the events, each with its maximum number, that need not happen.
type faults struct {
	crashes  int // of peers
	deaths   int // of processes
	breaks   int // of streams
	kills    int // of the submitter's process
	cuts     int // times that the submitter is cut off from all peers
	unkept   int // positions that are not recorded before a kill
	departs  int // peers whose owners take the machine back
	moves    int // reports that a replica is ahead of its master
	silences int // of peers, as their masters notice
	hangs    int // of processes before mpj.Init
	wrongs   int // processes that compute something else
}

// A scenario is a job, and the faults that may happen.
type scenario struct {
	name    string
	n, r    int
	free    int  // peers that can run a recruit
	plain   bool // the program does not use mpj
	aborts  bool // the program ends with Abort
	allowed faults
}

// A request is a change of the view that is to be agreed on.
type request struct {
	change view.Change
	peers  bool // requested by peers; the submitter's requests can get lost with it
}

// A host is a peer and its process, or a free peer.
type host struct {
	p       view.Process
	used    bool // it runs p
	alive   bool
	known   bool // p belongs to the job, according to the submitter's record
	joining bool // p is a recruit, or was one

	called, began bool // p has called mpj.Init; p has left it
	behind        bool // p has yet to catch up
	hangs, wrong  bool
	written       int  // number of lines
	torn          bool // killed in the middle of the next line
	exit          *Exit
	leaves        bool // its owner takes the machine back
	spoke         bool // p is, or has been, the output leader in the view of the host
	stale         bool // p fails with the others of its rank: it is set aside, or not known to have caught up

	said      []message // messages to the submitter, from the first one
	heard     int       // number of messages that this process of the submitter has received
	connected bool
	expected  int  // number of messages that the host had said when it reconnected
	sent      int  // number of whole records sent on this stream
	acked     int  // number of records that the user has, according to the submitter
	ended     bool // the end of the output has reached this process of the submitter
}

// A message is a report of a host about its process, or about another one of its rank.
type message struct {
	kind        messageKind
	about       view.Process
	since, term uint64
}

type messageKind byte

const (
	saysInitialized messageKind = iota
	saysExited
	saysAborted
	saysAccount
	saysAhead
	saysLeaves
	saysHealed
	saysUpToDate
	saysStalled
)

// A submitter is one process of the submitter.
type submitter struct {
	state    State
	emission Emission
	healing  Healing
	entry    Entry
	of       map[view.Process]Account
	odd      map[view.Process]bool
	resumed  bool
	cut      bool   // cut off, or some peers have yet to reconnect
	learned  int    // number of changes of the log that State knows
	leaders  []bool // by host: has been an output leader
	lost     []bool // by host: given up
	drained  []bool // by host: the user has all its output
	search   int    // rank that needs a free peer, or -1
	done     bool   // the answer is to be confirmed
}

// startWorld returns a job whose processes have been started.
func startWorld(sc scenario) *world {
	w := &world{
		scenario: sc, view: view.New(sc.n, sc.r), user: make([]string, sc.n), kept: make([][2]uint64, sc.n),
		repeats: make([]bool, sc.n), now: time.Second,
	}
	for _, p := range w.view.Processes() {
		w.hosts = append(w.hosts, host{p: p, used: true, alive: true, known: true, connected: true, spoke: w.view.IsOutputLeader(p)})
	}
	for range sc.free {
		w.hosts = append(w.hosts, host{alive: true})
	}
	w.sub = w.newSubmitter()
	return w
}

func (w *world) newSubmitter() *submitter {
	s := &submitter{
		state: *NewState(w.n, w.r), emission: *NewEmission(w.n),
		healing: *NewHealing(w.n, func(int) time.Duration { return time.Second }),
		of:      make(map[view.Process]Account), odd: make(map[view.Process]bool), search: -1,
		leaders: make([]bool, len(w.hosts)), lost: make([]bool, len(w.hosts)), drained: make([]bool, len(w.hosts)),
	}
	s.entry = *NewEntry(time.Unix(0, 0))
	w.recordLeaders(s)
	return s
}

// recordLeaders records the output leaders of the submitter's view.
func (w *world) recordLeaders(s *submitter) {
	for rank := range w.n {
		if p, ok := s.state.View().OutputLeader(rank); ok {
			s.leaders[w.hostOf(p)] = true
		}
	}
}

// hostOf returns the index of the host that runs p.
func (w *world) hostOf(p view.Process) int {
	return slices.IndexFunc(w.hosts, func(h host) bool { return h.used && h.p == p })
}

// rankOf returns the hosts of a rank's processes that belong to the job.
func (w *world) rankOf(rank int) (hosts []*host) {
	for i := range w.hosts {
		if h := &w.hosts[i]; h.used && h.known && h.p.Rank == rank {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// lines returns the output of a process that ends well. The last line is unfinished.
func (h *host) lines() []string {
	if h.wrong {
		return []string{"bad\n", "two"}
	}
	return text
}

// output returns the output that the peer sends, from record number from. An unfinished line follows the exit.
func (h *host) output(from int) (data string) {
	lines := h.lines()
	for _, line := range lines[min(from, h.written):h.written] {
		if h.isHeard(saysExited) || strings.HasSuffix(line, "\n") {
			data += line
		}
	}
	if h.torn && h.isHeard(saysExited) {
		data += lines[h.written][:1]
	}
	return data
}

// runs reports whether the program of the process can continue.
func (h *host) runs() bool { return h.used && h.alive && h.exit == nil && !h.hangs }

// failed reports whether the process ended otherwise than its program wanted.
func (h *host) failed() bool { return h.exit != nil && !h.exit.Good() && h.exit.Reason == "" }

func (w *world) clone() *world {
	c := *w
	c.hosts, c.log, c.pending = slices.Clone(w.hosts), slices.Clip(w.log), slices.Clone(w.pending)
	for i := range c.hosts {
		c.hosts[i].said = slices.Clip(c.hosts[i].said)
	}
	c.user, c.kept, c.repeats = slices.Clone(w.user), slices.Clone(w.kept), slices.Clone(w.repeats)
	if w.sub != nil {
		s := *w.sub
		s.state.procs, s.state.moves, s.state.lapsed = slices.Clone(s.state.procs), slices.Clone(s.state.moves), slices.Clone(s.state.lapsed)
		s.emission.ranks = slices.Clone(s.emission.ranks)
		s.healing.ranks = slices.Clone(s.healing.ranks)
		s.entry.since = maps.Clone(s.entry.since)
		s.of, s.odd = maps.Clone(s.of), maps.Clone(s.odd)
		s.leaders, s.lost, s.drained = slices.Clone(s.leaders), slices.Clone(s.lost), slices.Clone(s.drained)
		c.sub = &s
	}
	return &c
}

// flags packs up to eight facts.
func flags(set ...bool) (b byte) {
	for i, s := range set {
		if s {
			b |= 1 << i
		}
	}
	return b
}

// appendKey appends a key that is the same for states with the same future. The reasons of failures do not matter.
func (w *world) appendKey(b []byte) []byte {
	f := w.allowed
	b = append(b, byte(f.crashes), byte(f.deaths), byte(f.breaks), byte(f.kills), byte(f.cuts), byte(f.unkept), byte(f.departs), byte(f.moves),
		byte(f.silences), byte(f.hangs), byte(f.wrongs), flags(w.begun, w.result != nil, w.sub != nil))
	for i := range w.hosts {
		b = w.hosts[i].appendKey(b)
	}
	b = append(b, byte(len(w.pending)))
	for _, r := range sorted(w.pending) {
		b = append(append(b, r...), ';')
	}
	b = appendViewKey(b, w.view)
	for rank := range w.n {
		b = append(b, byte(len(w.user[rank])), byte(w.kept[rank][0]), flags(w.repeats[rank]))
	}
	if w.allowed.kills == 0 && w.sub != nil { // no other process will read the log from the beginning
		b = appendLogKey(b, w.log[w.sub.learned:])
	} else {
		b = appendLogKey(b, w.log)
	}
	if w.sub != nil {
		b = w.sub.appendKey(b, w.now)
	}
	return b
}

func appendLogKey(b []byte, log []view.Change) []byte {
	b = append(b, byte(len(log)))
	for _, c := range log {
		b = append(append(b, c.Encode()...), ';')
	}
	return b
}

// sorted returns the encodings of requests in an order that does not depend on that of the requests.
func sorted(rs []request) (all []string) {
	for _, r := range rs {
		all = append(all, string(append(r.change.Encode(), flags(r.peers))))
	}
	slices.Sort(all)
	return all
}

func sortedProcesses(ps []view.Process) []view.Process {
	return slices.SortedFunc(slices.Values(ps), func(a, b view.Process) int { return 16*(a.Rank-b.Rank) + a.Replica - b.Replica })
}

func appendViewKey(b []byte, v view.View) []byte {
	b = append(b, byte(v.Epoch), byte(v.R))
	for _, s := range v.States {
		b = append(b, byte(s))
	}
	for rank := range v.N {
		b = append(b, byte(v.Masters[rank]), byte(v.Since[rank]))
	}
	for i := range v.Aside {
		b = append(b, byte(v.Aside[i]), byte(v.Returned[i]))
	}
	return b
}

func (h *host) appendKey(b []byte) []byte {
	b = append(b, byte(h.p.Rank), byte(h.p.Replica), byte(h.written), byte(h.heard), byte(h.expected), byte(h.sent), byte(h.acked),
		flags(h.used, h.alive, h.known, h.joining, h.called, h.began, h.behind, h.hangs),
		flags(h.wrong, h.torn, h.leaves, h.spoke, h.stale, h.connected),
		flags(h.ended, h.exit != nil, h.exit != nil && h.exit.Good(), h.exit != nil && h.exit.endedByItself()), byte(len(h.said)))
	for _, m := range h.said {
		b = append(b, byte(m.kind), byte(m.about.Replica), byte(m.since), byte(m.term))
	}
	return b
}

func (s *submitter) appendKey(b []byte, now time.Duration) []byte {
	b = append(b, flags(s.resumed, s.cut, s.done, s.state.begun, s.state.over), byte(s.learned), byte(s.search), byte(len(s.state.expected)))
	for _, rank := range s.state.expected {
		b = append(b, byte(rank))
	}
	b = appendViewKey(b, s.state.view)
	for _, p := range s.state.procs {
		b = append(b, flags(p.initialized, p.leaving, p.joining, p.exit != nil, p.drained), byte(p.asked), byte(p.upToDate.At), byte(p.upToDate.Since), byte(p.leave.At))
		b = append(append(b, p.setAside.Encode()...), ';')
	}
	for rank, e := range s.emission.ranks {
		b = append(b, byte(len(e[0].heard)), byte(e[0].next), byte(len(e[0].tails)), byte(s.state.moves[rank]))
		for _, p := range sortedProcesses(e[0].heard) {
			b = append(b, byte(p.Replica))
		}
		for _, t := range e[0].tails {
			b = append(b, byte(t.from.Replica), byte(t.number), byte(len(t.data)))
		}
	}
	for _, a := range s.healing.ranks {
		b = append(b, flags(a.lacks, a.served, a.next > now, a.since < s.healing.ranks[0].since), byte(min(a.failed, 2)))
	}
	for i := range s.lost {
		b = append(b, flags(s.lost[i], s.leaders[i], s.drained[i]))
	}
	for _, p := range sortedProcesses(slices.Collect(maps.Keys(s.of))) {
		b = append(b, byte(p.Rank), byte(p.Replica), flags(s.odd[p]))
	}
	if !s.state.begun {
		b = append(b, byte(len(s.entry.since)), flags(s.entry.called))
	}
	return b
}
