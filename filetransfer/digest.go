package filetransfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
)

// A Digest identifies content: the SHA-256 of its bytes (FIPS 180-4).
type Digest [sha256.Size]byte

// String returns d as 64 hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// ParseDigest parses the output of String. It rejects upper-case digits, so that each content has only
// one name.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(d) || hex.EncodeToString(b) != s {
		return Digest{}, fmt.Errorf("digest %.80q: want %d lower-case hexadecimal digits", s, 2*len(d))
	}
	copy(d[:], b)
	return d, nil
}

// DigestOf returns the digest of b.
func DigestOf(b []byte) Digest { return sha256.Sum256(b) }

// A Want describes content to fetch: its digest and size, and how its pieces are verified.
type Want struct {
	Digest Digest
	Size   int64
	Pieces Pieces // for content larger than pieceSize
	Name   string // name for error messages, such as a path; may be empty
}

// validate checks a Want that comes from another peer.
func (w Want) validate() error {
	switch {
	case w.Size < 0 || w.Size > maxFileBytes:
		return fmt.Errorf("%s: size %d is out of range", w, w.Size)
	case !w.Pieces.fits(w.Size):
		return fmt.Errorf("%s: %d bytes for %d pieces", w, len(w.Pieces), pieces(w.Size))
	}
	return nil
}

func (w Want) String() string {
	if w.Name == "" {
		return w.Digest.String()
	}
	return strconv.Quote(w.Name) + " (" + w.Digest.String() + ")"
}

// digestReader hashes r until EOF and returns the digest and the number of bytes.
func digestReader(ctx context.Context, r io.Reader) (Digest, int64, error) {
	h := sha256.New()
	n, err := io.Copy(h, contextReader{ctx, r})
	return Digest(h.Sum(nil)), n, err
}

// A contextReader fails once its context has ended, so that reading a huge file can be cancelled.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}
