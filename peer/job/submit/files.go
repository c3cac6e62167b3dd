package submit

import (
	"context"
	"fmt"
	"time"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
)

// Files are collected from one replica of each rank. The other replicas that have finished are
// asked for their file lists, with digests: the same program has written the same files.

// A fileList lists the output files of one replica.
type fileList struct {
	process view.Process
	files   filetransfer.Manifest
}

// compareFiles requests the other lists and compares them with the collected files. It waits for as
// long as collecting took, or waits.files if that is longer. Where most replicas of a rank have written files
// that differ from those collected, it collects theirs instead. The result is nil unless no majority decides
// which files are right. The user gets the files in that case too, since they may differ only in a time that the
// program has written. The error is an ended.
func (c *collector) compareFiles(ctx context.Context, begun time.Time, collected []fileList) (*job.Result, error) {
	if c.accounts == nil {
		return nil, nil
	}
	lists, err := c.otherLists(ctx, begun, collected)
	if err != nil {
		return nil, err
	}
	var unlike *job.Result
	for rank, all := range lists {
		most, ok := mostFiles(all)
		if ok && !c.accounts.Tolerant && unlikeFiles(all[0].files, all[most].files) != "" {
			collected[rank], ok, err = c.collectInstead(ctx, all, most)
			if err != nil {
				return nil, err
			}
		}
		for _, l := range all {
			file := unlikeFiles(collected[rank].files, l.files)
			switch {
			case file == "":
			case ok || c.accounts.Tolerant:
				c.j.warn(fmt.Sprintf("%s has written different files than the replica whose files were collected: %q differs", c.accounts.Name(l.process), plain(file)))
			case unlike == nil:
				unlike = c.unreconciled(collected[rank].process, l.process, file)
			}
		}
	}
	return unlike, nil
}

// otherLists returns, for each rank, the collected files and the lists of the other replicas.
func (c *collector) otherLists(ctx context.Context, begun time.Time, collected []fileList) ([][]fileList, error) {
	var asked []view.Process
	lists := make([][]fileList, len(collected))
	for rank, l := range collected {
		lists[rank] = []fileList{l}
		for _, p := range c.state.Counting(rank) {
			if _, before := c.answers[p]; !before && c.state.View().State(p) == view.Finished && c.accounts.Summed(p) && c.peers.reaches(p) {
				c.askFiles(p)
				asked = append(asked, p)
			}
		}
	}
	late, cancel := context.WithTimeout(ctx, max(time.Since(begun), c.j.s.waits.files))
	defer cancel()
	for _, p := range asked {
		for c.answers[p] == nil && c.peers.reaches(p) && late.Err() == nil {
			if err := c.handleNextCollecting(ctx, late.Done()); err != nil {
				return nil, err
			}
		}
		if answer := c.answers[p]; answer != nil && answer.Error == "" {
			if m, err := filetransfer.UnmarshalManifest(answer.Manifest); err == nil {
				lists[p.Rank] = append(lists[p.Rank], fileList{p, m})
			}
		}
	}
	return lists, nil
}

// mostFiles returns the index of the first list that equals most lists. ok is false if the lists
// differ and no majority of at least quorum lists agrees.
func mostFiles(lists []fileList) (most int, ok bool) {
	for i, l := range lists {
		like := 0
		for _, o := range lists {
			if unlikeFiles(l.files, o.files) == "" {
				like++
			}
		}
		if like == len(lists) || 2*like > len(lists) && len(lists) >= job.Quorum {
			return i, true
		}
	}
	return 0, false
}

// collectInstead collects from a replica whose files equal those of the majority. ok is false if
// none of them can provide the files any more; the first list then stays.
func (c *collector) collectInstead(ctx context.Context, all []fileList, most int) (from fileList, ok bool, err error) {
	for _, l := range all {
		if unlikeFiles(l.files, all[most].files) != "" {
			continue
		}
		m, err := c.collectFrom(ctx, l.process)
		if err == nil {
			return fileList{l.process, m}, true, nil
		}
		if final(ctx, err) {
			return all[0], false, err
		}
	}
	return all[0], false, nil
}

// unreconciled returns the result of a job in which no majority decides which files are right.
func (c *collector) unreconciled(collected, other view.Process, file string) *job.Result {
	return &job.Result{
		Status: job.StatusDiverged,
		Message: fmt.Sprintf("the replicas of rank %d have written different files: %s has another %q than %s, whose were collected",
			other.Rank, c.accounts.Name(other), plain(file), c.accounts.Name(collected)),
		Hint: "a program must not write times, random numbers or host names (docs/mpj.md); if that is intended, use --on-divergence warn",
	}
}

// unlikeFiles returns the path of the first file that is not in both manifests with the same
// content, or "".
func unlikeFiles(a, b filetransfer.Manifest) (file string) {
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return b[i].Path
		case i >= len(b):
			return a[i].Path
		case a[i].Path != b[i].Path || a[i].Digest != b[i].Digest:
			return a[i].Path
		}
	}
	return ""
}
