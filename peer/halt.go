package peer

import (
	"fmt"
	"net/http"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A Parting is what becomes of a job when the owner takes the machine back.
type Parting struct {
	Job       string         `json:"job"`
	Program   string         `json:"program"`
	Processes []view.Process `json:"processes,omitempty"` // that run here; none: the job was submitted from here
	Fate      Fate           `json:"fate"`
}

// A Fate is what becomes of a job.
type Fate string

// The fates.
const (
	HandedOver Fate = "handed over" // its other peers go on with it
	WaitedFor  Fate = "waited for"  // the peer ends when it has
	Cancelled  Fate = "cancelled"   // it ends with the peer
	GoesOn     Fate = "goes on"     // with what it has on other peers, which notice by themselves
)

// fate returns what becomes of a job that may or may not go on elsewhere.
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

// A Halting is what was asked for with Halt, and what becomes of each job.
type Halting struct {
	Peer string    `json:"peer"`
	Mode Halt      `json:"mode"`
	Jobs []Parting `json:"jobs"`
}

// halting says what becomes of the jobs that are here now if the peer is halted.
func (p *Peer) halting(how Halt) Halting {
	h := Halting{Peer: p.ID().String(), Mode: how, Jobs: []Parting{}} // a list in JSON even when it is empty
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

// halt answers what becomes of the jobs, before it acts, so that the answer gets out.
func (c *control) halt(w http.ResponseWriter, r *http.Request) {
	how := Halt(r.URL.Query().Get("mode"))
	switch how {
	case "":
		how = Orderly
	case Orderly, Drain, Now:
	default:
		fail(w, http.StatusBadRequest, fmt.Errorf("mode %.40q: want orderly, drain or now", how))
		return
	}
	reply(w, http.StatusAccepted, c.peer.halting(how))
	c.peer.Halt(how)
}
