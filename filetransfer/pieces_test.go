package filetransfer

import (
	"bytes"
	"testing"
)

func TestT1EachPieceIsVerifiedSeparately(t *testing.T) {
	for _, size := range []int{0, 1, pieceSize - 1, pieceSize, pieceSize + 1, 3 * pieceSize, 3*pieceSize + 64} {
		b := content(1, size)
		w := WantOf(b)
		if w.Digest != DigestOf(b) || w.Size != int64(size) || w.validate() != nil {
			t.Fatalf("%d bytes: want %+v is invalid: %v", size, w, w.validate())
		}
		for i := range pieces(w.Size) {
			piece := bytes.Clone(b[i*pieceSize : i*pieceSize+pieceBytes(w.Size, i)])
			if !w.verify(i, piece) {
				t.Errorf("%d bytes: valid piece %d was rejected", size, i)
			}
			if i > 0 && w.verify(i-1, piece) {
				t.Errorf("%d bytes: piece %d was accepted in place of the previous one", size, i)
			}
			if w.verify(i, append(piece, 0)) {
				t.Errorf("%d bytes: piece %d was accepted with an extra byte", size, i)
			}
			if len(piece) > 0 {
				piece[len(piece)-1] ^= 1
				if w.verify(i, piece) {
					t.Errorf("%d bytes: piece %d was accepted with a wrong byte", size, i)
				}
			}
		}
	}
}

// Forged pieces never lead to a content, because each value is the result of the previous one.
func TestT1ForgedPiecesAreRejected(t *testing.T) {
	good, forged := content(1, 3*pieceSize), content(2, 3*pieceSize)
	w := WantOf(good)
	w.Pieces = WantOf(forged).Pieces
	for i := range 2 {
		if !w.verify(i, forged[i*pieceSize:(i+1)*pieceSize]) {
			t.Fatalf("piece %d does not match its own chaining values", i)
		}
	}
	for _, b := range [][]byte{good, forged} {
		if w.verify(2, b[2*pieceSize:]) {
			t.Error("the last piece was accepted after foreign pieces")
		}
	}
}

func TestUnitsCoverAListOnce(t *testing.T) {
	var list []Want
	for i := range 3*maxBatch + 7 {
		list = append(list, Want{Digest: Digest{byte(i), byte(i >> 8)}, Size: int64(i % 3)})
	}
	list = append(list, Want{Size: 3*pieceSize + 1}, Want{Digest: Digest{1}, Size: pieceSize}, Want{Digest: Digest{2}, Size: 1})
	next, piece := 0, 0
	for i, u := range unitsOf(list) {
		if u.first != next || u.piece != piece || u.count < 1 || u.count > maxBatch {
			t.Fatalf("unit %d is %+v, want content %d piece %d", i, u, next, piece)
		}
		var size int64
		for _, w := range list[u.first : u.first+u.count] {
			size += int64(pieceBytes(w.Size, u.piece))
		}
		if size > pieceSize {
			t.Fatalf("unit %d has %d bytes", i, size)
		}
		if piece++; piece == pieces(list[u.first].Size) {
			next, piece = u.first+u.count, 0
		}
	}
	if next != len(list) {
		t.Errorf("units end at content %d of %d", next, len(list))
	}
}
