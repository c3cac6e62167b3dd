package presence

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Rule is a reason to pause.
type Rule string

// The rules. Quiet is the owner's hours, which package policy knows.
const (
	Active  Rule = "active"  // somebody uses a seat or a terminal: logind's idle hint
	Battery Rule = "battery" // the machine runs on it
	Load    Rule = "load"    // others than jobs take more than half of the processors
	Metered Rule = "metered" // the link is paid for by the byte: NetworkManager's word
	Quiet   Rule = "quiet hours"
)

// rules are those that an owner can choose, in the order in which they are told.
var rules = []Rule{Active, Battery, Load, Metered}

// Default are the rules of an owner who says nothing. Those who sit at the machine hardly notice
// jobs, which give way to them: that is no reason by itself.
var Default = []string{string(Battery), string(Metered)}

// none in place of rules.
const none = "none"

// ParseRules reads the names of rules; "none" alone is none.
func ParseRules(names []string) ([]Rule, error) {
	if len(names) == 1 && names[0] == none {
		return nil, nil
	}
	var out []Rule
	for _, n := range names {
		if n == none {
			return nil, fmt.Errorf("pause-when %s: none stands alone", strings.Join(names, ","))
		}
		if !slices.Contains(rules, Rule(n)) {
			return nil, fmt.Errorf("pause-when %.40q: want active, battery, load, metered, or none", n)
		}
		out = append(out, Rule(n))
	}
	return out, nil
}

// A Reading is what the machine says at a moment. What it does not say is left at zero.
type Reading struct {
	Active  bool
	Battery bool
	Metered bool
	Quiet   bool
	Load    float64 // share of all processors that work of usual priority takes, 0 to 1

	Unread []Unread // of the rules that were asked for
}

// Unread is a rule of which the machine does not say whether it is so.
type Unread struct {
	Rule Rule   `json:"rule"`
	Why  string `json:"why"`
}

const (
	// busyShare is the load that fires.
	busyShare = 0.5
	// holdFor is how long a rule must not have been so before the pause ends.
	holdFor = time.Minute
	// recallFor is how long a rule that cannot be read any more is taken to be as it was: a service that is
	// restarted, or hangs while the link changes, is back by then.
	recallFor = 30 * time.Minute
)

// A Watch decides when to pause, a pure core: it reads nothing and has no clock.
type Watch struct {
	rules []Rule
	was   map[Rule]time.Time // when it was last read that a rule is so, and not since that it is not
	fired Rule               // the last one that was so
	last  time.Time
}

// NewWatch returns the watch of an owner with those rules; quiet hours always count.
func NewWatch(rules []Rule) *Watch { return &Watch{rules: rules, was: make(map[Rule]time.Time)} }

// Step takes a reading, and returns the rule by which to pause; empty: none.
func (w *Watch) Step(r Reading, now time.Time) Rule {
	w.learn(r, now)
	for _, rule := range w.rules {
		if at, is := w.was[rule]; is && now.Sub(at) < recallFor {
			w.fired, w.last = rule, now
			return rule
		}
	}
	switch {
	case r.Quiet: // by the clock, which does not flap
		return Quiet
	case w.fired != "" && now.Sub(w.last) >= holdFor:
		w.fired = ""
	}
	return w.fired
}

// learn notes which rules are so; of one that was not read nothing is new.
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
