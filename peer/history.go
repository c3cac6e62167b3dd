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

// historyEvery is the interval at which the history is saved. A peer that is killed loses the running time
// since the last save.
const historyEvery = time.Minute

// A history keeps across restarts the total running time of a peer, and the number of times that it ended
// without a drain. The file in the home contains a mark while the peer runs. Only a drain removes the mark,
// so a mark at startup means that the last run ended in another way.
type history struct {
	file    string
	past    reliability.History // before this start
	started time.Time
}

// historyFile is the content of the history file in the home.
type historyFile struct {
	reliability.History
	Running bool `json:"running"`
}

// openHistory reads the history and marks the peer as running. It replaces an invalid history by an empty
// one: the history is only a hint, so the peer can start without it.
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

// save writes the history up to now. After a crash, the file is either the old or the new one.
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

// startHistory maintains the history of a volunteer.
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
