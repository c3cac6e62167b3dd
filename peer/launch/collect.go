package launch

import (
	"context"
	"fmt"
	"time"

	"github.com/p2pmpi/p2pmpi/filetransfer"

	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// maxManifest leaves room for the rest of the message that carries a manifest.
const maxManifest = jobpb.MaxMessage - maxText - 64

// collect offers the output files of a process that has ended to the submitter.
func (j *job) collect(m *jobpb.Collect) error {
	id := m.GetProcess().View()
	p, ok := j.here.local[id]
	if !ok {
		return errOrder(m)
	}
	if p.asked { // the answer is on its way, or will be repeated
		return nil
	}
	p.asked = true
	if p.exit == nil || p.reason != "" || p.failedInView {
		j.send(collected(id, nil, fmt.Errorf("process %v has not exited by itself", id)))
		return nil
	}
	j.working.Add(1)
	go func() { // ends with ctx
		defer j.working.Done()
		manifest, files, err := p.match(m.Patterns)
		j.do(func() {
			if err == nil {
				j.stager.offer(files)
			}
			j.send(collected(id, manifest, err))
		})
	}()
	return nil
}

// leftTimeout is how long collecting a process's files waits for its descendants to exit. A system call may
// keep them that long.
const leftTimeout = 10 * time.Second

// match finds and hashes the files that the patterns name, once no process can change them any more.
func (p *process) match(patterns []string) ([]byte, map[filetransfer.Digest]filetransfer.Source, error) {
	ctx, cancel := context.WithTimeout(p.job.ctx, leftTimeout)
	defer cancel()
	if err := p.live.program.Gone(ctx); err != nil {
		return nil, nil, fmt.Errorf("descendants of process %v still run: %w", p.id, err)
	}
	return match(p.job.ctx, p.job.folder.Process(p.id), patterns)
}

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
