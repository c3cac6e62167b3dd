package submit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/jobspec"
	"github.com/p2pmpi/p2pmpi/peer/owner/policy"
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

// describe hashes the program and the input files, and signs the job.
func (j *run) describe(ctx context.Context) error {
	err := errors.Join(checkOutputDir(j.req), checkUnused(j.req))
	if err != nil {
		return err
	}
	files, err := j.download(ctx)
	if err != nil {
		return err
	}
	files = slices.Concat(files, j.req.Inputs)
	if j.inputs, err = filetransfer.Build(ctx, files); err != nil {
		return err
	}
	j.local = filetransfer.Locate(j.inputs, files)
	if err := j.describePrograms(ctx); err != nil {
		return err
	}
	encoded, err := j.inputs.Marshal()
	if err != nil {
		return fmt.Errorf("list of input files: %w", err)
	}
	store := j.s.cfg.Files.Store()
	digest, err := store.Put(ctx, j.spec.ID, encoded)
	if err != nil {
		return fmt.Errorf("keep list of input files: %w", err)
	}
	j.local[digest] = filetransfer.Source{From: store.Path(digest)}
	list := filetransfer.WantOf(encoded)
	j.spec.Inputs, j.spec.InputsLen, j.spec.InputsPieces = digest.String(), list.Size, list.Pieces
	j.envelope, err = j.spec.Sign(j.s.cfg.Key)
	if len(j.envelope) > jobspec.MaxEncoded {
		err = fmt.Errorf("the job's description has %d bytes, at most %d are allowed: put long arguments into a file; programs may have about 6 GiB in total", len(j.envelope), jobspec.MaxEncoded)
	}
	if err != nil {
		return err
	}
	if err := j.keeper.writeWork(j); err != nil {
		j.warn(unreplaced(err))
	}
	return nil
}

func (j *run) describePrograms(ctx context.Context) error {
	for _, p := range j.req.Programs {
		source := []filetransfer.Source{{Path: "program", From: p.Path}}
		m, err := filetransfer.Build(ctx, source)
		if err != nil {
			return fmt.Errorf("program: %w", err)
		}
		if m[0].Size == 0 {
			return fmt.Errorf("program %s: the file is empty", p.Path)
		}
		maps.Copy(j.local, filetransfer.Locate(m, source))
		j.storeProgram(ctx, p.Path, m[0])
		j.spec.Programs = append(j.spec.Programs, jobspec.Program{
			OS: p.OS, Arch: p.Arch, Digest: m[0].Digest.String(), Size: m[0].Size, Pieces: m[0].Pieces,
		})
	}
	return nil
}

// maxStoredProgram limits, in bytes, the size of a program that storeProgram reads into memory.
const maxStoredProgram = 256 << 20

// storeProgram copies a program that a p2prun has handed to a resident peer into the store. A
// program that a p2prun has built is lost if that p2prun is killed, and a replacement for a lost
// replica still needs it. If the copy fails, for instance for lack of space, the job continues to
// use the original file.
func (j *run) storeProgram(ctx context.Context, program string, e filetransfer.Entry) {
	if !j.s.cfg.Resident || e.Size > maxStoredProgram {
		return
	}
	store := j.s.cfg.Files.Store()
	content, err := os.ReadFile(program)
	if err == nil {
		_, err = store.Put(ctx, j.spec.ID, content)
	}
	if err != nil || !store.Has(e.Digest) {
		j.log.Info().Err(err).Msg("the program is used from its original path")
		return
	}
	j.local[e.Digest] = filetransfer.Source{From: store.Path(e.Digest)}
}

// contents returns the most bytes that a peer has to stage: all inputs and the largest program.
func (j *run) contents() (bytes int64) {
	for _, p := range j.spec.Programs {
		bytes = max(bytes, p.Size)
	}
	for _, f := range j.inputs {
		bytes += f.Size
	}
	return bytes
}

// kinds returns the kinds of the job's programs, as owners' policies name them.
func (j *run) kinds() []string {
	var kinds []string
	for _, p := range j.spec.Programs {
		kind := policy.Native
		if p.Wasm() {
			kind = policy.Wasm
		}
		if !slices.Contains(kinds, string(kind)) {
			kinds = append(kinds, string(kind))
		}
	}
	return kinds
}

// largest returns the contents that the job needs, the largest first, up to the limit of one
// request.
func (j *run) largest() []filetransfer.Want {
	wants := slices.Clone(j.inputs.Wants())
	for _, p := range j.spec.Programs {
		if d, err := filetransfer.ParseDigest(p.Digest); err == nil {
			wants = append(wants, filetransfer.Want{Digest: d, Size: p.Size})
		}
	}
	slices.SortFunc(wants, func(a, b filetransfer.Want) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), slices.Compare(a.Digest[:], b.Digest[:]))
	})
	wants = slices.CompactFunc(wants, func(a, b filetransfer.Want) bool { return a.Digest == b.Digest })
	return wants[:min(len(wants), filetransfer.MaxAsked)]
}
