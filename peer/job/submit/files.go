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
// long as collecting took, or waits.files if that is longer. Where most replicas of a rank have
// written other files than those collected, it collects theirs instead. The result is nil unless no
// majority decides which files are right. The user gets the files in that case too, since they may
// differ only in a time that the program has written. The error is an ended.
func (e *execution) compareFiles(ctx context.Context, begun time.Time, collected []fileList) (*job.Result, error) {
	if e.accounts == nil {
		return nil, nil
	}
	lists, err := e.otherLists(ctx, begun, collected)
	if err != nil {
		return nil, err
	}
	var unlike *job.Result
	for rank, all := range lists {
		most, ok := mostFiles(all)
		if ok && !e.accounts.Tolerant && unlikeFiles(all[0].files, all[most].files) != "" {
			collected[rank], ok, err = e.collectInstead(ctx, all, most)
			if err != nil {
				return nil, err
			}
		}
		for _, l := range all {
			file := unlikeFiles(collected[rank].files, l.files)
			switch {
			case file == "":
			case ok || e.accounts.Tolerant:
				e.j.warn(fmt.Sprintf("%s has written other files than the replica whose files were collected: %q differs", e.accounts.Name(l.process), plain(file)))
			case unlike == nil:
				unlike = e.unreconciled(collected[rank].process, l.process, file)
			}
		}
	}
	return unlike, nil
}

// otherLists returns, for each rank, the collected files and the lists of the other replicas.
func (e *execution) otherLists(ctx context.Context, begun time.Time, collected []fileList) ([][]fileList, error) {
	var asked []view.Process
	lists := make([][]fileList, len(collected))
	for rank, l := range collected {
		lists[rank] = []fileList{l}
		for _, p := range e.state.Counting(rank) {
			if _, before := e.answers[p]; !before && e.state.View().State(p) == view.Finished && e.accounts.Summed(p) && e.peers.reaches(p) {
				e.askFiles(p)
				asked = append(asked, p)
			}
		}
	}
	late, cancel := context.WithTimeout(ctx, max(time.Since(begun), e.j.s.waits.files))
	defer cancel()
	for _, p := range asked {
		for e.answers[p] == nil && e.peers.reaches(p) && late.Err() == nil {
			if err := e.handleNextCollecting(ctx, late.Done()); err != nil {
				return nil, err
			}
		}
		if answer := e.answers[p]; answer != nil && answer.Error == "" {
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
func (e *execution) collectInstead(ctx context.Context, all []fileList, most int) (from fileList, ok bool, err error) {
	for _, l := range all {
		if unlikeFiles(l.files, all[most].files) != "" {
			continue
		}
		m, err := e.collectFrom(ctx, l.process)
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
func (e *execution) unreconciled(collected, other view.Process, file string) *job.Result {
	return &job.Result{
		Status: job.StatusDiverged,
		Message: fmt.Sprintf("the replicas of rank %d have written different files: %s has another %q than %s, whose were collected",
			other.Rank, e.accounts.Name(other), plain(file), e.accounts.Name(collected)),
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
