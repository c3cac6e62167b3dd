package launch

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/jobspec"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/scratch"
)

// A stager brings the files of a job to this peer, lays them out, and serves them to others.
type stager struct {
	files       *filetransfer.Service
	spec        *jobspec.Spec
	program     jobspec.Program // for this machine
	folder      scratch.Job
	here, total atomic.Int64 // bytes of the files
	serving     []func()     // functions that end serving files
	unshare     func()       // permanently stops serving files to the job's other peers
}

// share exchanges the files that this peer fetches for the job with some of the job's other peers. That ends
// with close, or with unshare. pace delays what this peer sends; nil: there is no limit.
func (s *stager) share(fellows []fellow, book peerstore.AddrBook, pace func(ctx context.Context, n int) error) {
	var ids, near []p2ppeer.ID
	for _, f := range fellows {
		ids = append(ids, f.ID)
		if f.near {
			near = append(near, f.ID)
		}
		book.AddAddrs(f.ID, f.Addrs, peerstore.TempAddrTTL)
	}
	if pace != nil {
		s.serving = append(s.serving, s.files.Pace(s.spec.ID, pace))
	}
	s.unshare = s.files.Share(s.spec.ID, s.spec.Submitter, ids, near)
	s.serving = append(s.serving, s.unshare)
}

// offer serves output files to the submitter, until close.
func (s *stager) offer(files map[filetransfer.Digest]filetransfer.Source) {
	s.serving = append(s.serving, s.files.Serve(s.spec.ID, []p2ppeer.ID{s.spec.Submitter}, files))
}

// close ends serving files, and lets the store evict those of the job.
func (s *stager) close() {
	for _, stop := range s.serving {
		stop()
	}
	s.files.Store().Unpin(s.spec.ID)
}

// layOutAttempts bounds how often files that turn out to be corrupted in the store are fetched again.
const layOutAttempts = 3

// An inputCheck returns an error if input files are too large for a number of processes.
type inputCheck func(inputs filetransfer.Manifest, processes int) error

// bring fetches the files that the store lacks, and copies them into new folders for the given processes.
func (s *stager) bring(ctx context.Context, processes []view.Process, check inputCheck) error {
	if err := s.folder.Make(); err != nil {
		return err
	}
	for _, p := range processes {
		if err := s.folder.MakeProcess(p); err != nil {
			return err
		}
	}
	program, err := s.programManifest()
	if err != nil {
		return err
	}
	return s.fetchAndLayOut(ctx, program, processes, len(processes), check)
}

// bringAdded gives an added process the input files of the job, which are usually here already. all is the
// number of processes of the job here, including the new one.
func (s *stager) bringAdded(ctx context.Context, p view.Process, all int, check inputCheck) error {
	if err := s.folder.MakeProcess(p); err != nil {
		return err
	}
	return s.fetchAndLayOut(ctx, nil, []view.Process{p}, all, check)
}

// fetchAndLayOut fetches the program, unless it is nil, and the inputs, and lays them out for processes.
func (s *stager) fetchAndLayOut(ctx context.Context, program filetransfer.Manifest, processes []view.Process, all int, check inputCheck) error {
	inputs, err := s.fetchManifest(ctx)
	if err == nil {
		err = check(inputs, all)
	}
	if err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		if err = s.fetch(ctx, program.Wants(), inputs.Wants()); err != nil {
			return err
		}
		err = s.layOut(ctx, program, inputs, processes)
		if !errors.Is(err, filetransfer.ErrMissing) || attempt == layOutAttempts {
			return err
		}
	}
}

func (s *stager) fetchManifest(ctx context.Context) (filetransfer.Manifest, error) {
	digest, err := filetransfer.ParseDigest(s.spec.Inputs)
	if err != nil {
		return nil, err
	}
	want := filetransfer.Want{Digest: digest, Size: s.spec.InputsLen, Pieces: s.spec.InputsPieces, Name: "list of input files"}
	return s.files.FetchManifest(ctx, s.spec.Submitter, s.spec.ID, want)
}

// programManifest returns the manifest of the job's executable. The file keeps its own name if that is a
// valid file name.
func (s *stager) programManifest() (filetransfer.Manifest, error) {
	digest, err := filetransfer.ParseDigest(s.program.Digest)
	if err != nil {
		return nil, err
	}
	m := filetransfer.Manifest{{Path: path.Base(s.spec.Name), Size: s.program.Size, Mode: 0o700, Digest: digest, Pieces: s.program.Pieces}}
	if m.Validate() != nil {
		m[0].Path = "program"
	}
	return m, m.Validate()
}

// fetch fetches lists of files. Each list is shared only among the peers that fetch the same one: programs
// differ between platforms.
func (s *stager) fetch(ctx context.Context, lists ...[]filetransfer.Want) error {
	var here, total int64
	for _, w := range slices.Concat(lists...) {
		total += w.Size
		if s.files.Store().Has(w.Digest) {
			here += w.Size
		}
	}
	s.here.Store(here)
	s.total.Store(total)
	for _, list := range lists {
		if err := s.files.Fetch(ctx, s.spec.Submitter, s.spec.ID, list, func(bytes int64) { s.here.Add(bytes) }); err != nil {
			return err
		}
	}
	return nil
}

// layOut copies the files for each of the given processes, so that no process can change what another
// reads.
func (s *stager) layOut(ctx context.Context, program, inputs filetransfer.Manifest, processes []view.Process) error {
	store := s.files.Store()
	if err := store.Materialize(ctx, program, s.folder.Program()); err != nil {
		return fmt.Errorf("lay out program: %w", err)
	}
	for _, p := range processes {
		if err := store.Materialize(ctx, inputs, s.folder.Process(p)); err != nil {
			return fmt.Errorf("lay out inputs of process %v: %w", p, err)
		}
	}
	return nil
}

// executable returns the path at which the job's program was laid out.
func (s *stager) executable() (string, error) {
	m, err := s.programManifest()
	if err != nil {
		return "", err
	}
	return filepath.Join(s.folder.Program(), path.Base(m[0].Path)), nil
}

// maxManifest leaves room for the rest of the message that carries a manifest.
const maxManifest = jobpb.MaxMessage - maxText - 64

// leftTimeout is how long collecting a process's files waits for its descendants to exit. A system call may
// keep them that long.
const leftTimeout = 10 * time.Second

// match finds and hashes the files in a folder that the patterns name.
func match(ctx context.Context, folder string, patterns []string) ([]byte, map[filetransfer.Digest]filetransfer.Source, error) {
	sources, err := filetransfer.Match(ctx, folder, patterns)
	if err != nil {
		return nil, nil, err
	}
	m, err := filetransfer.Build(ctx, sources)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := m.Marshal()
	if err == nil && len(encoded) > maxManifest {
		err = fmt.Errorf("the list of %d output files has %d bytes, at most %d are allowed", len(m), len(encoded), maxManifest)
	}
	return encoded, filetransfer.Locate(m, sources), err
}
