package filetransfer

import (
	"slices"
	"sync"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// MaxMembers bounds the other members of a swarm, with which a peer shares a job's contents.
const MaxMembers = 64

// maxShares bounds the lists that one peer shares for a job.
const maxShares = 16

// A swarm contains the lists that this peer shares for a job.
type swarm struct {
	from    p2ppeer.ID   // origin of the shared lists
	members []p2ppeer.ID // the other members
	near    []p2ppeer.ID // members at this peer's site

	mu      sync.Mutex
	shares  map[Digest]*share // keyed by list
	changed chan struct{}     // closed when another list is shared or the swarm ends
	over    bool
}

// swarms holds the swarm of each job for which Share was called.
type swarms struct {
	self  p2ppeer.ID
	mu    sync.Mutex
	ofJob map[string]*swarm
}

// A share records which units of a list this peer has. Members may request them.
type share struct {
	list  []Want
	units []unit

	mu      sync.Mutex
	have    bitset
	over    bool          // the units are no longer served
	changed chan struct{} // closed when units are added or the share ends
}

// Share makes this peer and the members of its swarm exchange the units that they fetch from peer from for
// the job, until stop is called. Share applies to each later Fetch from that peer. Fetches from other peers,
// such as those of output files, do not take part. After stop, members get no more units from this peer. The
// peer from has named the members, which must call Share as well. near lists the members at this peer's
// site; each unit enters the site about once.
func (ss *swarms) Share(job string, from p2ppeer.ID, members, near []p2ppeer.ID) (stop func()) {
	members = slices.DeleteFunc(slices.Clone(members), func(p p2ppeer.ID) bool { return p == ss.self })
	sw := &swarm{from: from, members: members[:min(len(members), MaxMembers)], near: near, shares: map[Digest]*share{}, changed: make(chan struct{})}
	ss.mu.Lock()
	ss.ofJob[job] = sw
	ss.mu.Unlock()
	return sync.OnceFunc(func() {
		ss.mu.Lock()
		if ss.ofJob[job] == sw {
			delete(ss.ofJob, job)
		}
		ss.mu.Unlock()
		sw.mu.Lock()
		defer sw.mu.Unlock()
		sw.over = true
		close(sw.changed)
		for _, sh := range sw.shares {
			sh.end()
		}
	})
}

func (ss *swarms) of(job string) *swarm {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.ofJob[job]
}

// join returns the share of a list. It returns nil if the swarm has ended, or if the job has maxShares other shares.
func (sw *swarm) join(id Digest, list []Want, units []unit) *share {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	if sh := sw.shares[id]; sh != nil || sw.over || len(sw.shares) == maxShares {
		return sh
	}
	sh := &share{list: list, units: units, have: newBitset(len(units)), changed: make(chan struct{})}
	sw.shares[id] = sh
	close(sw.changed)
	sw.changed = make(chan struct{})
	return sh
}

// find returns the share of a list, or nil. changed is closed when another call may return more, unless
// over is true.
func (sw *swarm) find(id Digest) (sh *share, changed <-chan struct{}, over bool) {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	return sw.shares[id], sw.changed, sw.over
}

// covers returns the contents that r requests, item by item. It returns nil unless they are part of a unit
// that is present, so that the rest of the store stays private.
func (sh *share) covers(r request) (contents []Want) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.over || r.unit >= len(sh.units) || !sh.have.has(r.unit) {
		return nil
	}
	u := sh.units[r.unit]
	left := sh.list[u.first : u.first+u.count] // items are in the order of the list
	for _, it := range r.items {
		i := slices.IndexFunc(left, func(w Want) bool { return w.Digest == it.digest })
		if i < 0 || it.piece != u.piece {
			return nil
		}
		contents = append(contents, left[i])
		left = left[i+1:]
	}
	return contents
}

// add records units that are now present.
func (sh *share) add(units ...int) {
	if sh == nil {
		return
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if len(units) == 0 || sh.over {
		return
	}
	for _, u := range units {
		sh.have.add(u)
	}
	close(sh.changed)
	sh.changed = make(chan struct{})
}

// addComplete records the units whose contents are all in the store.
func (sh *share) addComplete(store *Store) {
	if sh == nil {
		return
	}
	var here []int
	for i, u := range sh.units {
		if !slices.ContainsFunc(sh.list[u.first:u.first+u.count], func(w Want) bool { return !store.Has(w.Digest) }) {
			here = append(here, i)
		}
	}
	sh.add(here...)
}

// snapshot returns the units that are present. changed is closed when units are added or the share ends.
func (sh *share) snapshot() (have bitset, changed <-chan struct{}, over bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return slices.Clone(sh.have), sh.changed, sh.over
}

// end stops serving the list.
func (sh *share) end() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.over = true
	close(sh.changed)
}
