package peer

import (
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
	"github.com/p2pmpi/p2pmpi/peer/owner/uptime"
)

// historyEvery is the interval at which the history is saved. A peer that is killed loses the running time
// since the last save.
const historyEvery = time.Minute

// startHistory maintains the history of a volunteer.
func (p *Peer) startHistory() error {
	var err error
	if p.history, err = uptime.Open(p.home.History(), p.started); err != nil {
		return &homedir.Error{Home: string(p.home), Err: err}
	}
	var saver sync.WaitGroup
	saver.Go(p.keepHistory) // ends with the peer's life
	p.owns("history", func() error {
		saver.Wait()
		return p.history.Save(time.Now(), !p.drained.Load())
	})
	return nil
}

func (p *Peer) keepHistory() {
	tick := time.NewTicker(historyEvery)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			if err := p.history.Save(now, true); err != nil {
				p.log.Warn().Err(err).Msg("history not kept")
			}
		case <-p.life.Done():
			return
		}
	}
}
