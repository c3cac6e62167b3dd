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

// leftTimeout is how long collecting a process's files waits for its descendants to exit. A system call may
// keep them that long.
const leftTimeout = 10 * time.Second

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
