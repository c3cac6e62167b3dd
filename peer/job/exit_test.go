package job

import (
	"strings"
	"testing"
)

// TestHintForALostRank: more replicas do not help a program that crashes in each of them.
func TestHintForALostRank(t *testing.T) {
	for _, c := range []struct {
		signals [2]string
		want    string
	}{
		{[2]string{"segmentation fault", "aborted"}, "the program crashed in each replica"},
		{[2]string{"broken pipe", "alarm clock"}, "the program crashed in each replica"},
		{[2]string{"segmentation fault", "killed"}, "larger -r"},
		{[2]string{"killed", "killed"}, "larger -r"},
	} {
		w := NewState(1, 2)
		for k, signal := range c.signals {
			w.at(proc(0, k)).exit = &Exit{Code: -1, Signal: signal, Initialized: true}
		}
		if r := w.lost(0); r.Status != StatusLost || !strings.Contains(r.Hint, c.want) {
			t.Errorf("%v: %+v, want %q", c.signals, r, c.want)
		}
	}
}
