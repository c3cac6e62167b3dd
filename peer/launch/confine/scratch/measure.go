package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

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
	found, err := Survey(folder, r)
	return found.Bytes, err
}

// Survey measures like Measure, and returns what it has found for a comparison with another survey.
func Survey(folder string, r Ruler) (Found, error) {
	m := measurement{Ruler: r, paused: time.Now(), Found: Found{large: make(map[[2]uint64]int64)}}
	err := walk.Walk(folder, m.add)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errEnough) {
		err = nil
	}
	if err != nil {
		return m.Found, fmt.Errorf("measure scratch folder: %w", err)
	}
	return m.Found, nil
}

// Found is the result of a measurement.
type Found struct {
	Bytes int64
	large map[[2]uint64]int64 // bytes of each large file, which may be found again under another name
}

// InBoth returns the bytes of what two measurements of a folder have both found. It compares large files by
// their identities. Of the other entries, it returns the smaller sum.
func (f Found) InBoth(before Found) (sum int64) {
	rest, restBefore := f.Bytes, before.Bytes
	for id, bytes := range f.large {
		rest -= bytes
		sum += min(bytes, before.large[id])
	}
	for _, bytes := range before.large {
		restBefore -= bytes
	}
	return sum + min(rest, restBefore)
}

// errEnough ends a measurement that exceeds Ruler.Most.
var errEnough = errors.New("the limit is exceeded")

// A measurement adds up the contents of a folder.
type measurement struct {
	Ruler
	Found
	paused time.Time // last call of Pause
}

// pauseEvery is the minimum time between two calls of Pause.
const pauseEvery = time.Millisecond

func (m *measurement) add(e *walk.Entry) error {
	bytes, id := room(&e.Stat)
	if bytes > largeFile && !e.IsFolder() {
		if m.large[id] > 0 {
			bytes = 0
		} else {
			m.large[id] = bytes
		}
	}
	m.Bytes += max(bytes, m.Least)
	if m.Most > 0 && m.Bytes > m.Most {
		return errEnough
	}
	if m.Pause == nil || time.Since(m.paused) < pauseEvery {
		return nil
	}
	m.paused = time.Now()
	return m.Pause()
}
