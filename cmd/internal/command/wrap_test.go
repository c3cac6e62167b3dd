package command

import (
	"bytes"
	"testing"
)

func TestWrapBreaksBetweenWords(t *testing.T) {
	tests := map[string]struct {
		text  string
		width int
		want  string
	}{
		"no terminal": {"one two three four", 0, "p2p: one two three four\n"},
		"fits":        {"one two", 12, "p2p: one two\n"},
		"breaks":      {"one two three four", 12, "p2p: one two\n     three\n     four\n"},
		"characters":  {"●●● ●●●", 12, "p2p: ●●● ●●●\n"},
		"long word":   {"a /ip4/127.0.0.1/tcp/1 b", 12, "p2p: a\n     /ip4/127.0.0.1/tcp/1\n     b\n"},
		"spaces stay": {"a  b", 80, "p2p: a  b\n"},
		"nothing":     {"", 80, "p2p: \n"},
	}
	for name, test := range tests {
		if got := Sentence("p2p", test.text, test.width); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestOnlyATerminalHasAWidth(t *testing.T) {
	if got := Width(&bytes.Buffer{}); got != 0 {
		t.Errorf("got %d, want 0", got)
	}
}
