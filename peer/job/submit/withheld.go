package submit

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// withheld records, for each output leader that has ended, since when its output has made no
// progress. A rank is done once the user has all its output, so a peer that withholds some would
// delay the job forever (V4).
type withheld map[view.Process]time.Time

// overdue returns those of the given processes whose output has made no progress for at least the
// time that most allows.
func (w withheld) overdue(speakers []view.Process, most func(view.Process) time.Duration, now time.Time) (out []view.Process) {
	maps.DeleteFunc(w, func(p view.Process, _ time.Time) bool { return !slices.Contains(speakers, p) })
	for _, p := range speakers {
		since, known := w[p]
		switch {
		case !known:
			w[p] = now
		case now.Sub(since) >= most(p):
			out = append(out, p)
		}
	}
	return out
}

var errWithheld = errors.New("its process has ended, but the rest of its output does not arrive")
