package scratch

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/p2pmpi/p2pmpi/internal/walk"
)

// A Ruler configures how a folder is measured.
type Ruler struct {
	Least int64        // minimum bytes that a directory entry counts, see LeastEntry
	Most  int64        // the measurement stops above this many bytes; 0: no limit
	Pause func() error // called at intervals; an error aborts the measurement; may be nil
}

// Measure returns the bytes that the files in a folder occupy on disk. Processes may work in the folder
// meanwhile, and may try to hide files: Measure adds missing permissions to folders. Each directory entry
// counts as a file; further links to a large file count as empty files. Measure does not see deleted files
// that are still open. It returns an error if the folder changes too much to be measured or is nested too
// deeply (walk.ErrDeep), or if Pause fails.
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

// errEnough ends a measurement that exceeds Ruler.Most.
var errEnough = errors.New("the limit is exceeded")

// A measurement adds up the contents of a folder.
type measurement struct {
	Ruler
	seen  map[[2]uint64]bool // large files, each of which may be found again under another name
	sum   int64
	names int
}

// between is the number of entries between two calls of Pause.
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
