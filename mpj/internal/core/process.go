package core

import (
	"sync/atomic"

	"github.com/p2pmpi/p2pmpi/mpj/internal/collective"
)

// A Process is this process's part in a job: what its communicators have in common.
type Process struct {
	rank, size int // in the world
	checks     bool
	places     []Place            // by world rank; nil if all are on one machine
	forced     *collective.Forced // algorithms of collectives; nil to choose them by size
	unforced   error              // why the choice of algorithms is invalid, or nil
	ids        *identities
	active     atomic.Int64 // requests, and messages from Mprobe, in progress
	buffer     sendBuffer   // buffered mode
	ledger     ledger       // empty without checks
}

// Checks reports whether the ranks compare their calls.
func (p *Process) Checks() bool { return p.checks }

// Comm returns the communicator with an id, or nil.
func (p *Process) Comm(id uint32) *Comm { return p.ids.of(id) }

// Comms returns the existing communicators, ordered by id.
func (p *Process) Comms() []*Comm { return p.ids.all() }

// IDs returns the number of ids that communicators of this process have used.
func (p *Process) IDs() int { return p.ids.count() }

// Active returns the number of requests, and messages from Mprobe, in progress.
func (p *Process) Active() int { return int(p.active.Load()) }
