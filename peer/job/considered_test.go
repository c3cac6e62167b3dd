package job

import (
	"maps"
	"strings"
	"testing"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/reservation"
)

// TestLaterAttemptCorrectsEarlierOne: the reasons are those of the latest attempt, unless that knows less.
func TestLaterAttemptCorrectsEarlierOne(t *testing.T) {
	busy := reservation.Outcome{Reason: reservation.Busy}
	unreachable := reservation.Outcome{Reason: reservation.Unreachable}
	tests := []struct {
		name  string
		first Reason // by discovery
		asked []reservation.Outcome
		want  Reason // none: it gives slots
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

func TestShortageHintsAtModulesWhereTheyWouldHelp(t *testing.T) {
	for _, reason := range []Reason{Busy, WasmOnly} {
		s := considered{"a": {Busy, ""}, "b": {reason, ""}}.tell(1, 0)
		if got := strings.Contains(s.hint(), "--as wasm"); got != (reason == WasmOnly) || !strings.HasSuffix(s.hint(), hintMorePeers) {
			t.Errorf("%s: hint %q", reason, s.hint())
		}
	}
}
