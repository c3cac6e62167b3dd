package job

import (
	"maps"
	"strings"
	"testing"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/reservation"
)

// TestLaterAttemptCorrectsEarlierOne: the reasons of the latest attempt count, unless they are less
// informative.
func TestLaterAttemptCorrectsEarlierOne(t *testing.T) {
	busy := reservation.Outcome{Reason: reservation.Busy}
	unreachable := reservation.Outcome{Reason: reservation.Unreachable}
	tests := []struct {
		name  string
		first Reason // of discovery
		asked []reservation.Outcome
		want  Reason // empty: it grants slots
	}{
		{"gives slots at last", "", []reservation.Outcome{busy, {Slots: 2}}, ""},
		{"gives slots though discovery thought it busy", Busy, []reservation.Outcome{{Slots: 2}}, ""},
		{"gives no more than it gave", "", []reservation.Outcome{{Slots: 1, Reason: reservation.Busy}}, ""},
		{"busy again", "", []reservation.Outcome{{Slots: 2}, busy}, Busy},
		{"not asked this time", "", []reservation.Outcome{busy, {}}, Busy},
		{"no longer there", "", []reservation.Outcome{busy, unreachable}, Unreachable},
		{"cut off for its version", Versions, []reservation.Outcome{unreachable}, Versions},
		{"cut off for its version, and back", Versions, []reservation.Outcome{unreachable, busy}, Busy},
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
					t.Error("what was known before is changed")
				}
				c = next
			}
			if got := c[peer].reason; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestShortageHintsAtModulesWhereTheyWouldHelp: the hint appears if peers that accept only modules
// have enough slots.
func TestShortageHintsAtModulesWhereTheyWouldHelp(t *testing.T) {
	offers := func(peer p2ppeer.ID, granted, offers int) reservation.Outcome {
		return reservation.Outcome{Peer: peer, Slots: granted, Offers: offers}
	}
	for _, tt := range []struct {
		name     string
		reasons  map[p2ppeer.ID]Reason // by peer that grants nothing
		outcomes []reservation.Outcome
		want     bool
	}{
		{"busy only", map[p2ppeer.ID]Reason{"a": Busy, "b": Busy}, []reservation.Outcome{offers("a", 0, 2), offers("b", 0, 2)}, false},
		{"enough", map[p2ppeer.ID]Reason{"a": WasmOnly, "b": WasmOnly}, []reservation.Outcome{offers("a", 0, 2), offers("b", 0, 2)}, true},
		{"enough with what was found", map[p2ppeer.ID]Reason{"b": WasmOnly}, []reservation.Outcome{offers("a", 2, 2), offers("b", 0, 2)}, true},
		{"too few", map[p2ppeer.ID]Reason{"a": Busy, "b": WasmOnly}, []reservation.Outcome{offers("a", 0, 2), offers("b", 0, 2)}, false},
		{"no slots at all", map[p2ppeer.ID]Reason{"a": WasmOnly, "b": WasmOnly}, []reservation.Outcome{offers("a", 0, 0), offers("b", 0, 0)}, false},
		{"enough without it", map[p2ppeer.ID]Reason{"b": Busy}, []reservation.Outcome{offers("a", 4, 4), offers("b", 0, 2)}, false},
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
		r := j.shortage(c, short)
		if got := strings.Contains(r.Hint, "--as wasm"); got != tt.want || !strings.HasSuffix(r.Hint, hintMorePeers) {
			t.Errorf("%s: hint %q", tt.name, r.Hint)
		}
	}
}
