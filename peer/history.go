package peer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/atomicfile"
	"github.com/p2pmpi/p2pmpi/internal/reliability"
)

// historyEvery is how often the history is written. A peer that is killed
// forgets that it has run since.
const historyEvery = time.Minute

// A history keeps across restarts how long a peer has run, and how often it
// ended without waiting for jobs. The file in the home bears a mark while the
// peer runs, which only a drain takes away: a peer that finds the mark at its
// start has ended otherwise.
type history struct {
	file    string
	past    reliability.History // before this start
	started time.Time
}

// historyFile is what stands in the home.
type historyFile struct {
	reliability.History
	Running bool `json:"running"`
}

// openHistory reads the history and marks the peer as running. One that makes
// no sense is begun anew: it is a hint, and no reason not to start.
func openHistory(file string, now time.Time) (*history, error) {
	var saved historyFile
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read history: %w", err)
	}
	if json.Unmarshal(data, &saved) != nil {
		saved = historyFile{}
	}
	if saved.Running {
		saved.Ends++
	}
	h := &history{file: file, past: saved.History.Recent(), started: now}
	return h, h.save(now, true)
}

// at returns the history up to now.
func (h *history) at(now time.Time) reliability.History {
	past := h.past
	past.Up += now.Sub(h.started)
	return past
}

// save writes the history up to now. A crash leaves the old one or the new one.
func (h *history) save(now time.Time, running bool) error {
	data, err := json.Marshal(historyFile{h.at(now), running})
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	if err := atomicfile.Write(h.file, append(data, '\n')); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

// startHistory keeps the history of a peer that others rely on.
func (p *Peer) startHistory() error {
	var err error
	if p.history, err = openHistory(p.home.history(), p.started); err != nil {
		return &HomeError{string(p.home), err}
	}
	var saver sync.WaitGroup
	saver.Go(p.keepHistory) // ends with the peer's life
	p.owns("history", func() error {
		saver.Wait()
		return p.history.save(time.Now(), !p.drained.Load())
	})
	return nil
}

func (p *Peer) keepHistory() {
	tick := time.NewTicker(historyEvery)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			if err := p.history.save(now, true); err != nil {
				p.log.Warn().Err(err).Msg("history not kept")
			}
		case <-p.life.Done():
			return
		}
	}
}
