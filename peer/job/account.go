package job

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// An Account summarizes everything that a finished replica has done. Messages that have been received are
// compared while the job runs (Diverged). The account covers the rest: messages that only some replicas sent,
// messages to the replica's own rank, and the printed output.
type Account struct {
	Summed   bool // Sums is known
	Sums     []protection.Sum
	Digested bool // Printed is known
	Printed  Printed
}

// Printed identifies the standard output of a process, or the part of a rank's output that the user
// has received.
type Printed struct {
	Bytes  uint64
	Digest [sha256.Size]byte
}

func (p Printed) String() string { return fmt.Sprintf("%d bytes, digest %x", p.Bytes, p.Digest[:8]) }

// An aspect is one part of an account that is compared.
type aspect struct {
	known func(Account) bool
	// unlike describes a and b, and reports whether they differ in this aspect. It is called only if
	// the aspect is known for both.
	unlike func(a, b Account) (as, bs string, unlike bool)
}

var aspects = []aspect{
	{
		func(a Account) bool { return a.Summed },
		func(a, b Account) (as, bs string, unlike bool) {
			x, y, unlike := protection.FirstDifference(a.Sums, b.Sums)
			return fmt.Sprintf("sent %v", x), fmt.Sprintf("sent %v", y), unlike
		},
	},
	{
		func(a Account) bool { return a.Digested },
		func(a, b Account) (as, bs string, unlike bool) {
			return fmt.Sprintf("printed %v", a.Printed), fmt.Sprintf("printed %v", b.Printed), a.Printed != b.Printed
		},
	},
}

// Accounts compares the accounts of the replicas of each rank. It is a pure core, like State.
type Accounts struct {
	of            map[view.Process]Account
	odd           map[view.Process]bool          // processes that deviate from most replicas of their rank
	Name          func(p view.Process) string    // name of p for the user
	Tolerant      bool                           // differences are only reported to the user
	Shown         func(rank int) (Printed, bool) // output that the user has received so far; false if unknown
	Counting      func(rank int) []view.Process  // replicas that count
	OutputLeaders func(rank int) []view.Process  // processes that have been the rank's output leader; may be nil
}

// Odd reports whether p was found to deviate from most replicas of its rank.
func (a *Accounts) Odd(p view.Process) bool { return a.odd[p] }

// Summed reports whether the sums of the messages that p sent are known.
func (a *Accounts) Summed(p view.Process) bool { return a.of[p].Summed }

// Add records the first account of p. It returns a sentence if another replica of the rank differs.
func (a *Accounts) Add(p view.Process, account Account) (note string) {
	if _, again := a.of[p]; again {
		return ""
	}
	if a.of == nil {
		a.of = make(map[view.Process]Account)
	}
	a.of[p] = account
	for _, q := range a.Counting(p.Rank) {
		if q != p {
			note = a.difference(p, q)
		}
		if note != "" {
			break
		}
	}
	return note
}

// difference describes how p and q differ. It returns "" if no difference is known.
func (a *Accounts) difference(p, q view.Process) string {
	x, ok := a.of[p]
	y, too := a.of[q]
	for _, s := range aspects {
		if !ok || !too || !s.known(x) || !s.known(y) {
			continue
		}
		if xs, ys, unlike := s.unlike(x, y); unlike {
			return fmt.Sprintf("%s has %s, and %s has %s", a.Name(p), xs, a.Name(q), ys)
		}
	}
	return ""
}

// Judge returns the result of the job if its replicas have diverged, and nil otherwise. With three
// or more replicas, one that deviates from most does not end the job. final means that no more accounts
// will arrive and that the user has received all output.
func (a *Accounts) Judge(n int, final bool) (notes []string, r *Result) {
	for rank := range n {
		if a.Tolerant {
			break
		}
		for _, s := range aspects {
			odd, why := a.compare(rank, s, final)
			if why != "" {
				return notes, diverged(rank, why)
			}
			for _, p := range odd {
				if !a.odd[p] {
					a.setOdd(p)
					notes = append(notes, fmt.Sprintf("%s does not count: most replicas of its rank have done something else", a.Name(p)))
				}
			}
		}
		if why := a.misled(rank); final && why != "" {
			return notes, diverged(rank, why)
		}
	}
	return notes, nil
}

func (a *Accounts) setOdd(p view.Process) {
	if a.odd == nil {
		a.odd = make(map[view.Process]bool)
	}
	a.odd[p] = true
}

// compare returns the replicas of a rank that deviate from most others, or the reason why no
// majority decides.
func (a *Accounts) compare(rank int, s aspect, final bool) (odd []view.Process, why string) {
	counting := a.Counting(rank)
	known := slices.DeleteFunc(slices.Clone(counting), func(p view.Process) bool {
		x, ok := a.of[p]
		return !ok || !s.known(x)
	})
	for _, p := range known {
		others := slices.DeleteFunc(slices.Clone(known), func(q view.Process) bool {
			_, _, unlike := s.unlike(a.of[p], a.of[q])
			return !unlike
		})
		switch agree := len(known) - len(others); {
		case len(others) == 0:
			return nil, ""
		case len(counting) >= Quorum && 2*agree > len(counting):
			return others, ""
		}
		why = a.difference(p, others[0])
	}
	if len(counting) >= Quorum && len(known) < len(counting) && !final {
		why = ""
	}
	return nil, why
}

// misled returns the reason if the output that the user has received differs from the output that the replicas
// that are not odd have printed. It returns "" if no difference is known.
func (a *Accounts) misled(rank int) string {
	for _, p := range a.Counting(rank) {
		x, ok := a.of[p]
		if !ok || !x.Digested || a.odd[p] {
			continue
		}
		if got, known := a.Shown(rank); known && got != x.Printed {
			return fmt.Sprintf("%s has printed %v, and the user has received %v%s", a.Name(p), x.Printed, got, a.source(rank))
		}
		break
	}
	return ""
}

// source names the processes that the user has received a rank's output from, as the end of a sentence.
func (a *Accounts) source(rank int) string {
	if a.OutputLeaders == nil {
		return ""
	}
	return " from " + a.names(a.OutputLeaders(rank))
}

// Owing returns those of the given processes that have given no account.
func (a *Accounts) Owing(ps []view.Process) (owing []view.Process) {
	for _, p := range ps {
		if _, given := a.of[p]; !given {
			owing = append(owing, p)
		}
	}
	return owing
}

// Unconfirmed returns those of the given processes that have given no account and whose rank's
// answer is not confirmed. Equal accounts of more than half of the given processes of a rank
// confirm its answer. A process that is the only one of its rank confirms its answer alone.
func (a *Accounts) Unconfirmed(ps []view.Process) (missing []view.Process) {
	all, agree := make(map[int]int), make(map[int]int)
	for _, p := range ps {
		all[p.Rank]++
		agree[p.Rank] = max(agree[p.Rank], a.agreeing(p, ps))
	}
	return slices.DeleteFunc(a.Owing(ps), func(p view.Process) bool { return 2*agree[p.Rank] > all[p.Rank] })
}

// Premature reports whether more than half of the given processes of a rank have given no Account,
// for some rank with three or more of them.
func (a *Accounts) Premature(ps []view.Process) bool {
	all, owing := make(map[int]int), make(map[int]int)
	for _, p := range ps {
		all[p.Rank]++
	}
	for _, p := range a.Owing(ps) {
		if owing[p.Rank]++; all[p.Rank] >= Quorum && 2*owing[p.Rank] > all[p.Rank] {
			return true
		}
	}
	return false
}

// agreeing returns how many of the given processes have the same account as p, including p, and 0 if
// p has given no account.
func (a *Accounts) agreeing(p view.Process, ps []view.Process) (n int) {
	if _, given := a.of[p]; !given {
		return 0
	}
	for _, q := range ps {
		if _, given := a.of[q]; given && q.Rank == p.Rank && a.difference(p, q) == "" {
			n++
		}
	}
	return n
}

// UnconfirmedAfter returns the result of a job whose answer was not confirmed within the given time.
func (a *Accounts) UnconfirmedAfter(ps []view.Process, waited time.Duration) *Result {
	missing := a.Unconfirmed(ps)
	rank := missing[0].Rank
	given := slices.DeleteFunc(slices.Clone(ps), func(p view.Process) bool {
		return p.Rank != rank || slices.Contains(missing, p)
	})
	return &Result{
		Status: StatusDiverged,
		Message: fmt.Sprintf("the answer of rank %d is not confirmed: %s ended, and %s gave no account for %v",
			rank, a.names(given), a.names(missing), waited.Round(time.Second)),
		Hint: "one of these peers lies or is very slow: with -r 3 most replicas decide; with --on-divergence warn the first answer counts",
	}
}

// names lists processes, or returns "no replica" if there are none.
func (a *Accounts) names(ps []view.Process) string {
	var names []string
	for _, p := range ps {
		names = append(names, a.Name(p))
	}
	return cmp.Or(strings.Join(names, ", "), "no replica")
}

// diverged returns the result of a job in which two replicas of a rank differ.
func diverged(rank int, why string) *Result {
	return &Result{
		Status:  StatusDiverged,
		Message: fmt.Sprintf("the replicas of rank %d have diverged: %s", rank, why),
		Hint:    divergedHint,
	}
}
