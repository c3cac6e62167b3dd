package policy

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
)

const (
	self   p2ppeer.ID = "self"
	friend p2ppeer.ID = "friend"
	other  p2ppeer.ID = "other"
)

// at returns a time of day in the local time zone.
func at(hour, minute int) time.Time { return time.Date(2026, 3, 1, hour, minute, 0, 0, time.Local) }

func rules(t testing.TB, texts ...string) map[Class]Rule {
	t.Helper()
	r, err := ParseRules(texts, limits.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestS3TermsMatchDecisions compares Terms with Decide for each class that can have submitters.
func TestS3TermsMatchDecisions(t *testing.T) {
	tests := []struct {
		name     string
		policy   Policy
		confined bool
		want     string
	}{
		{"default", Policy{Rules: rules(t)}, true, "mine: wasm, native; everyone: wasm"},
		{"allowed", Policy{Allow: []p2ppeer.ID{friend}, Rules: rules(t, "wasm slots=2 memory=64MiB")}, true,
			"mine: wasm, native; allowed: wasm, native; everyone: wasm, slots 2, memory 64 MiB"},
		{"without a sandbox", Policy{Allow: []p2ppeer.ID{friend}, Rules: rules(t, "native")}, false,
			"mine: wasm, native; allowed: wasm, native; everyone: wasm"},
		{"private", Policy{Private: true, Rules: rules(t, "none")}, true, "mine: wasm, native; members: nothing"},
		{"at night", Policy{Rules: rules(t), Quiet: Hours{{0, 24 * time.Hour}}}, true, "mine: wasm, native; everyone: wasm"},
	}
	for _, c := range tests {
		var all []string
		for _, terms := range c.policy.Terms(c.confined) {
			all = append(all, string(terms.Class)+": "+strings.Join(terms.Each(), ", "))
		}
		if got := strings.Join(all, "; "); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestS3PolicyDecides(t *testing.T) {
	confined := Machine{Confined: true, Now: at(12, 0)}
	bare := Machine{Now: at(12, 0)}
	paused := Machine{Confined: true, Suspended: true, Now: at(12, 0)}
	night := Machine{Confined: true, Now: at(23, 30)}
	full := Machine{Confined: true, NoDisk: true, Now: at(12, 0)}

	stranger := Policy{Self: self, Allow: []p2ppeer.ID{friend}, Rules: rules(t, "wasm slots=2")}
	careful := Policy{Self: self, Allow: []p2ppeer.ID{friend}, Rules: rules(t)}
	secluded := Policy{Self: self, Allow: []p2ppeer.ID{friend}, Rules: rules(t, "none")}
	secludedLab := Policy{Self: self, Private: true, Allow: []p2ppeer.ID{friend}, Rules: rules(t, "none")}
	tutored := Policy{Self: self, Private: true, Allow: []p2ppeer.ID{friend}, Rules: rules(t)}
	generous := Policy{Self: self, Rules: rules(t, "native")}
	reckless := Policy{Self: self, Rules: rules(t, "native"), Unconfined: true}
	lab := Policy{Self: self, Private: true, Rules: rules(t)}
	closed := Policy{Self: self, Private: true, Rules: rules(t, "none")}
	strict := Policy{Self: self, Allow: []p2ppeer.ID{friend}, Deny: []p2ppeer.ID{friend, self}, Rules: rules(t, "native")}
	sleeper := Policy{Self: self, Allow: []p2ppeer.ID{friend}, Rules: rules(t), Quiet: Hours{{22 * time.Hour, 6 * time.Hour}}}
	mineOnly := Policy{Self: self, Rules: rules(t, "none", "mine=wasm")}

	small := Policy{Self: self, Rules: rules(t, "wasm memory=64MiB", "mine=native memory=1GiB")}

	var unlimited limits.Limits
	native, wasm, both := []Kind{Native}, []Kind{Wasm}, []Kind{Wasm, Native}
	tests := []struct {
		name   string
		policy Policy
		here   Machine
		from   p2ppeer.ID
		kinds  []Kind
		want   Decision
	}{
		{"own job", stranger, confined, self, native, Decision{Mine, "", Native, 0, unlimited}},
		{"own job where nothing is confined", stranger, bare, self, native, Decision{Mine, "", Native, 0, unlimited}},
		{"own job on a full disk", stranger, full, self, native, Decision{Mine, "", Native, 0, unlimited}},
		{"friend's on a full disk", stranger, full, friend, native, Decision{Allowed, NoDisk, None, 0, unlimited}},
		{"stranger's on a full disk", stranger, full, other, wasm, Decision{Everyone, NoDisk, None, 2, unlimited}},
		{"friend's native program", stranger, confined, friend, native, Decision{Allowed, "", Native, 0, unlimited}},
		{"friend's native program where nothing is confined", stranger, bare, friend, native, Decision{Allowed, "", Native, 0, unlimited}},
		{"stranger's module", stranger, confined, other, wasm, Decision{Everyone, "", Wasm, 2, unlimited}},
		{"stranger's native program", stranger, confined, other, native, Decision{Everyone, WasmOnly, None, 2, unlimited}},
		{"a request without kinds has a native program", stranger, confined, other, nil, Decision{Everyone, WasmOnly, None, 2, unlimited}},
		{"stranger with both runs the module", stranger, confined, other, both, Decision{Everyone, "", Wasm, 2, unlimited}},
		{"friend with both runs the native program", stranger, confined, friend, both, Decision{Allowed, "", Native, 0, unlimited}},
		{"a list leaves modules to everyone", careful, confined, other, wasm, Decision{Everyone, "", Wasm, 0, unlimited}},
		{"an allow list admits no other native program", careful, confined, other, native, Decision{Everyone, WasmOnly, None, 0, unlimited}},
		{"an allow list leaves the rights of members", tutored, confined, other, native, Decision{Members, "", Native, 0, unlimited}},
		{"an allow list only", secluded, confined, other, wasm, Decision{Everyone, Denied, None, 0, unlimited}},
		{"an allow list only, in a private network", secludedLab, confined, other, wasm, Decision{Members, Denied, None, 0, unlimited}},
		{"an allowed peer, others denied", secluded, confined, friend, native, Decision{Allowed, "", Native, 0, unlimited}},
		{"native of everyone, confined", generous, confined, other, native, Decision{Everyone, "", Native, 0, unlimited}},
		{"native of everyone, no sandbox", generous, bare, other, native, Decision{Everyone, Unconfined, None, 0, unlimited}},
		{"no sandbox, but a module", generous, bare, other, both, Decision{Everyone, "", Wasm, 0, unlimited}},
		{"no sandbox required", reckless, bare, other, native, Decision{Everyone, "", Native, 0, unlimited}},
		{"member's native program", lab, confined, other, native, Decision{Members, "", Native, 0, unlimited}},
		{"member's native program, no sandbox", lab, bare, other, native, Decision{Members, Unconfined, None, 0, unlimited}},
		{"a rule for everyone is one for members", closed, confined, other, wasm, Decision{Members, Denied, None, 0, unlimited}},
		{"denied though allowed", strict, confined, friend, native, Decision{Allowed, Denied, None, 0, unlimited}},
		{"denied though mine", strict, confined, self, native, Decision{Mine, Denied, None, 0, unlimited}},
		{"limits of strangers", small, confined, other, wasm, Decision{Everyone, "", Wasm, 0, limits.Limits{Memory: 64 << 20}}},
		{"limits of mine", small, confined, self, native, Decision{Mine, "", Native, 0, limits.Limits{Memory: 1 << 30}}},
		{"paused", generous, paused, other, native, Decision{Everyone, Paused, None, 0, unlimited}},
		{"suspended for friends too", stranger, paused, friend, native, Decision{Allowed, Paused, None, 0, unlimited}},
		{"not suspended for the owner", stranger, paused, self, native, Decision{Mine, "", Native, 0, unlimited}},
		{"a denied peer does not learn of the suspension", secluded, paused, other, wasm, Decision{Everyone, Denied, None, 0, unlimited}},
		{"quiet hours", sleeper, night, friend, native, Decision{Allowed, Paused, None, 0, unlimited}},
		{"no quiet hours", sleeper, confined, friend, native, Decision{Allowed, "", Native, 0, unlimited}},
		{"quiet hours are not for the owner", sleeper, night, self, native, Decision{Mine, "", Native, 0, unlimited}},
		{"own modules only", mineOnly, confined, self, native, Decision{Mine, WasmOnly, None, 0, unlimited}},
		{"an owner without rules accepts nothing", Policy{Self: self}, confined, self, native, Decision{Mine, Denied, None, 0, unlimited}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.policy.Decide(tt.here, Request{Submitter: tt.from, Kinds: tt.kinds})
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if ever := tt.policy.Admits(tt.from); ever != (tt.want.Refused != Denied) {
				t.Errorf("admits: %v, with %+v", ever, got)
			}
		})
	}
}

func TestOffersStateThePolicy(t *testing.T) {
	for _, tt := range []struct {
		name     string
		policy   Policy
		confined bool
		want     []Kind
	}{
		{"by default", Policy{Self: self, Rules: rules(t)}, true, []Kind{Wasm}},
		{"native of everyone", Policy{Self: self, Rules: rules(t, "native")}, true, []Kind{Wasm, Native}},
		{"native, no sandbox", Policy{Self: self, Rules: rules(t, "native")}, false, []Kind{Wasm}},
		{"native, no sandbox required", Policy{Self: self, Rules: rules(t, "native"), Unconfined: true}, false, []Kind{Wasm, Native}},
		{"of members", Policy{Self: self, Private: true, Rules: rules(t)}, true, []Kind{Wasm, Native}},
		{"nothing", Policy{Self: self, Allow: []p2ppeer.ID{friend}, Rules: rules(t, "none")}, true, nil},
		{"at any hour", Policy{Self: self, Rules: rules(t), Quiet: Hours{{0, 24 * time.Hour}}}, true, []Kind{Wasm}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.policy.Announced(tt.confined); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestS3DefaultRules(t *testing.T) {
	for _, tt := range []struct {
		name  string
		texts []string
		want  map[Class]Rule
	}{
		{"no rules", nil, map[Class]Rule{Mine: {Kind: Native}, Allowed: {Kind: Native}, Members: {Kind: Native}, Everyone: {Kind: Wasm}}},
		{"limits", []string{"everyone=wasm slots=3 memory=256MiB time=1h", "members=native"}, map[Class]Rule{
			Mine: {Kind: Native}, Allowed: {Kind: Native}, Members: {Kind: Native},
			Everyone: {Kind: Wasm, Slots: 3, Limits: limits.Limits{Memory: 256 << 20, Time: time.Hour}},
		}},
		{"everyone, members included", []string{"wasm slots=3"}, map[Class]Rule{Mine: {Kind: Native}, Allowed: {Kind: Native}, Members: {Kind: Wasm, Slots: 3}, Everyone: {Kind: Wasm, Slots: 3}}},
		{"each", []string{"mine=wasm", "allowed=none", "members=wasm", "everyone=none"}, map[Class]Rule{Mine: {Kind: Wasm}, Allowed: {Kind: None}, Members: {Kind: Wasm}, Everyone: {Kind: None}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := rules(t, tt.texts...)
			for class, want := range tt.want {
				if got[class] != want {
					t.Errorf("%s: got %+v, want %+v", class, got[class], want)
				}
			}
		})
	}
}

func TestInvalidRules(t *testing.T) {
	for _, text := range []string{"", " ", "all", "friends=wasm", "wasm=everyone", "everyone=", "wasm slots", "wasm slots=0", "wasm slots=-1", "wasm slots=9999999", "native memory=256MiB ram=1", "native memory=1"} {
		if _, err := ParseRules([]string{text}, limits.Limits{}); err == nil || !strings.Contains(err.Error(), "accept") {
			t.Errorf("%q: got %v, want an error that names the option", text, err)
		}
	}
	if _, err := ParseRules([]string{"wasm", "everyone=native"}, limits.Limits{}); err == nil {
		t.Error("two rules for one class were accepted")
	}
}

func TestQuietHours(t *testing.T) {
	h, err := ParseHours([]string{"08:00-18:30", "22:00-06:00"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		hour, minute int
		want         bool
	}{{7, 59, false}, {8, 0, true}, {18, 29, true}, {18, 30, false}, {21, 59, false}, {22, 0, true}, {23, 59, true}, {0, 0, true}, {5, 59, true}, {6, 0, false}} {
		if got := h.Contain(at(tt.hour, tt.minute)); got != tt.want {
			t.Errorf("at %02d:%02d, Contain returned %v", tt.hour, tt.minute, got)
		}
	}
	if (Hours{}).Contain(at(0, 0)) {
		t.Error("no hours contain midnight")
	}
	for _, text := range []string{"", "8", "08:00", "08:00-08:00", "08:00-24:00", "a-b", "08:00-18:00-19:00"} {
		if _, err := ParseHours([]string{text}); err == nil || !strings.Contains(err.Error(), "quiet-hours") {
			t.Errorf("%q: got %v, want an error that names the option", text, err)
		}
	}
}

func TestDeniedClassesHaveNoLimits(t *testing.T) {
	p := Policy{Rules: map[Class]Rule{
		Members:  {Kind: Native, Limits: limits.Limits{Memory: 1}},
		Everyone: {Kind: None, Limits: limits.Limits{CPU: 1}},
	}}
	if got := p.Limits(); len(got) != 1 || got[0] != (limits.Limits{Memory: 1}) {
		t.Errorf("the limits of the classes are %+v", got)
	}
}

// TestAllowListWithoutADefaultRuleWarns checks the warning for an owner who lists allowed submitters and
// has no rule for others.
func TestAllowListWithoutADefaultRuleWarns(t *testing.T) {
	for name, c := range map[string]struct {
		private bool
		friends bool
		rules   []string
		want    map[Class]Kind
	}{
		"friends":                          {false, true, nil, map[Class]Kind{Everyone: Wasm}},
		"friends in a private network":     {true, true, nil, map[Class]Kind{Members: Native, Everyone: Wasm}},
		"friends, and a rule for members":  {true, true, []string{"members=none"}, map[Class]Kind{Everyone: Wasm}},
		"friends alone":                    {true, true, []string{"none"}, nil},
		"friends, and a rule for everyone": {false, true, []string{"everyone=wasm slots=1"}, nil},
		"friends, with a rule for them":    {false, true, []string{"allowed=wasm"}, map[Class]Kind{Everyone: Wasm}},
		"no class":                         {true, false, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := Policy{Self: self, Private: c.private, Rules: rules(t, c.rules...)}
			if c.friends {
				p.Allow = []p2ppeer.ID{friend}
			}
			if got := p.OthersMayRun(c.rules); !maps.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestO1StrangersGetLessByDefault checks that the limits of strangers apply to everyone where no rule names
// a limit, and to no other class.
func TestO1StrangersGetLessByDefault(t *testing.T) {
	strangers := limits.Limits{Memory: 1 << 30, Time: 12 * time.Hour}
	for _, c := range []struct {
		rules             []string
		everyone, members limits.Limits
	}{
		{nil, strangers, limits.Limits{}},
		{[]string{"wasm slots=2"}, strangers, limits.Limits{}},
		{[]string{"members=wasm"}, strangers, limits.Limits{}},
		{[]string{"everyone=wasm time=1h"}, limits.Limits{Memory: 1 << 30, Time: time.Hour}, limits.Limits{Time: time.Hour}},
		{[]string{"everyone=wasm memory=none time=none"}, limits.Limits{}, limits.Limits{}},
	} {
		r, err := ParseRules(c.rules, strangers)
		if err != nil {
			t.Fatal(err)
		}
		if got := r[Everyone].Limits; got != c.everyone {
			t.Errorf("%q: everyone has %+v, want %+v", c.rules, got, c.everyone)
		}
		if got := r[Members].Limits; got != c.members {
			t.Errorf("%q: members have %+v, want %+v", c.rules, got, c.members)
		}
		if got := r[Mine].Limits; got != (limits.Limits{}) {
			t.Errorf("%q: the owner has %+v", c.rules, got)
		}
	}
}
