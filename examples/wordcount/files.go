package main

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A file is a file to count.
type file struct {
	Name string
	Size int64 // in bytes, when the file was listed
}

// list returns the regular files below the directory root in the order of their names, and the
// names of entries that are neither regular files nor directories.
func list(root string) (files []file, others []string, err error) {
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
			return err
		case !d.Type().IsRegular():
			others = append(others, name)
			return nil
		}
		info, err := d.Info()
		if err == nil {
			files = append(files, file{name, info.Size()})
		}
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list files: %w", err)
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.Name, b.Name) })
	return files, others, nil
}

// shares divides files among ranks so that all ranks have about the same number of bytes. The
// largest remaining file goes to the rank with the fewest bytes.
func shares(files []file, ranks int) [][]file {
	bySize := slices.Clone(files)
	slices.SortStableFunc(bySize, func(a, b file) int { return cmp.Compare(b.Size, a.Size) })
	shares, load := make([][]file, ranks), make([]int64, ranks)
	for _, f := range bySize {
		least := 0
		for rank := range load {
			if load[rank] < load[least] {
				least = rank
			}
		}
		shares[least] = append(shares[least], f)
		load[least] += f.Size + fileCost
	}
	return shares
}

// fileCost is the cost of opening a file, as the number of bytes that can be counted in the same
// time. It also distributes empty files evenly.
const fileCost = 4 << 10

// batches divides files into batches of at least batchSize bytes, or of many files, so that each is
// worth a message.
func batches(files []file) [][]file {
	var all [][]file
	first, size := 0, int64(0)
	for i, f := range files {
		size += f.Size + fileCost
		if size >= batchSize || i == len(files)-1 {
			all = append(all, files[first:i+1])
			first, size = i+1, 0
		}
	}
	return all
}

const batchSize = 1 << 20

// totals contains the totals of some files.
type totals struct{ files, bytes, words int64 }

// count counts the words of files in t and returns the totals of the files.
func count(t tally, files []file, buf []byte) (totals, error) {
	var sum totals
	for _, f := range files {
		if err := countFile(t, f.Name, buf, &sum); err != nil {
			return sum, fmt.Errorf("count words of %s: %w", f.Name, err)
		}
	}
	return sum, nil
}

func countFile(t tally, name string, buf []byte, sum *totals) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	words, err := t.read(f, buf)
	if err != nil {
		return err
	}
	size, err := f.Seek(0, io.SeekCurrent)
	sum.files, sum.bytes, sum.words = sum.files+1, sum.bytes+size, sum.words+words
	return err
}
