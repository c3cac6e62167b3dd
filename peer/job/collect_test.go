package job

import (
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/filetransfer"
)

func TestR6CollectedFilesAreThereOnceAndNoneIsLost(t *testing.T) {
	entry := func(path, content string) filetransfer.Entry {
		return filetransfer.Entry{Path: path, Size: int64(len(content)), Digest: filetransfer.DigestOf([]byte(content))}
	}
	ranks := []filetransfer.Manifest{
		{entry("log", "zero"), entry("same", "s"), entry("zero", "0")},
		{entry("log", "one"), entry("same", "s")},
	}
	var got []string
	for _, m := range arrange(ranks) {
		if err := m.Validate(); err != nil {
			t.Errorf("cannot be laid out: %v", err)
		}
		for _, f := range m {
			got = append(got, f.Path)
		}
	}
	slices.Sort(got)
	want := []string{"rank0/log", "rank1/log", "same", "zero"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
