package job

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
)

// collect brings the output files of every rank into the user's folder, each
// from one process that finished (R6). It runs when the job has succeeded.
func (e *execution) collect(ctx context.Context) Result {
	e.j.phase(Collecting, 0, int64(e.j.req.N))
	manifests := make([]filetransfer.Manifest, e.j.req.N)
	for rank := range manifests {
		m, err := e.collectRank(ctx, rank)
		if ctx.Err() != nil {
			return stoppedBy(ctx, e.j.req)
		}
		if err != nil {
			return Result{
				Status:  StatusLost,
				Message: fmt.Sprintf("the job succeeded, but the output files of rank %d could not be collected: %v", rank, err),
			}
		}
		manifests[rank] = m
		e.j.phase(Collecting, int64(rank+1), int64(e.j.req.N))
	}
	for _, m := range arrange(manifests) {
		if err := e.j.s.cfg.Files.Store().Materialize(ctx, m, e.j.req.OutputDir); err != nil {
			return Result{
				Status:  StatusUsage,
				Message: "the job succeeded, but its output files could not be written: " + err.Error(),
			}
		}
	}
	return Result{Status: StatusOK}
}

// collectRank fetches a rank's files from the first of its finished processes
// that can give them.
func (e *execution) collectRank(ctx context.Context, rank int) (filetransfer.Manifest, error) {
	errs := []error{errors.New("no process of it is left")}
	for k := range e.j.req.R {
		p := view.Process{Rank: rank, Replica: k}
		if e.watch.View().State(p) != view.Finished || e.runsOn[p].err != nil {
			continue
		}
		m, err := e.collectFrom(ctx, p)
		if err == nil {
			return m, nil
		}
		errs = append(errs, err)
	}
	return nil, errs[len(errs)-1]
}

func (e *execution) collectFrom(ctx context.Context, p view.Process) (filetransfer.Manifest, error) {
	l := e.runsOn[p]
	l.say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Collect{Collect: &jobpb.Collect{
		Process: jobpb.FromProcess(p), Patterns: e.j.req.Outputs,
	}}})
	c, err := e.collected(ctx, p)
	if err != nil {
		return nil, err
	}
	if c.Error != "" {
		return nil, errors.New(c.Error)
	}
	m, err := filetransfer.UnmarshalManifest(c.Manifest)
	if err != nil {
		return nil, err
	}
	var want []filetransfer.Want
	for _, entry := range m {
		want = append(want, filetransfer.Want{Digest: entry.Digest, Size: entry.Size, Name: entry.Path})
	}
	return m, e.j.s.cfg.Files.Fetch(ctx, l.peer, e.j.spec.ID, want, nil)
}

// collected waits for the manifest of p's files.
func (e *execution) collected(ctx context.Context, p view.Process) (*jobpb.Collected, error) {
	for {
		select {
		case h := <-e.inbox:
			if h.err != nil {
				h.link.lose(h.err)
			} else if b, ok := h.msg.Body.(*jobpb.FromPeer_Collected); ok && b.Collected.Process.View() == p {
				return b.Collected, nil
			}
		case v := <-e.verdicts:
			e.judge(v)
		case <-e.printed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if err := e.runsOn[p].err; err != nil {
			return nil, fmt.Errorf("its peer is lost: %w", err)
		}
	}
}

// arrange decides under which paths the files of all ranks go into one folder.
// Where ranks have written different files of one name, each goes into a folder
// rank<i> of its own; what they have written alike is there once. The manifests
// returned can be laid out one after the other.
func arrange(ranks []filetransfer.Manifest) []filetransfer.Manifest {
	digests := make(map[string]map[filetransfer.Digest]bool)
	for _, m := range ranks {
		for _, f := range m {
			if digests[f.Path] == nil {
				digests[f.Path] = make(map[filetransfer.Digest]bool)
			}
			digests[f.Path][f.Digest] = true
		}
	}
	var out []filetransfer.Manifest
	taken := make(map[string]bool)
	for rank, m := range ranks {
		var shared, own filetransfer.Manifest
		for _, f := range m {
			switch {
			case len(digests[f.Path]) > 1:
				f.Path = path.Join(fmt.Sprintf("rank%d", rank), f.Path)
				own = append(own, f)
			case !taken[f.Path]:
				taken[f.Path] = true
				shared = append(shared, f)
			}
		}
		out = append(out, shared, own)
	}
	return out
}
