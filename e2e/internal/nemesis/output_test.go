package nemesis

import (
	"strings"
	"testing"
)

func TestRepeatedLinesCountOnce(t *testing.T) {
	lines := func(all ...string) string { return strings.Join(append(all, ""), "\n") }
	for name, c := range map[string]struct {
		first, second string
		most          int
		want          string
	}{
		"no repeated line": {lines("rank 0 a 1"), lines("rank 0 a 2"), 9, lines("rank 0 a 1", "rank 0 a 2")},
		"no first output":  {"", lines("rank 0 a 1"), 9, lines("rank 0 a 1")},
		"no second output": {lines("rank 0 a 1"), "", 9, lines("rank 0 a 1")},
		"the last line":    {lines("rank 0 a 1", "rank 0 a 2"), lines("rank 0 a 2", "rank 0 a 3"), 1, lines("rank 0 a 1", "rank 0 a 2", "rank 0 a 3")},
		"of two ranks": {
			lines("rank 0 a 1", "rank 1 a 1", "rank 0 a 2"), lines("rank 1 a 1", "rank 0 a 2", "rank 1 a 2"), 2,
			lines("rank 0 a 1", "rank 1 a 1", "rank 0 a 2", "rank 1 a 2"),
		},
		"in the middle of a line": {lines("rank 0 a 1") + "rank 0 a", lines("rank 0 a 2"), 9, lines("rank 0 a 1", "rank 0 a 2")},
		"killed again":            {lines("rank 0 a 1", "rank 0 a 2"), lines("rank 0 a 1"), 9, lines("rank 0 a 1", "rank 0 a 2")},
		"more than allowed":       {lines("rank 0 a 1", "rank 0 a 2"), lines("rank 0 a 1", "rank 0 a 2"), 1, lines("rank 0 a 1", "rank 0 a 2", "rank 0 a 1", "rank 0 a 2")},
		"another line in between": {lines("rank 0 a 1", "rank 0 a 2"), lines("rank 0 a 1", "rank 0 a 3"), 9, lines("rank 0 a 1", "rank 0 a 2", "rank 0 a 1", "rank 0 a 3")},
		"lines of unknown ranks":  {lines("steps 1", "steps 2"), lines("steps 2", "steps 3"), 1, lines("steps 1", "steps 2", "steps 3")},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Continued(c.first, c.second, c.most); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
