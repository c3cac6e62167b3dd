package filetransfer

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"
	"unicode"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/filetransfer/internal/pb"
)

// Bounds of a manifest. A larger manifest from another peer is rejected before memory is allocated for
// it.
const (
	MaxEntries       = 200_000  // files
	maxManifestBytes = 32 << 20 // bytes of its encoding
	maxPathBytes     = 1024     // bytes of one staged path
	MaxPathDepth     = 64       // names in one staged path
	maxNameBytes     = 255      // bytes of one name in it; the limit of Linux file systems
	maxFileBytes     = 1 << 37  // bytes of one file, whose Pieces take half of maxManifestBytes
)

// An Entry is one file of a Manifest.
type Entry struct {
	Path   string      // destination: slash-separated, relative, clean
	Size   int64       // bytes
	Mode   fs.FileMode // permission bits only
	Digest Digest
	Pieces Pieces // for a file larger than pieceSize
}

// A Manifest lists the files to stage or to collect, in the order of a directory walk: by path, where "/"
// sorts below every other character. So the contents of a folder immediately follow its name.
type Manifest []Entry

// Validate checks that m is safe to write below a folder (promise T3). Every path must be relative, clean
// and free of control characters. No path may occur twice, or be both a file and a folder. All bounds
// above apply. Build and UnmarshalManifest return only valid manifests.
func (m Manifest) Validate() error {
	if len(m) > MaxEntries {
		return fmt.Errorf("manifest: %d files, at most %d are allowed", len(m), MaxEntries)
	}
	seen := make(map[Digest]int, len(m))
	for i, e := range m {
		err := e.validate()
		if err == nil && i > 0 {
			err = checkNeighbours(m[i-1].Path, e.Path)
		}
		if err != nil {
			return fmt.Errorf("manifest: %w", err)
		}
		if j, ok := seen[e.Digest]; ok && (m[j].Size != e.Size || !bytes.Equal(m[j].Pieces, e.Pieces)) {
			return fmt.Errorf("manifest: content %s with sizes %d and %d, or other pieces", e.Digest, m[j].Size, e.Size)
		}
		seen[e.Digest] = i
	}
	return nil
}

func (e Entry) validate() error {
	if err := validPath(e.Path); err != nil {
		return err
	}
	if err := e.want().validate(); err != nil {
		return err
	}
	if e.Mode&^fs.ModePerm != 0 {
		return fmt.Errorf("%q: mode %v has more than permission bits", e.Path, e.Mode)
	}
	return nil
}

// validPath enforces promise T3 for one path. fs.ValidPath rejects paths that are absolute, empty,
// unclean, not UTF-8, or contain "..".
func validPath(p string) error {
	switch {
	case len(p) > maxPathBytes:
		return fmt.Errorf("path %.40q... is longer than %d bytes", p, maxPathBytes)
	case p == "." || !fs.ValidPath(p):
		return fmt.Errorf("path %q is not relative and clean", p)
	case strings.Count(p, "/") >= MaxPathDepth:
		return fmt.Errorf("path %q is deeper than %d", p, MaxPathDepth)
	case strings.ContainsFunc(p, unicode.IsControl):
		return fmt.Errorf("path %q has a control character", p)
	}
	for name := range strings.SplitSeq(p, "/") {
		if len(name) > maxNameBytes {
			return fmt.Errorf("path %q has a name longer than %d bytes", p, maxNameBytes)
		}
	}
	return nil
}

// checkNeighbours checks two consecutive paths. In walk order a file that is also a folder directly
// precedes the folder's contents, so comparing neighbours suffices.
func checkNeighbours(a, b string) error {
	switch c := comparePaths(a, b); {
	case c == 0:
		return fmt.Errorf("path %q occurs twice", b)
	case c > 0:
		return fmt.Errorf("path %q comes after %q: not in order", b, a)
	case strings.HasPrefix(b, a+"/"):
		return fmt.Errorf("path %q is a file and the folder of %q", a, b)
	}
	return nil
}

// comparePaths compares paths in walk order. Valid paths contain no control characters, so no byte below
// "/" is mistaken for the separator.
func comparePaths(a, b string) int {
	for i := range min(len(a), len(b)) {
		if x, y := a[i], b[i]; x != y {
			switch {
			case x == '/':
				return -1
			case y == '/':
				return 1
			}
			return int(x) - int(y)
		}
	}
	return len(a) - len(b)
}

func (e Entry) want() Want {
	return Want{Digest: e.Digest, Size: e.Size, Pieces: e.Pieces, Name: e.Path}
}

// Wants returns the contents of m without duplicates, in the order of m.
func (m Manifest) Wants() []Want {
	seen := make(map[Digest]bool, len(m))
	wants := make([]Want, 0, len(m))
	for _, e := range m {
		if !seen[e.Digest] {
			seen[e.Digest] = true
			wants = append(wants, e.want())
		}
	}
	return wants
}

// Marshal returns the canonical encoding of m. It fails if the manifest is invalid or larger than
// maxManifestBytes.
func (m Manifest) Marshal() ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	msg := &pb.Manifest{Entries: make([]*pb.Entry, len(m))}
	for i, e := range m {
		msg.Entries[i] = &pb.Entry{Path: e.Path, Size: uint64(e.Size), Mode: uint32(e.Mode), Digest: e.Digest[:], Pieces: e.Pieces}
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(msg)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if len(b) > maxManifestBytes {
		return nil, fmt.Errorf("manifest: %d bytes, at most %d are allowed", len(b), maxManifestBytes)
	}
	return b, nil
}

// UnmarshalManifest decodes the output of Marshal and rejects anything else: the result is valid and
// encodes to the same bytes.
func UnmarshalManifest(b []byte) (Manifest, error) {
	if len(b) > maxManifestBytes {
		return nil, fmt.Errorf("manifest: %d bytes, at most %d are allowed", len(b), maxManifestBytes)
	}
	if err := boundFields(b, MaxEntries); err != nil {
		return nil, err
	}
	var msg pb.Manifest
	if err := proto.Unmarshal(b, &msg); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	m := make(Manifest, len(msg.GetEntries()))
	for i, e := range msg.GetEntries() {
		if len(e.GetDigest()) != len(Digest{}) {
			return nil, fmt.Errorf("manifest: %.200q has a digest of %d bytes", e.GetPath(), len(e.GetDigest()))
		}
		m[i] = Entry{Path: e.GetPath(), Size: int64(e.GetSize()), Mode: fs.FileMode(e.GetMode()), Digest: Digest(e.GetDigest()), Pieces: e.GetPieces()}
	}
	canonical, err := m.Marshal()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(canonical, b) {
		return nil, fmt.Errorf("manifest: not in its canonical encoding")
	}
	return m, nil
}

// boundFields rejects a message with more than limit top-level fields. An empty entry takes two bytes on
// the wire but about a hundred when decoded, so the count is checked before decoding.
func boundFields(b []byte, limit int) error {
	for n := 0; len(b) > 0; n++ {
		_, _, size := protowire.ConsumeField(b)
		if size < 0 {
			return fmt.Errorf("manifest: %w", protowire.ParseError(size))
		}
		if n == limit {
			return fmt.Errorf("manifest: more than %d files", limit)
		}
		b = b[size:]
	}
	return nil
}
