package launch

import (
	"context"
	"fmt"

	"github.com/p2pmpi/p2pmpi/filetransfer"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
)

// maxManifest leaves room for the rest of the message that carries it.
const maxManifest = jobpb.MaxMessage - maxText - 64

// collect puts the output files of a process that has ended on offer.
func (j *job) collect(m *jobpb.Collect) error {
	id := m.GetProcess().View()
	p, ok := j.local[id]
	if !ok {
		return errOrder(m)
	}
	if p.asked { // the answer is on its way, or repeated
		return nil
	}
	p.asked = true
	if p.exit == nil || p.reason != "" || p.expelled {
		j.say(collected(id, nil, fmt.Errorf("process %v has not ended by itself", id)))
		return nil
	}
	j.working.Add(1)
	go func() { // ends with ctx
		defer j.working.Done()
		manifest, files, err := match(j.ctx, j.folder.Process(id), m.Patterns)
		j.do(func() { j.offer(id, manifest, files, err) })
	}()
	return nil
}

// match finds and hashes the files that the patterns name.
func match(ctx context.Context, folder string, patterns []string) ([]byte, map[filetransfer.Digest]string, error) {
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
		err = fmt.Errorf("the list of %d output files has %d bytes, at most %d are sent", len(m), len(encoded), maxManifest)
	}
	return encoded, filetransfer.Locate(m, sources), err
}

// offer serves what match found, until the job ends.
func (j *job) offer(p view.Process, manifest []byte, files map[filetransfer.Digest]string, err error) {
	if err == nil {
		stop := j.service.config.Files.Serve(j.spec.ID, []p2ppeer.ID{j.submitter}, files)
		j.serving = append(j.serving, stop)
	}
	j.say(collected(p, manifest, err))
}
