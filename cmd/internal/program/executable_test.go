package program

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/peer/job"
)

// elfFile returns an executable that consists of headers and needs a library.
func elfFile(machine elf.Machine, kind elf.Type, abi elf.OSABI, library string) []byte {
	const header, section = 64, 64
	strings := "\x00" + library + "\x00"
	dynamic := header + len(strings)
	sections := dynamic + 32
	h := elf.Header64{
		Type: uint16(kind), Machine: uint16(machine), Version: 1, Shoff: uint64(sections),
		Ehsize: header, Shentsize: section, Shnum: 3, Shstrndx: 1,
	}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)
	h.Ident[elf.EI_VERSION], h.Ident[elf.EI_OSABI] = 1, byte(abi)
	var b bytes.Buffer
	for _, part := range []any{
		h, []byte(strings),
		elf.Dyn64{Tag: int64(elf.DT_NEEDED), Val: 1}, elf.Dyn64{},
		elf.Section64{},
		elf.Section64{Type: uint32(elf.SHT_STRTAB), Off: header, Size: uint64(len(strings))},
		elf.Section64{Type: uint32(elf.SHT_DYNAMIC), Off: uint64(dynamic), Size: 32, Link: 1, Entsize: 16},
	} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

func TestExecutablesThatCannotRun(t *testing.T) {
	good := elfFile(elf.EM_X86_64, elf.ET_EXEC, elf.ELFOSABI_NONE, "libc.so.6")
	tests := map[string]struct {
		content []byte
		want    string
	}{
		"good":              {good, ""},
		"32 bits":           {elfFile(elf.EM_386, elf.ET_EXEC, elf.ELFOSABI_NONE, "libc.so.6"), ""},
		"Open MPI":          {elfFile(elf.EM_X86_64, elf.ET_DYN, elf.ELFOSABI_NONE, "libmpi.so.40"), "another MPI (it needs libmpi.so.40)"},
		"MPICH":             {elfFile(elf.EM_X86_64, elf.ET_DYN, elf.ELFOSABI_LINUX, "libmpich.so.12"), "another MPI"},
		"another processor": {elfFile(elf.EM_AARCH64, elf.ET_EXEC, elf.ELFOSABI_NONE, ""), "an executable for linux/arm64"},
		"unknown processor": {elfFile(elf.EM_VAX, elf.ET_EXEC, elf.ELFOSABI_NONE, ""), "unknown(75)"},
		"another system":    {elfFile(elf.EM_X86_64, elf.ET_EXEC, elf.ELFOSABI_FREEBSD, ""), "an executable for freebsd/amd64"},
		"not linked":        {elfFile(elf.EM_X86_64, elf.ET_REL, elf.ELFOSABI_NONE, ""), "not linked"},
		"cut off":           {good[:len(good)-60], "a damaged ELF executable"},
		"Mach-O":            {append([]byte("\xcf\xfa\xed\xfe\x0c\x00\x00\x01"), make([]byte, 40)...), "an executable for darwin/arm64"},
		"Mach-O for both":   {[]byte("\xca\xfe\xba\xbe\x00\x00\x00\x02"), "an executable for darwin/amd64"},
		"Windows, cut off":  {[]byte("MZ\x90\x00"), "a damaged Windows executable"},
		"script":            {[]byte("#!/bin/sh\n"), ""},
		"nothing":           {nil, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := checkExecutable(bytes.NewReader(test.content), test.content[:min(8, len(test.content))], job.Platform{OS: "linux", Arch: "amd64"})
			if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestDamagedModules(t *testing.T) {
	const header = "\x00asm\x01\x00\x00\x00"
	for name, test := range map[string]struct{ sections, want string }{
		"no section":        {"", ""},
		"in order":          {"\x01\x01x\x00\x02xx\x0d\x00\x06\x00\x0c\x00\x0a\x01x\x0b\x01x\x00\x00", ""},
		"cut off":           {"\x01\x05xx", "does not fit"},
		"length is cut off": {"\x01\x85", "does not fit"},
		"endless length":    {"\x01" + strings.Repeat("\xff", 12), "does not fit"},
		"unknown":           {"\x0e\x00", "unknown section 14"},
		"out of order":      {"\x02\x00\x01\x00", "out of order"},
		"twice":             {"\x01\x00\x01\x00", "out of order"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "x.wasm")
			if err := os.WriteFile(file, []byte(header+test.sections), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Find(t.Context(), file)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
