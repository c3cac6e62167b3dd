package viewgroup

// A voter that ends its part of the job does not fall silent at once. The submitter's peer keeps its vote for
// cutOffTicks when it is silent. If another one of three voters was lost in that time, the others could not commit
// anything. So the voter asks the leader to be replaced, and remains a voter until then:
//
//	voter                                voters, among them the leader
//	  |-- Message.leaves, every 0.3 s ---->|  wantedMembership
//	  |<== a learner gets a vote ==========|
//	  |<== the voter loses its vote =======|  or is removed, if there is no learner and each other voter answers
//	  '-- Left
//
// The claim needs no signature: libp2p authenticates the sender, which speaks for itself only, and each change that
// follows is lawful without it.

const (
	// leaveTicks bounds the time for which a peer that leaves remains a member. It is longer than the others need to
	// remove the vote of a silent submitter, with some elections before that.
	leaveTicks = 3 * cutOffTicks
	// graceTicks is how long a peer that leaves remains without a vote. The leader may be about to promote it. If the
	// leader is lost meanwhile, the next one may not know yet that this peer has lost its vote, and its first election
	// may fail.
	graceTicks = 4 * electionTicks
	// settleTicks is the time between two changes of the membership while a peer leaves, which is not urgent. All
	// members then know the first change, even if the leader is lost with the second one.
	settleTicks = 2 * heartbeatTicks
)

// departures are what a member knows of peers that are about to leave.
type departures struct {
	said  map[uint64]int // peers that leave, and when they have said so first
	since int            // time since which this peer leaves; 0: it does not
	voted int            // last time that it had a vote since then; at first, that time itself
}

// begin records that this peer leaves.
func (d *departures) begin(id uint64, now int) {
	if d.since == 0 {
		d.since, d.voted = max(now, 1), now
		d.note(id, now)
	}
}

// note records that a peer has said that it leaves.
func (d *departures) note(id uint64, now int) {
	if !d.include(id) {
		d.said[id] = now
	}
}

// include reports whether a peer leaves.
func (d *departures) include(id uint64) bool {
	_, leaves := d.said[id]
	return leaves
}

// inTime reports whether a peer leaves that may still remain a member. One that lies gains no more time.
func (d *departures) inTime(id uint64, now int) bool {
	return d.include(id) && now-d.said[id] <= leaveTicks
}

// anyInTime reports whether some peer leaves that may still remain a member.
func (d *departures) anyInTime(now int) bool {
	for id := range d.said {
		if d.inTime(id, now) {
			return true
		}
	}
	return false
}

// over reports whether this peer leaves, and has had no vote for graceTicks or has no more time.
func (d *departures) over(now int) bool {
	return d.since > 0 && (now-d.voted > graceTicks || now-d.since > leaveTicks)
}
