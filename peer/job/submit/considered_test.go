package submit

import (
	"maps"
	"strings"
	"testing"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// TestLaterAttemptCorrectsEarlierOne: the reasons of the latest attempt count, unless they are less
// informative.
func TestLaterAttemptCorrectsEarlierOne(t *testing.T) {
	busy := reservation.Outcome{Reason: reservation.Busy}
	unreachable := reservation.Outcome{Reason: reservation.Unreachable}
	tests := []struct {
		name  string
		first job.Reason // of discovery
		asked []reservation.Outcome
		want  job.Reason // empty: it grants slots
	}{
		{"gives slots at last", "", []reservation.Outcome{busy, {Slots: 2}}, ""},
		{"gives slots though discovery thought it busy", job.Busy, []reservation.Outcome{{Slots: 2}}, ""},
		{"grants no more than before", "", []reservation.Outcome{{Slots: 1, Reason: reservation.Busy}}, ""},
		{"busy again", "", []reservation.Outcome{{Slots: 2}, busy}, job.Busy},
		{"not asked this time", "", []reservation.Outcome{busy, {}}, job.Busy},
		{"no longer there", "", []reservation.Outcome{busy, unreachable}, job.Unreachable},
		{"cut off for its version", job.Versions, []reservation.Outcome{unreachable}, job.Versions},
		{"cut off for its version, and back", job.Versions, []reservation.Outcome{unreachable, busy}, job.Busy},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			const peer = p2ppeer.ID("peer")
			c := considered{}
			if tt.first != "" {
				c[peer] = verdict{reason: tt.first}
			}
			for _, o := range tt.asked {
				o.Peer = peer
				before := maps.Clone(c)
				next := c.with(&reservation.ShortageError{Outcomes: []reservation.Outcome{o}})
				if !maps.Equal(before, c) {
					t.Error("with changed the previous verdicts")
				}
				c = next
			}
			if got := c[peer].reason; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestShortageSuggestsModulesIfTheyWouldHelp: the hint appears if peers that accept only modules
// have enough slots.
func TestShortageSuggestsModulesIfTheyWouldHelp(t *testing.T) {
	offers := func(peer p2ppeer.ID, granted, offers int) reservation.Outcome {
		return reservation.Outcome{Peer: peer, Slots: granted, Offers: offers}
	}
	for _, tt := range []struct {
		name     string
		reasons  map[p2ppeer.ID]job.Reason // by peer that grants nothing
		outcomes []reservation.Outcome
		want     bool
	}{
		{"busy only", map[p2ppeer.ID]job.Reason{"a": job.Busy, "b": job.Busy}, []reservation.Outcome{offers("a", 0, 2), offers("b", 0, 2)}, false},
		{"enough", map[p2ppeer.ID]job.Reason{"a": job.WasmOnly, "b": job.WasmOnly}, []reservation.Outcome{offers("a", 0, 2), offers("b", 0, 2)}, true},
		{"enough with what was found", map[p2ppeer.ID]job.Reason{"b": job.WasmOnly}, []reservation.Outcome{offers("a", 2, 2), offers("b", 0, 2)}, true},
		{"too few", map[p2ppeer.ID]job.Reason{"a": job.Busy, "b": job.WasmOnly}, []reservation.Outcome{offers("a", 0, 2), offers("b", 0, 2)}, false},
		{"no slots at all", map[p2ppeer.ID]job.Reason{"a": job.WasmOnly, "b": job.WasmOnly}, []reservation.Outcome{offers("a", 0, 0), offers("b", 0, 0)}, false},
		{"enough without it", map[p2ppeer.ID]job.Reason{"b": job.Busy}, []reservation.Outcome{offers("a", 4, 4), offers("b", 0, 2)}, false},
	} {
		c := considered{}
		for peer, reason := range tt.reasons {
			c[peer] = verdict{reason: reason}
		}
		short := &reservation.ShortageError{Need: reservation.Need{N: 2, R: 2}, Outcomes: tt.outcomes}
		for _, o := range tt.outcomes {
			short.FoundSlots += o.Slots
		}
		j := &run{req: Request{N: 2, R: 2}}
		r := c.shortage(j.req, short)
		if got := strings.Contains(r.Hint, "--as wasm"); got != tt.want || !strings.HasSuffix(r.Hint, hintMorePeers) {
			t.Errorf("%s: hint %q", tt.name, r.Hint)
		}
	}
}

// TestHintForAMissingPlatform: more peers do not help a job that asks for a processor that no peer
// has.
func TestHintForAMissingPlatform(t *testing.T) {
	c := considered{"a": {job.Platforms, "linux/amd64"}, "b": {job.Platforms, "linux/amd64"}, "c": {job.Platforms, "darwin/arm64"}}
	if hint := hint(c.summarize(1, 0), false); !strings.Contains(hint, "--arch") || !strings.HasSuffix(hint, "found only linux/amd64, darwin/arm64") || strings.Contains(hint, hintMorePeers) {
		t.Errorf("got %q", hint)
	}
	c["d"] = verdict{job.Busy, ""}
	if hint := hint(c.summarize(1, 0), false); hint != hintMorePeers {
		t.Errorf("got %q, want that of busy peers", hint)
	}
}

// TestHintForTooMuchMemory: more peers do not help a job that asks for more memory than any peer
// has, unless some peers have it.
func TestHintForTooMuchMemory(t *testing.T) {
	c := considered{"a": {job.TooSmall, ""}, "b": {job.TooSmall, ""}}
	if hint := hint(c.summarize(4, 0), false); !strings.Contains(hint, "lower --min-memory") || strings.Contains(hint, hintMorePeers) {
		t.Errorf("got %q", hint)
	}
	if hint := hint(c.summarize(4, 2), false); hint != hintMorePeers {
		t.Errorf("got %q with two slots found", hint)
	}
}
