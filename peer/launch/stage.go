package launch

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync/atomic"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// progress counts the bytes of a job's files.
type progress struct{ here, total atomic.Int64 }

// shareFiles exchanges the files that this peer fetches for the job with some of the job's other peers.
// That ends with the job, or when the owner needs the machine.
func (j *job) shareFiles() {
	var ids, near []p2ppeer.ID
	for _, f := range j.fellows {
		ids = append(ids, f.ID)
		if f.near {
			near = append(near, f.ID)
		}
		j.service.host.Peerstore().AddAddrs(f.ID, f.Addrs, peerstore.TempAddrTTL)
	}
	if j.limitsUpload() {
		j.serving = append(j.serving, j.service.config.Files.Pace(j.spec.ID, j.pacing))
	}
	j.unshare = j.service.config.Files.Share(j.spec.ID, j.submitter, ids, near)
	j.serving = append(j.serving, j.unshare)
}

// stage fetches the job's files and lays them out.
func (j *job) stage() {
	defer j.working.Done()
	err := j.makeFolders()
	if err == nil {
		err = j.bring(j.ctx)
	}
	if err == nil && j.program.Wasm() {
		err = j.bringModule()
	}
	j.do(func() { j.staged(err) })
}

func (j *job) staged(err error) {
	if err != nil {
		j.refuse(prepared(err, nil), err)
		return
	}
	j.reportStaging()
	j.presence.lastMessageAt, j.stagedAt = time.Now(), time.Now()
	j.enter(Staged)
	j.send(prepared(nil, machineOf(j.spec.ID)))
}

const (
	// startTimeout is how long a submitter may be silent after staging. It is many times the interval at
	// which the submitter reports that other peers still stage.
	startTimeout = 2 * time.Minute
	// maxStaged bounds the total time between staging and Start, whatever the submitter reports.
	maxStaged = time.Hour
)

// awaitStart ends a staged job whose submitter is connected and silent for too long, or delays Start for
// too long. Slots are not reserved forever.
func (j *job) awaitStart() {
	switch {
	case time.Since(j.presence.lastMessageAt) > startTimeout:
		j.end(fmt.Errorf("no message from the submitter for %v after staging", startTimeout))
	case time.Since(j.stagedAt) > maxStaged:
		j.end(fmt.Errorf("the submitter has not started the job for %v after staging", maxStaged))
	}
}

// reportStaging reports progress. Until the processes run, it also tells the submitter that this peer is
// present.
func (j *job) reportStaging() { j.send(staging(j.progress.here.Load(), j.progress.total.Load())) }

// reportPresence tells the submitter that this peer is present, as long as its fault detector may not watch
// this peer yet.
func (j *job) reportPresence() {
	switch j.state {
	case Staging, Staged, Starting:
		j.reportStaging()
	case Running:
		if time.Now().Before(j.reportsUntil) {
			j.reportStaging()
		}
	}
}

func (j *job) makeFolders() error {
	err := j.folder.Make()
	for _, p := range j.order {
		if err == nil {
			err = j.folder.MakeProcess(p)
		}
	}
	return err
}

// layOutAttempts bounds how often files that turn out to be corrupted in the store are fetched again.
const layOutAttempts = 3

// bring fetches the files that the store lacks, and copies them into the folders.
func (j *job) bring(ctx context.Context) error {
	inputs, err := j.fetchManifest(ctx)
	if err != nil {
		return err
	}
	program, err := j.programManifest()
	if err != nil {
		return err
	}
	if err := j.checkInputs(inputs, len(j.order)); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		if err = j.fetch(ctx, program.Wants(), inputs.Wants()); err != nil {
			return err
		}
		err = j.layOut(ctx, program, inputs, j.order)
		if !errors.Is(err, filetransfer.ErrMissing) || attempt == layOutAttempts {
			return err
		}
	}
}

func (j *job) fetchManifest(ctx context.Context) (filetransfer.Manifest, error) {
	digest, err := filetransfer.ParseDigest(j.spec.Inputs)
	if err != nil {
		return nil, err
	}
	want := filetransfer.Want{Digest: digest, Size: j.spec.InputsLen, Pieces: j.spec.InputsPieces, Name: "list of input files"}
	return j.service.config.Files.FetchManifest(ctx, j.submitter, j.spec.ID, want)
}

// programManifest returns the manifest of the job's executable. The file keeps its own name if that is a
// valid file name.
func (j *job) programManifest() (filetransfer.Manifest, error) {
	digest, err := filetransfer.ParseDigest(j.program.Digest)
	if err != nil {
		return nil, err
	}
	m := filetransfer.Manifest{{Path: path.Base(j.spec.Name), Size: j.program.Size, Mode: 0o700, Digest: digest, Pieces: j.program.Pieces}}
	if m.Validate() != nil {
		m[0].Path = "program"
	}
	return m, m.Validate()
}

// fetch fetches lists of files. Each list is shared only among the peers that fetch the same one: programs
// differ between platforms.
func (j *job) fetch(ctx context.Context, lists ...[]filetransfer.Want) error {
	files := j.service.config.Files
	var here, total int64
	for _, w := range slices.Concat(lists...) {
		total += w.Size
		if files.Store().Has(w.Digest) {
			here += w.Size
		}
	}
	j.progress.here.Store(here)
	j.progress.total.Store(total)
	for _, list := range lists {
		if err := files.Fetch(ctx, j.submitter, j.spec.ID, list, func(bytes int64) { j.progress.here.Add(bytes) }); err != nil {
			return err
		}
	}
	return nil
}

// layOut copies the files for each of the given processes, so that no process can change what another
// reads.
func (j *job) layOut(ctx context.Context, program, inputs filetransfer.Manifest, processes []view.Process) error {
	store := j.service.config.Files.Store()
	if err := store.Materialize(ctx, program, j.folder.Program()); err != nil {
		return fmt.Errorf("lay out program: %w", err)
	}
	for _, p := range processes {
		if err := store.Materialize(ctx, inputs, j.folder.Process(p)); err != nil {
			return fmt.Errorf("lay out inputs of process %v: %w", p, err)
		}
	}
	return nil
}
