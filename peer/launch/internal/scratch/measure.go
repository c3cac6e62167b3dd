package scratch

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/p2pmpi/p2pmpi/internal/walk"
)

// A Ruler says how a folder is measured.
type Ruler struct {
	Least int64        // what a name counts at least, in bytes: see LeastEntry
	Most  int64        // bytes; of a folder that has more it is not found out how much; 0: it is
	Pause func() error // called now and then while it takes long; its error ends that; or nil
}

// Measure returns how much room the files in a folder take on disk, in bytes, while
// somebody works in it who may not want that known: folders that may not be looked into
// are given permissions. Each name counts as a file, but for further ones of a large file: those count as
// empty files. The error is of a folder that cannot be measured, as it changes meanwhile, or is nested too deep
// (walk.ErrDeep), or is that of Pause. Files that are open and have no name any more are not seen.
func Measure(folder string, r Ruler) (int64, error) {
	m := measurement{Ruler: r, seen: make(map[[2]uint64]bool)}
	err := walk.Walk(folder, m.add)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errEnough) {
		err = nil
	}
	if err != nil {
		return m.sum, fmt.Errorf("measure scratch folder: %w", err)
	}
	return m.sum, nil
}

// errEnough ends a measurement.
var errEnough = errors.New("that is too much")

// A measurement adds up what is in a folder.
type measurement struct {
	Ruler
	seen  map[[2]uint64]bool // large files: each is found again by another name, or when it is moved
	sum   int64
	names int
}

// between is how many names are looked at between two calls of Pause.
const between = 1024

func (m *measurement) add(e *walk.Entry) error {
	bytes, id := room(&e.Stat)
	if bytes > largeFile && !e.IsFolder() {
		if m.seen[id] {
			bytes = 0
		}
		m.seen[id] = true
	}
	m.sum += max(bytes, m.Least)
	if m.Most > 0 && m.sum > m.Most {
		return errEnough
	}
	if m.names++; m.names%between == 0 && m.Pause != nil {
		return m.Pause()
	}
	return nil
}
