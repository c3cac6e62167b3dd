package submit

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/p2pmpi/p2pmpi/filetransfer"
)

// downloaders is the number of files that are downloaded at once.
const downloaders = 4

// download fetches the job's input files from the web into the store, and returns them as local
// files.
func (j *run) download(ctx context.Context) ([]filetransfer.Source, error) {
	all := j.req.Downloads
	if len(all) == 0 {
		return nil, nil
	}
	store, client := j.s.cfg.Files.Store(), filetransfer.NewWebClient()
	defer client.CloseIdleConnections()
	show := j.showDownloads(len(all))
	j.downloaded = make([]filetransfer.Digest, len(all))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(downloaders)
	for i, d := range all {
		g.Go(func() (err error) { // ends with ctx
			j.downloaded[i], err = store.Download(ctx, client, j.spec.ID, d, func(h, t int64) { show(i, h, t) })
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	files := make([]filetransfer.Source, len(all))
	for i, d := range all {
		files[i] = filetransfer.Source{Path: d.Path, From: store.Path(j.downloaded[i])}
	}
	return files, nil
}

// showDownloads returns a function that shows the user the progress of n downloads. Several
// goroutines may call it while the job's goroutine waits for them.
func (j *run) showDownloads(n int) func(i int, here, total int64) {
	var mu sync.Mutex
	t := transfer{run: j, phase: Downloading}
	files := make([]struct{ here, total int64 }, n)
	j.phase(Downloading, 0, 0)
	return func(i int, here, total int64) {
		mu.Lock()
		defer mu.Unlock()
		files[i].here, files[i].total = here, max(here, total)
		var e Event
		for _, f := range files {
			e.Count, e.Total = e.Count+f.here, e.Total+f.total
		}
		now := time.Now()
		t.pace.take(now, e.Count)
		e.Rate, e.ETA = t.pace.rate(), t.pace.left(e.Total)
		t.tell(now, e)
	}
}
