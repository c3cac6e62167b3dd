package filetransfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
)

// pieceSize is the unit in which content is verified and passed on to other peers. It is a multiple of
// SHA-256's block size of 64 bytes. Small pieces keep slow links busy: a peer passes nothing on before
// its first piece is complete, and the last pieces take as long as the first ones.
const pieceSize = 1 << 18

// chainBytes is the size of SHA-256's chaining value.
const chainBytes = sha256.Size

// Pieces allows each piece of a content to be verified independently. SHA-256 carries 32 bytes, its
// chaining value, from block to block (FIPS 180-4, 6.2.2). Pieces holds that value at the end of every
// piece but the last, in order:
//
//	start --piece 0--> value 0 --piece 1--> value 1 ... --last piece--> digest
//
// Piece i is correct if hashing it takes value i-1 to value i. If all pieces are correct, the content has
// its digest, so no second hash is necessary, and forged Pieces can never lead to wrong content. A content of
// one piece has empty Pieces.
type Pieces []byte

// pieces returns how many pieces a content of size bytes has. An empty content has one piece.
func pieces(size int64) int { return int(max(1, (size+pieceSize-1)/pieceSize)) }

// fits reports whether p has the right length for a content of size bytes.
func (p Pieces) fits(size int64) bool { return len(p) == (pieces(size)-1)*chainBytes }

func pieceBytes(size int64, i int) int {
	return int(min(pieceSize, size-int64(i)*pieceSize))
}

func (w Want) verify(i int, b []byte) bool {
	if len(b) != pieceBytes(w.Size, i) {
		return false
	}
	h := sha256.New()
	if i > 0 {
		h = resume(w.Pieces[(i-1)*chainBytes:i*chainBytes], int64(i)*pieceSize)
	}
	h.Write(b)
	if i == pieces(w.Size)-1 {
		return Digest(h.Sum(nil)) == w.Digest
	}
	return bytes.Equal(chainingValue(h), w.Pieces[i*chainBytes:(i+1)*chainBytes])
}

// A pieceHasher computes the digest and the Pieces of the bytes written to it.
type pieceHasher struct {
	hash   hash.Hash
	size   int64
	pieces Pieces
}

func newPieceHasher() *pieceHasher { return &pieceHasher{hash: sha256.New()} }

func (p *pieceHasher) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		if p.size > 0 && p.size%pieceSize == 0 { // another piece begins
			p.pieces = append(p.pieces, chainingValue(p.hash)...)
		}
		part := b[:min(int64(len(b)), pieceSize-p.size%pieceSize)]
		p.hash.Write(part)
		p.size += int64(len(part))
		b = b[len(part):]
	}
	return n, nil
}

func (p *pieceHasher) want() Want {
	return Want{Digest: Digest(p.hash.Sum(nil)), Size: p.size, Pieces: p.pieces}
}

// WantOf returns the Want that describes the content b.
func WantOf(b []byte) Want {
	p := newPieceHasher()
	p.Write(b) // never fails
	return p.want()
}

// readWant hashes r until EOF.
func readWant(ctx context.Context, r io.Reader) (Want, error) {
	p := newPieceHasher()
	_, err := io.Copy(p, contextReader{ctx, r})
	return p.want(), err
}

// The state of crypto/sha256 as encoded by its MarshalBinary: the magic, the chaining value, an
// incomplete block, and the number of bytes hashed.
const (
	stateMagic = "sha\x03"
	stateBytes = len(stateMagic) + chainBytes + sha256.BlockSize + 8
)

// chainingValue returns the chaining value of h, which must be at the end of a block.
func chainingValue(h hash.Hash) []byte {
	state, err := h.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil || len(state) != stateBytes {
		panic(fmt.Sprintf("state of SHA-256 in %d bytes: %v", len(state), err)) // an incompatible Go version
	}
	return state[len(stateMagic) : len(stateMagic)+chainBytes]
}

// resume returns a SHA-256 with the given chaining value after done bytes, which are whole blocks.
func resume(value []byte, done int64) hash.Hash {
	state := make([]byte, 0, stateBytes)
	state = append(state, stateMagic...)
	state = append(state, value...)
	state = append(state, make([]byte, sha256.BlockSize)...)
	state = binary.BigEndian.AppendUint64(state, uint64(done))
	h := sha256.New()
	if err := h.(encoding.BinaryUnmarshaler).UnmarshalBinary(state); err != nil {
		panic(fmt.Sprintf("state of SHA-256: %v", err)) // an incompatible Go version
	}
	return h
}
