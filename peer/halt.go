package peer

import (
	"fmt"
	"net/http"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/control"
)

// A Parting is the fate of one job when the owner takes the machine back.
type Parting struct {
	Job       string         `json:"job"`
	Program   string         `json:"program"`
	Processes []view.Process `json:"processes,omitempty"` // that run here; empty if the job was submitted from here
	Fate      Fate           `json:"fate"`
}

// A Fate describes what happens to a job when its peer halts.
type Fate string

// The fates of a job.
const (
	HandedOver Fate = "handed over" // its other peers continue it
	WaitedFor  Fate = "waited for"  // the peer ends after the job
	Cancelled  Fate = "cancelled"   // ends with the peer
	GoesOn     Fate = "goes on"     // continues on its other peers, which detect the loss
)

// fate returns the fate of a job; movable reports whether the job can continue elsewhere.
func (how Halt) fate(movable bool) Fate {
	switch {
	case movable && how == Now:
		return GoesOn
	case movable:
		return HandedOver
	case how == Drain:
		return WaitedFor
	}
	return Cancelled
}

// A Halting is the answer to Halt: the requested mode and the fate of each job.
type Halting struct {
	Peer string    `json:"peer"`
	Mode Halt      `json:"mode"`
	Jobs []Parting `json:"jobs"`
}

// fates returns the fates of the present jobs if the peer is halted.
func (p *Peer) fates(how Halt) Halting {
	h := Halting{Peer: p.ID().String(), Mode: how, Jobs: []Parting{}} // a list in JSON even when empty
	if p.launcher != nil {
		for _, j := range p.launcher.Jobs() {
			if j.Submitter != p.ID() {
				h.Jobs = append(h.Jobs, Parting{j.Job, j.Name, j.Processes, how.fate(j.Movable)})
			}
		}
	}
	for _, j := range p.submitter.Jobs() {
		h.Jobs = append(h.Jobs, Parting{Job: j.Job, Program: j.Name, Fate: how.fate(false)})
	}
	return h
}

// halt answers with the fates of the jobs before it halts the peer, so that the client receives the answer.
func (q requests) halt(w http.ResponseWriter, r *http.Request) {
	how := Halt(r.URL.Query().Get("mode"))
	switch how {
	case "":
		how = Orderly
	case Orderly, Drain, Now:
	default:
		control.Fail(w, http.StatusBadRequest, fmt.Errorf("mode %.40q: want orderly, drain or now", how))
		return
	}
	control.Reply(w, http.StatusAccepted, q.peer.fates(how))
	q.peer.Halt(how)
}
