package job

import (
	"strings"
	"testing"
)

// TestHintOfALostRank: more replicas do not help a program that crashes in each of them.
func TestHintOfALostRank(t *testing.T) {
	for _, c := range []struct {
		signals [2]string
		want    string
	}{
		{[2]string{"segmentation fault", "aborted"}, "the program crashed in each replica"},
		{[2]string{"broken pipe", "alarm clock"}, "the program crashed in each replica"},
		{[2]string{"segmentation fault", "killed"}, "larger -r"},
		{[2]string{"killed", "killed"}, "larger -r"},
	} {
		w := newWatch(1, 2)
		for k, signal := range c.signals {
			w.at(proc(0, k)).exit = &exit{Code: -1, Signal: signal, Initialized: true}
		}
		if r := w.lost(0); r.Status != StatusLost || !strings.Contains(r.Hint, c.want) {
			t.Errorf("%v: %+v, want %q", c.signals, r, c.want)
		}
	}
}

// TestHintOfTheWrongPlatform: more peers do not help a job that asks for a processor that no peer
// has.
func TestHintOfTheWrongPlatform(t *testing.T) {
	c := considered{"a": {Platforms, "linux/amd64"}, "b": {Platforms, "linux/amd64"}, "c": {Platforms, "darwin/arm64"}}
	if hint := c.tell(1, 0).hint(); !strings.Contains(hint, "--arch") || !strings.HasSuffix(hint, "there is linux/amd64, darwin/arm64") || strings.Contains(hint, hintMorePeers) {
		t.Errorf("got %q", hint)
	}
	c["d"] = verdict{Busy, ""}
	if hint := c.tell(1, 0).hint(); hint != hintMorePeers {
		t.Errorf("got %q, want that of busy peers", hint)
	}
}

// TestHintOfTooMuchMemory: more peers do not help a job that asks for more memory than any peer
// has, unless some peers have it.
func TestHintOfTooMuchMemory(t *testing.T) {
	c := considered{"a": {TooSmall, ""}, "b": {TooSmall, ""}}
	if hint := c.tell(4, 0).hint(); !strings.Contains(hint, "lower --min-memory") || strings.Contains(hint, hintMorePeers) {
		t.Errorf("got %q", hint)
	}
	if hint := c.tell(4, 2).hint(); hint != hintMorePeers {
		t.Errorf("got %q with two slots found", hint)
	}
}
