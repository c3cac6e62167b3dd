package submit

import (
	"context"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/reservation"
)

const (
	// cachedTimeout is how long peers may take to report which files they have cached. A better
	// order of the candidates is not worth a longer wait.
	cachedTimeout = time.Second
	// cachedParallel limits how many peers are asked at the same time.
	cachedParallel = 32
)

// askCached asks the candidates how many bytes of the job's files they have cached. A candidate
// that does not answer counts as having none, whatever it reported in an earlier search.
func (q *slotSearch) askCached(ctx context.Context, candidates []reservation.Candidate) {
	for i := range candidates {
		candidates[i].Cached = 0
	}
	wants := q.j.largest()
	if len(wants) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cachedTimeout)
	defer cancel()
	digests := make([]filetransfer.Digest, len(wants))
	for i, w := range wants {
		digests[i] = w.Digest
	}
	turn := make(chan struct{}, cachedParallel)
	var asking sync.WaitGroup
	for i := range candidates {
		asking.Go(func() { // ends with the answer or ctx
			turn <- struct{}{}
			defer func() { <-turn }()
			has, err := q.j.s.cfg.Files.Cached(ctx, candidates[i].Peer, digests)
			if err != nil {
				q.j.log.Debug().Err(err).Msg("cached contents of a peer unknown")
				return
			}
			for k, w := range wants {
				if has[k] {
					candidates[i].Cached += w.Size
				}
			}
		})
	}
	asking.Wait()
}
