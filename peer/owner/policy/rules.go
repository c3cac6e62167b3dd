package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
)

// MaxSlots is the largest number of slots of a peer, and in a rule. It is far above the capacity of a
// machine, and below the bound of an offer.
const MaxSlots = 1 << 12

// ParseRules parses the owner's rules, each "KIND" or "CLASS=KIND". " slots=N" after it limits the class to
// N slots, and limits such as " memory=256MiB" apply to each process (see limits.Parse). KIND alone is the
// rule for everyone, including members.
//
// Classes without a rule have these defaults. Mine and allowed may run everything. Members may run native
// programs, since the network's owner has invited each of them. Everyone may run only modules. For everyone, the
// limits that no rule names are those in strangers.
func ParseRules(texts []string, strangers limits.Limits) (map[Class]Rule, error) {
	rules := make(map[Class]Rule)
	others, members := Rule{Kind: Wasm, Limits: strangers}, Rule{Kind: Native}
	for _, text := range texts {
		class, rule, err := parseRule(text, limits.Limits{})
		if err != nil {
			return nil, fmt.Errorf("accept %.80q: %w", text, err)
		}
		if _, twice := rules[class]; twice {
			return nil, fmt.Errorf("accept %.80q: class %s already has a rule", text, class)
		}
		rules[class] = rule
		if class == Everyone {
			members = rule
			_, others, _ = parseRule(text, strangers) // parsed above without an error
		}
	}
	rules[Everyone] = others
	for class, rule := range map[Class]Rule{Mine: {Kind: Native}, Allowed: {Kind: Native}, Members: members} {
		if _, given := rules[class]; !given {
			rules[class] = rule
		}
	}
	return rules, nil
}

// OthersMayRun returns what other classes may run, if the owner has listed allowed submitters but has no rule for
// all others. Such an owner may believe that only the listed submitters are accepted.
func (p Policy) OthersMayRun(texts []string) map[Class]Kind {
	if len(p.Allow) == 0 {
		return nil
	}
	others := make(map[Class]Kind)
	for _, class := range []Class{Members, Everyone} {
		if kind := p.Rules[class].Kind; kind != None && (class != Members || p.Private) {
			others[class] = kind
		}
	}
	for _, text := range texts {
		switch class, _, _ := parseRule(text, limits.Limits{}); class {
		case Everyone:
			return nil
		default:
			delete(others, class)
		}
	}
	return others
}

// parseRule parses one rule. Limits that the rule does not name are taken from unnamed.
func parseRule(text string, unnamed limits.Limits) (Class, Rule, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return "", Rule{}, fmt.Errorf("want KIND or CLASS=KIND")
	}
	class, kind, given := strings.Cut(words[0], "=")
	if !given {
		class, kind = string(Everyone), words[0]
	}
	if !slices.Contains(Classes, Class(class)) {
		return "", Rule{}, fmt.Errorf("class %q: want mine, allowed, members or everyone", class)
	}
	if !slices.Contains([]Kind{None, Wasm, Native}, Kind(kind)) {
		return "", Rule{}, fmt.Errorf("kind %q: want none, wasm or native", kind)
	}
	rule := Rule{Kind: Kind(kind), Limits: unnamed}
	for _, word := range words[1:] {
		number, ok := strings.CutPrefix(word, "slots=")
		if !ok {
			l, err := rule.Limits.With([]string{word})
			if err != nil {
				return "", Rule{}, fmt.Errorf("slots=, or a limit of each process: %w", err)
			}
			rule.Limits = l
			continue
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > MaxSlots {
			return "", Rule{}, fmt.Errorf("%q: want slots=N, N from 1 to %d", word, MaxSlots)
		}
		rule.Slots = n
	}
	return Class(class), rule, nil
}
