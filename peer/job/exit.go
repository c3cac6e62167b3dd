package job

import (
	"fmt"
	"slices"
	"strings"
)

// An Exit describes how a process ended, as reported by its peer.
type Exit struct {
	Code        int    // exit status, or -1
	Signal      string // signal that killed it, or empty
	Reason      string // why its peer ended it, or empty
	Limit       string // limit of the peer's owner that the process exceeded, such as memory; or empty
	Peer        string // short peer ID for the user, or empty
	Initialized bool   // the process called mpj.Init
	Finalized   bool   // the process called Finalize
}

// Good reports whether the process ended successfully: with status 0, and after Finalize if it
// called mpj.Init.
func (e Exit) Good() bool {
	return e.Code == 0 && e.endedByItself() && e.Initialized == e.Finalized
}

// endedByItself reports whether the process ended because its program did.
func (e Exit) endedByItself() bool { return e.Signal == "" && e.Reason == "" }

// fromOutside lists the signals, by Go's names, that are not caused by a mistake of the program. The operating
// system sends them when memory runs out, and the owner of the machine may send them.
var fromOutside = []string{"killed", "terminated", "hangup", "interrupt", "quit", "CPU time limit exceeded", "file size limit exceeded"}

// crashed reports whether a mistake of its program ended the process.
func (e Exit) crashed() bool {
	return e.Signal != "" && e.Reason == "" && !slices.Contains(fromOutside, e.Signal)
}

// String describes how the process ended, as the rest of a sentence.
func (e Exit) String() string {
	switch {
	case e.Reason != "":
		return "was ended by its peer" + strings.TrimSuffix(" "+e.Peer, " ") + ": " + e.Reason
	case e.Signal != "":
		return "was killed by signal " + e.Signal
	case e.Code != 0:
		return fmt.Sprintf("exited with status %d", e.Code)
	case e.Initialized && !e.Finalized:
		return "ended without calling Finalize"
	}
	return "ended"
}

// lost returns the result of a job of which a rank has no replica left (R7). If the replicas that
// ended by themselves agree on an exit status, the program is its source, and the job gets that
// status.
func (ps *processes) lost(rank int) Result {
	var ends []string
	statuses := make(map[int]int) // how many replicas exited with each status
	status, byItself := 0, 0
	exceeded, limit := 0, "" // how many replicas exceeded a limit, and the last such limit
	crashed := 0
	for _, id := range ps.replicas(rank) {
		p := ps.at(id)
		if p.aborted != nil { // its earlier output is lost
			return *p.aborted
		}
		ends = append(ends, fmt.Sprintf("replica %d %s", id.Replica, p.why))
		if p.exit != nil && p.exit.Limit != "" {
			exceeded, limit = exceeded+1, p.exit.Limit
		}
		if p.exit != nil && p.exit.crashed() {
			crashed++
		}
		if p.exit != nil && p.exit.endedByItself() && !p.joining { // see reason
			byItself++
			status = p.exit.Code
			statuses[status]++
		}
	}
	all := strings.Join(ends, ", ")
	if len(statuses) == 1 && status >= 1 && status <= maxStatus {
		text := fmt.Sprintf("rank %d exited with status %d", rank, status)
		if byItself < len(ends) {
			text += " (" + all + ")"
		}
		return Result{Status: status, Message: text}
	}
	r := Result{Status: StatusLost, Message: fmt.Sprintf("rank %d lost all its replicas: %s", rank, all)}
	switch {
	case exceeded == len(ends):
		r.Limit = limit
		r.Hint = "the program needs more than the owners of these peers give: let each rank do less, or choose other peers with --peer, --not-peer or --min-memory"
	case crashed == len(ends):
		r.Hint = "the program crashed in each replica: look for the mistake with p2prun --local, where it runs on this machine"
	case byItself < len(ends):
		r.Hint = "start it again, with a larger -r if peers are unreliable"
	}
	return r
}
