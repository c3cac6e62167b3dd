package job

import (
	"context"
	"fmt"
	"time"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// Files are collected from one replica of each rank. The others that have finished are
// asked for the list of theirs: the same program has written the same files.

// compareFiles asks for the lists, for as long again as it took to collect, or a
// second, and tells the user which ranks have replicas that have written something
// else than was collected. The job is right all the same: what a program writes beside
// its messages and its output may have a time in it. The error is an ended.
func (e *execution) compareFiles(ctx context.Context, begun time.Time, manifests []filetransfer.Manifest) error {
	if e.accounts == nil {
		return nil
	}
	var asked []view.Process
	for rank := range manifests {
		for _, p := range e.watch.counting(rank) {
			if _, before := e.answers[p]; !before && e.watch.View().State(p) == view.Finished && e.accounts.of[p].Summed && e.runsOn[p].err == nil {
				e.askFiles(p)
				asked = append(asked, p)
			}
		}
	}
	late, cancel := context.WithTimeout(ctx, max(time.Since(begun), hearOutMost))
	defer cancel()
	for _, p := range asked {
		for e.answers[p] == nil && e.runsOn[p].err == nil && late.Err() == nil {
			if err := e.attend(ctx, late.Done()); err != nil {
				return err
			}
		}
		answer := e.answers[p]
		if answer == nil || answer.Error != "" {
			continue
		}
		m, err := filetransfer.UnmarshalManifest(answer.Manifest)
		if file, unlike := unlikeFiles(manifests[p.Rank], m); err == nil && unlike {
			e.j.warn(fmt.Sprintf("%s has not written the same files as the replica whose were collected: %q differs", e.accounts.name(p), plain(file)))
		}
	}
	return nil
}

// unlikeFiles returns the path of the first file that is not in both with the same
// content.
func unlikeFiles(a, b filetransfer.Manifest) (file string, unlike bool) {
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return b[i].Path, true
		case i >= len(b):
			return a[i].Path, true
		case a[i].Path != b[i].Path || a[i].Digest != b[i].Digest:
			return a[i].Path, true
		}
	}
	return "", false
}
