package presence

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Rule is a condition for suspending jobs.
type Rule string

// The rules. Quiet stands for the owner's quiet hours, which package policy implements.
const (
	Active  Rule = "active"  // user activity at a seat or terminal: logind's idle hint
	Battery Rule = "battery" // the machine runs on battery power
	Load    Rule = "load"    // programs other than jobs use more than half of the processors
	Metered Rule = "metered" // the link is metered, according to NetworkManager
	Quiet   Rule = "quiet hours"
)

// rules are the rules that an owner can choose, in the order of the documentation.
var rules = []Rule{Active, Battery, Load, Metered}

// Default are the rules of an owner who has configured none. Active is not among them: jobs have a low
// priority, so they hardly disturb a user of the machine.
var Default = []string{string(Battery), string(Metered)}

// none, in place of rules, means no rule.
const none = "none"

// ParseRules parses the names of rules; "none" alone means no rule.
func ParseRules(names []string) ([]Rule, error) {
	if len(names) == 1 && names[0] == none {
		return nil, nil
	}
	var out []Rule
	for _, n := range names {
		if n == none {
			return nil, fmt.Errorf("pause-when %s: none cannot be combined with other rules", strings.Join(names, ","))
		}
		if !slices.Contains(rules, Rule(n)) {
			return nil, fmt.Errorf("pause-when %.40q: want active, battery, load, metered, or none", n)
		}
		out = append(out, Rule(n))
	}
	return out, nil
}

// A Reading is the state of the machine at one moment. Values that are not known are zero.
type Reading struct {
	Active  bool
	Battery bool
	Metered bool
	Quiet   bool
	Load    float64 // use of all processors at normal priority, 0 to 1

	Unread []Unread // requested rules that could not be evaluated
}

// Unread is a rule that cannot be evaluated on this machine.
type Unread struct {
	Rule Rule   `json:"rule"`
	Why  string `json:"why"`
}

const (
	// busyShare is the load above which Load fires.
	busyShare = 0.5
	// holdFor is the time for which no rule must have applied before jobs resume.
	holdFor = time.Minute
	// recallFor is the time for which the last value of a rule counts when it cannot be evaluated. It
	// covers a service that restarts, or hangs while the link changes.
	recallFor = 30 * time.Minute
)

// A Watch decides when to suspend jobs. It is a pure core: it reads nothing and has no clock.
type Watch struct {
	rules []Rule
	was   map[Rule]time.Time // by rule: last time that it applied; deleted when it does not
	fired Rule               // last rule that applied
	last  time.Time
}

// NewWatch returns a Watch for the given rules; quiet hours always count.
func NewWatch(rules []Rule) *Watch { return &Watch{rules: rules, was: make(map[Rule]time.Time)} }

// Step evaluates a reading. It returns the rule by which to suspend jobs, or "" if there is none.
func (w *Watch) Step(r Reading, now time.Time) Rule {
	w.learn(r, now)
	for _, rule := range w.rules {
		if at, is := w.was[rule]; is && now.Sub(at) < recallFor {
			w.fired, w.last = rule, now
			return rule
		}
	}
	switch {
	case r.Quiet: // no hold time: the clock does not flap
		return Quiet
	case w.fired != "" && now.Sub(w.last) >= holdFor:
		w.fired = ""
	}
	return w.fired
}

// learn records which rules apply. A rule that could not be evaluated keeps its last value.
func (w *Watch) learn(r Reading, now time.Time) {
	holds := map[Rule]bool{Active: r.Active, Battery: r.Battery, Load: r.Load > busyShare, Metered: r.Metered}
	for _, u := range r.Unread {
		delete(holds, u.Rule)
	}
	for rule, is := range holds {
		if is {
			w.was[rule] = now
		} else {
			delete(w.was, rule)
		}
	}
}
