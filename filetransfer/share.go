package filetransfer

import (
	"slices"
	"sync"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// MaxFellows bounds the peers with which one shares a job's contents.
const MaxFellows = 64

// maxShares bounds the lists that a job's peers share, at one of them.
const maxShares = 16

// A swarm is what this peer shares of a job.
type swarm struct {
	from    p2ppeer.ID // the origin of what is shared
	fellows []p2ppeer.ID
	near    []p2ppeer.ID // those of them that are at this peer's site

	mu      sync.Mutex
	shares  map[Digest]*share // by list
	changed chan struct{}     // closed when another list is shared, or the swarm ends
	over    bool
}

// A share is which units of a list this peer has, for its fellows to ask for.
type share struct {
	list  []Want
	units []unit

	mu      sync.Mutex
	have    bitset
	over    bool          // nothing of it is passed on any more
	changed chan struct{} // closed when it has more, or is over
}

// Share has this peer and its fellows pass on to each other what they fetch for
// the job of peer from: each such Fetch from now on takes part, until stop is
// called, after which nothing more goes to them; those from others, as of output files, do not.
// The fellows have been named by that peer, and have to share with this one in turn. near lists those
// of them that are at this peer's site: each unit enters the site about once.
func (s *Service) Share(job string, from p2ppeer.ID, fellows, near []p2ppeer.ID) (stop func()) {
	fellows = slices.DeleteFunc(slices.Clone(fellows), func(p p2ppeer.ID) bool { return p == s.host.ID() })
	sw := &swarm{from: from, fellows: fellows[:min(len(fellows), MaxFellows)], near: near, shares: map[Digest]*share{}, changed: make(chan struct{})}
	s.mu.Lock()
	s.swarms[job] = sw
	s.mu.Unlock()
	return sync.OnceFunc(func() {
		s.mu.Lock()
		if s.swarms[job] == sw {
			delete(s.swarms, job)
		}
		s.mu.Unlock()
		sw.mu.Lock()
		defer sw.mu.Unlock()
		sw.over = true
		close(sw.changed)
		for _, sh := range sw.shares {
			sh.end()
		}
	})
}

// swarmOf returns what this peer shares of a job, or nil.
func (s *Service) swarmOf(job string) *swarm {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.swarms[job]
}

// join returns the share of a list. It is nil where more lists are shared than a
// job needs.
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

// find returns the share of a list, or nil. If it is not the last word, changed is
// closed once it is worth another try.
func (sw *swarm) find(id Digest) (sh *share, changed <-chan struct{}, over bool) {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	return sw.shares[id], sw.changed, sw.over
}

// covers returns the contents that r asks for, item by item, or nil if they are
// not of a unit that is here: nothing else of the store is shown.
func (sh *share) covers(r request) (contents []Want) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.over || r.unit >= len(sh.units) || !sh.have.has(r.unit) {
		return nil
	}
	u := sh.units[r.unit]
	left := sh.list[u.first : u.first+u.count] // items come in the order of the list
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

// add takes note of units that are here now.
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

// addComplete takes note of the units of which all contents are in the store.
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

// snapshot returns the units that are here. changed is closed when there are more, or when it is over.
func (sh *share) snapshot() (have bitset, changed <-chan struct{}, over bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return slices.Clone(sh.have), sh.changed, sh.over
}

// end has nothing of the list be passed on any more.
func (sh *share) end() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.over = true
	close(sh.changed)
}
