package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// eachOpen calls look with a link to each file that a process has open.
func eachOpen(proc string, look func(link string)) error {
	folder, err := os.Open(filepath.Join(proc, "fd"))
	if err != nil {
		return err
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	for _, name := range names {
		look(filepath.Join(proc, "fd", name))
	}
	return err
}

// eachMapping calls look with each mapping of a process.
func eachMapping(proc string, look func(mapping)) error {
	maps, err := os.ReadFile(filepath.Join(proc, "maps"))
	if err != nil {
		return err
	}
	for line := range bytes.Lines(maps) {
		look(readMapping(line))
	}
	return nil
}

// A mapping is a part of a file, or of memory, that a process has among its addresses.
type mapping struct {
	at     []byte // from-to, the addresses
	offset uint64 // of the part in the file, in bytes
	file   file
	name   []byte // by which the file was opened; memory can be called anything (PR_SET_VMA_ANON_NAME)
}

// readMapping reads a line of /proc/PID/maps:
//
//	from-to rwxp offset major:minor inode      name
func readMapping(line []byte) mapping {
	var fields [5][]byte
	for i := range fields {
		fields[i], line, _ = bytes.Cut(line, []byte(" "))
	}
	offset, _ := strconv.ParseUint(string(fields[2]), 16, 64)
	number, _ := strconv.ParseUint(string(fields[4]), 10, 64)
	return mapping{fields[0], offset, file{device(string(fields[3])), number}, bytes.Trim(line, " \n")}
}

// deleted reports whether the file has lost the name by which it was opened.
func (m mapping) deleted() bool { return bytes.HasSuffix(m.name, []byte(" (deleted)")) }

// link leads to the file, for who may go there.
func (m mapping) link(proc string) string {
	return filepath.Join(proc, "map_files", span(string(m.at)))
}

// length is how many bytes are mapped.
func (m mapping) length() uint64 {
	from, to, _ := strings.Cut(string(m.at), "-")
	a, _ := strconv.ParseUint(from, 16, 64)
	b, _ := strconv.ParseUint(to, 16, 64)
	return b - a
}

// device reads a device as /proc/PID/maps writes it.
func device(text string) uint64 {
	major, minor, _ := strings.Cut(text, ":")
	a, _ := strconv.ParseUint(major, 16, 32)
	b, _ := strconv.ParseUint(minor, 16, 32)
	return unix.Mkdev(uint32(a), uint32(b))
}

// span is what a mapping is called in map_files: there are no zeros before its addresses.
func span(text string) string {
	from, to, _ := strings.Cut(text, "-")
	trim := func(s string) string { return strings.TrimLeft(s[:len(s)-1], "0") + s[len(s)-1:] }
	if from == "" || to == "" {
		return text
	}
	return trim(from) + "-" + trim(to)
}
