package faultdetect

import "slices"

// A probeRequest is a member's request that this member probe another one.
type probeRequest struct {
	about, asker int
	until        int // value of periods until which it is answered
}

// maxProbeRequests bounds the requests of other members that this member stores.
const maxProbeRequests = 1024

// probeRequests holds the requests that are not answered yet.
type probeRequests []probeRequest

// add records a request, or prolongs the same one. It returns false if there are too many.
func (ps *probeRequests) add(q probeRequest) bool {
	i := slices.IndexFunc(*ps, func(p probeRequest) bool { return p.about == q.about && p.asker == q.asker })
	switch {
	case i >= 0:
		(*ps)[i] = q
	case len(*ps) < maxProbeRequests:
		*ps = append(*ps, q)
	default:
		return false
	}
	return true
}

// take removes the requests about a member, and returns the members that made them.
func (ps *probeRequests) take(about int) (askers []int) {
	*ps = slices.DeleteFunc(*ps, func(q probeRequest) bool {
		if q.about == about {
			askers = append(askers, q.asker)
		}
		return q.about == about
	})
	return askers
}

// expire drops the requests that were not answered in time.
func (ps *probeRequests) expire(periods int) {
	*ps = slices.DeleteFunc(*ps, func(q probeRequest) bool { return q.until <= periods })
}
