package program

import (
	"bufio"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/p2pmpi/p2pmpi/peer/job"
)

// checkExecutable reports what keeps an executable from running on peers of this machine's
// platform, before any of them is asked. Files of other kinds pass.
func checkExecutable(f io.ReaderAt, start []byte, local job.Platform) error {
	if len(start) < 4 {
		return nil
	}
	var of job.Platform
	var libraries []string
	var err error
	switch little, big := binary.LittleEndian.Uint32(start), binary.BigEndian.Uint32(start); {
	case string(start[:4]) == elf.ELFMAG:
		of, libraries, err = readELF(f)
	case little == macho.Magic32 || little == macho.Magic64:
		of, libraries, err = readMachO(f)
	case big == macho.MagicFat:
		of.OS, of.Arch = "darwin", local.Arch // one for each processor
	case string(start[:2]) == "MZ":
		of, libraries, err = readPE(f)
	default:
		return nil
	}
	switch {
	case err != nil:
		return err
	case of.OS != local.OS || !runs(local.Arch, of.Arch):
		return fmt.Errorf("an executable for %s, which peers of this machine's platform, %s, cannot run: name a Go package or a WebAssembly module", of, local)
	}
	return checkLibraries(libraries)
}

// runs reports whether a processor runs the programs of another.
func runs(processor, other string) bool {
	return processor == other || processor == "amd64" && other == "386"
}

// checkLibraries refuses a program that needs the library of another MPI, whose ranks would not
// find each other.
func checkLibraries(libraries []string) error {
	for _, l := range libraries {
		name := strings.ToLower(l[strings.LastIndexAny(l, `/\`)+1:])
		if strings.HasPrefix(name, "libmpi") || strings.HasPrefix(name, "libpmpi") || name == "msmpi.dll" || name == "impi.dll" {
			return fmt.Errorf("a program of another MPI (it needs %s): programs communicate through package mpj, in Go, for now (docs/mpj.md)", l)
		}
	}
	return nil
}

func damaged(kind string, err error) error {
	return fmt.Errorf("a damaged %s executable: %w", kind, err)
}

var elfProcessors = map[elf.Machine]string{
	elf.EM_X86_64: "amd64", elf.EM_386: "386", elf.EM_AARCH64: "arm64", elf.EM_ARM: "arm", elf.EM_RISCV: "riscv64",
	elf.EM_S390: "s390x", elf.EM_LOONGARCH: "loong64",
}

var elfSystems = map[elf.OSABI]string{
	elf.ELFOSABI_NONE: "linux", elf.ELFOSABI_LINUX: "linux", elf.ELFOSABI_FREEBSD: "freebsd",
	elf.ELFOSABI_NETBSD: "netbsd", elf.ELFOSABI_OPENBSD: "openbsd", elf.ELFOSABI_SOLARIS: "solaris",
}

func readELF(r io.ReaderAt) (of job.Platform, libraries []string, err error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return of, nil, damaged("ELF", err)
	}
	if f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return of, nil, errors.New("an ELF file that is not linked into an executable")
	}
	of = job.Platform{OS: name(elfSystems, f.OSABI), Arch: name(elfProcessors, f.Machine)}
	switch {
	case f.Machine == elf.EM_PPC64 && f.ByteOrder == binary.LittleEndian:
		of.Arch = "ppc64le"
	case f.Machine == elf.EM_PPC64:
		of.Arch = "ppc64"
	case f.Machine == elf.EM_MIPS && strings.HasPrefix(runtime.GOARCH, "mips"):
		of.Arch = runtime.GOARCH // four platforms that the header does not tell apart
	}
	libraries, err = f.ImportedLibraries()
	if err != nil {
		return of, nil, damaged("ELF", err)
	}
	return of, libraries, nil
}

var machoProcessors = map[macho.Cpu]string{macho.CpuAmd64: "amd64", macho.Cpu386: "386", macho.CpuArm64: "arm64", macho.CpuArm: "arm"}

func readMachO(r io.ReaderAt) (of job.Platform, libraries []string, err error) {
	f, err := macho.NewFile(r)
	if err != nil {
		return of, nil, damaged("Mach-O", err)
	}
	libraries, err = f.ImportedLibraries()
	return job.Platform{OS: "darwin", Arch: name(machoProcessors, f.Cpu)}, libraries, err
}

var peProcessors = map[uint16]string{pe.IMAGE_FILE_MACHINE_AMD64: "amd64", pe.IMAGE_FILE_MACHINE_I386: "386", pe.IMAGE_FILE_MACHINE_ARM64: "arm64"}

func readPE(r io.ReaderAt) (of job.Platform, libraries []string, err error) {
	f, err := pe.NewFile(r)
	if err != nil {
		return of, nil, damaged("Windows", err)
	}
	libraries, err = f.ImportedLibraries()
	return job.Platform{OS: "windows", Arch: name(peProcessors, f.Machine)}, libraries, err
}

// name returns the name of a processor or a system, or the number of an unknown one.
func name[K interface{ ~uint8 | ~uint16 | ~uint32 }](names map[K]string, k K) string {
	if n, ok := names[k]; ok {
		return n
	}
	return fmt.Sprintf("unknown(%d)", uint32(k))
}

// checkModule reports whether the sections of a module are damaged: whether they are known, in
// order, and as long as the file. Their content is checked by the engine that compiles it.
func checkModule(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	// The order of sections 1 to 13 in a module; 12 counts data, 13 declares tags.
	place := [...]int{1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 13: 6, 6: 7, 7: 8, 8: 9, 9: 10, 12: 11, 10: 12, 11: 13}
	at, last := int64(len("\x00asm\x01\x00\x00\x00")), 0
	for at < info.Size() {
		r := bufio.NewReaderSize(io.NewSectionReader(f, at, info.Size()-at), 16)
		id, err := r.ReadByte()
		if err != nil {
			return err
		}
		begin := &counter{r: r}
		size, err := binary.ReadUvarint(begin)
		at += 1 + begin.n
		switch {
		case err != nil || int64(size) < 0 || size > uint64(info.Size()-at):
			return fmt.Errorf("a damaged WebAssembly module: section %d does not fit into the file", id)
		case int(id) >= len(place):
			return fmt.Errorf("a damaged WebAssembly module: unknown section %d", id)
		case id != 0 && place[id] <= last:
			return fmt.Errorf("a damaged WebAssembly module: section %d is out of order", id)
		}
		last = max(last, place[id])
		at += int64(size)
	}
	return nil
}

// A counter counts the bytes that are read.
type counter struct {
	r io.ByteReader
	n int64
}

func (c *counter) ReadByte() (byte, error) {
	b, err := c.r.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}
