package uptime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/atomicfile"
	"github.com/p2pmpi/p2pmpi/internal/reliability"
)

// A History keeps across restarts the total running time of a peer, and the number of times that it ended
// without a drain. The file in the home contains a mark while the peer runs. Only a drain removes the mark,
// so a mark at startup means that the last run ended without a drain.
type History struct {
	file    string
	past    reliability.History // before this start
	started time.Time
}

// content is the content of the history file in the home.
type content struct {
	reliability.History
	Running bool `json:"running"`
}

// Open reads the history and marks the peer as running. It replaces an invalid history by an empty
// one: the history is only a hint, so the peer can start without it.
func Open(file string, now time.Time) (*History, error) {
	var saved content
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read history: %w", err)
	}
	if json.Unmarshal(data, &saved) != nil {
		saved = content{}
	}
	if saved.Running {
		saved.Ends++
	}
	h := &History{file: file, past: saved.History.Recent(), started: now}
	return h, h.Save(now, true)
}

// At returns the history up to now.
func (h *History) At(now time.Time) reliability.History {
	past := h.past
	past.Up += now.Sub(h.started)
	return past
}

// Save writes the history up to now. After a crash, the file is either the old or the new one.
func (h *History) Save(now time.Time, running bool) error {
	data, err := json.Marshal(content{h.At(now), running})
	if err == nil {
		err = atomicfile.Write(h.file, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

// saveEvery is the interval at which Keep saves the history. A peer that is killed loses the running time
// since the last save.
const saveEvery = time.Minute

// Keep saves the history of a running peer regularly, until ctx ends.
func (h *History) Keep(ctx context.Context, log zerolog.Logger) {
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			if err := h.Save(now, true); err != nil {
				log.Warn().Err(err).Msg("cannot save the history")
			}
		case <-ctx.Done():
			return
		}
	}
}
