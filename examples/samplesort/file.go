package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// readPart returns the lines that begin in this rank's part of the file. Every rank has the whole
// file, because p2prun copies input files to all ranks.
func readPart(c *mpj.Comm, o options) ([]line, error) {
	f, err := os.Open(o.file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errInput, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is not a regular file", errInput, o.file)
	}
	// The simpler size*rank/ranks would overflow for large files.
	ranks, rank := int64(c.Size()), int64(c.Rank())
	start := func(rank int64) int64 {
		return info.Size()/ranks*rank + min(rank, info.Size()%ranks)
	}
	text, at, err := readLines(f, start(rank), start(rank+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", o.file, err)
	}
	lines := split(text, at)
	if o.integers {
		err = numberAll(c, o.file, lines)
	}
	return lines, err
}

// readLines returns the lines of f that begin at or after from and before to, and the position of
// the first of them. The last line may be longer than any buffer and end far beyond to.
func readLines(f io.ReadSeeker, from, to int64) (text []byte, at int64, err error) {
	// A line begins at from if the byte before it is a newline. So start at that byte, and skip the
	// rest of its line.
	at = max(from-1, 0)
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		return nil, 0, err
	}
	r := bufio.NewReader(f)
	if from > 0 {
		skipped, err := skipLine(r)
		at += skipped
		if errors.Is(err, io.EOF) || at >= to {
			return nil, at, nil
		}
		if err != nil {
			return nil, 0, err
		}
	}
	text = make([]byte, max(to-at, 0))
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, 0, err
	}
	if bytes.HasSuffix(text, newline) || len(text) == 0 {
		return text, at, nil
	}
	rest, err := r.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	return append(text, rest...), at, nil
}

// skipLine reads to the end of a line, and returns the length of the line without keeping it. io.EOF
// means that the line has no newline.
func skipLine(r *bufio.Reader) (skipped int64, err error) {
	for {
		part, err := r.ReadSlice('\n')
		skipped += int64(len(part))
		if !errors.Is(err, bufio.ErrBufferFull) {
			return skipped, err
		}
	}
}

// numberAll parses the numbers of all lines. Its errors contain the file and line number, for which
// a rank needs the number of lines of the previous ranks.
func numberAll(c *mpj.Comm, file string, lines []line) error {
	n := []int{len(lines)}
	if err := mpj.Scan(c, n, n, mpj.Sum); err != nil {
		return err
	}
	bad, err := parseNumbers(lines)
	if err != nil {
		return fmt.Errorf("%w: %s:%d: %w", errInput, file, n[0]-len(lines)+bad+1, err)
	}
	return nil
}

// The tag of the messages with a part to rank 0, and their maximum size in bytes.
const (
	partTag   = 1
	partBytes = 1 << 20
)

// write writes the sorted lines: each rank writes its own lines, or rank 0 writes the lines of all
// ranks.
func write(c *mpj.Comm, o options, lines []line) error {
	text := join(lines)
	switch {
	case o.parts:
		return writeFile(fmt.Sprintf("%s.%d", o.out, c.Rank()), func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		})
	case c.Rank() == 0:
		return writeFile(o.out, func(w io.Writer) error { return writeAll(c, text, w) })
	}
	for len(text) > 0 {
		n := min(len(text), partBytes)
		if err := mpj.Send(c, text[:n], 0, partTag); err != nil {
			return err
		}
		text = text[n:]
	}
	return mpj.Send(c, text, 0, partTag) // an empty message marks the end
}

// writeAll writes the part of rank 0 and then those of the other ranks, in order. It keeps at most
// one of their messages in memory.
func writeAll(c *mpj.Comm, mine []byte, w io.Writer) error {
	if _, err := w.Write(mine); err != nil {
		return err
	}
	buf := make([]byte, partBytes)
	for rank := 1; rank < c.Size(); rank++ {
		for {
			s, err := mpj.Recv(c, buf, rank, partTag)
			if err != nil {
				return err
			}
			if s.Size == 0 {
				break
			}
			if _, err := w.Write(buf[:s.Size]); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeFile creates a file with the output of write.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
