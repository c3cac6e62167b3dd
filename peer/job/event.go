package job

import (
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// An Event is one event of a job: a report of a peer, a verdict about a peer, or a change of the view. The
// effects of an Event depend only on it and on the events before it.
type Event interface {
	apply(s *State, out *Effects)
}

// Apply records e and returns the effects that follow from it.
func (s *State) Apply(e Event) Effects {
	var out Effects
	e.apply(s, &out)
	return out
}

// Reports of the peer of a process.
type (
	// Initialized reports that the process has called mpj.Init.
	Initialized struct{ Process view.Process }

	// Exited reports that the process has ended (F2).
	Exited struct {
		Process view.Process
		Exit    Exit
	}

	// Aborted reports that the process, on the peer named Host, has called Abort.
	Aborted struct {
		Process view.Process
		Code    int
		Reason  string
		Host    string
	}

	// Diverged reports a message of which the replicas of the process's rank have produced different versions.
	// Text is the report as a sentence.
	Diverged struct {
		Process    view.Process
		Divergence protection.Divergence
		Text       string
	}

	// Ahead reports that the process has long been ahead of its rank's master.
	Ahead struct{ Process view.Process }

	// Leaves reports that the owner of the peer takes the machine back.
	Leaves struct{ Process view.Process }

	// UpToDate reports, for the master of the process's rank, that the process no longer lacks anything. It has
	// been set aside since epoch Since, and the master's term began in epoch Term.
	UpToDate struct {
		Process     view.Process
		Since, Term uint64
	}

	// Healed reports that the process, which has joined, has caught up with the others of its rank.
	Healed struct{ Process view.Process }

	// Unkept reports that the process cannot bring a new replica of its rank up to date any more.
	Unkept struct {
		Process view.Process
		Why     string
	}

	// Lapsed reports that the process cannot bring a new replica of its rank up to date before the program's
	// next checkpoint.
	Lapsed struct {
		Process view.Process
		Why     string
	}
)

// Conclusions of the submitter.
type (
	// Drained means that the user has all output of the process, whose streams are closed. The process is, or
	// has been, the output leader of its rank (view.OutputLeader).
	Drained struct{ Process view.Process }

	// Lost means that the processes are lost together with their peer. Why is the rest of a sentence that
	// begins with the process.
	Lost struct {
		Processes []view.Process
		Why       string
	}

	// Unresponsive means that the peer of the process is silent, and the master of its rank waits for it.
	Unresponsive struct{ Process view.Process }

	// Recruited means that the recruit has been started and has called mpj.Init.
	Recruited struct{ Process view.Process }

	// JoinWithdrawn means that the requested join to Rank is withdrawn. No peer may have received the request.
	JoinWithdrawn struct{ Rank int }

	// Accused names the reason why the process is about to fail, as the rest of a sentence. It has no effect
	// if a reason is known already.
	Accused struct {
		Process view.Process
		Why     string
	}

	// Committed means that a change of the view has been agreed on.
	Committed struct{ Change view.Change }

	// CutOff means that no change can be agreed on any more. The majority of the view group is unreachable
	// and continues without this peer, or not at all (V2).
	CutOff struct{}

	// Resumed means that the job has begun before the State was made.
	Resumed struct{}
)
