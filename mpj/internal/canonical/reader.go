package canonical

// malformed is the type of the reader's panics. Streams come from encoding/gob, so a panic indicates
// a format that this package does not support.
type malformed string

// A reader reads a gob stream as gob.Decoder does.
type reader struct {
	rest    []byte // rest of the stream
	message int    // len(rest) at the end of the current message
	types   map[int]definition

	start  []byte // rest at the beginning of the current piece
	pieces []piece
}

// begin starts the pieces of a value.
func (r *reader) begin() { r.pieces, r.start = nil, r.rest }

// cut ends the current piece, if it is not empty, and starts another.
func (r *reader) cut() {
	if n := len(r.start) - len(r.rest); n > 0 {
		r.pieces = append(r.pieces, piece{raw: r.start[:n]})
	}
	r.start = r.rest
}

// end returns the pieces of a value.
func (r *reader) end() []piece {
	r.cut()
	return r.pieces
}

// typeSequence reads definitions and the type number of a value. Inside an interface, a definition
// ends the current message, and the value continues in the next message.
func (r *reader) typeSequence() int {
	for {
		if len(r.rest) == r.message {
			r.nextMessage()
		}
		id := r.int()
		if id >= 0 {
			return id
		}
		if _, ok := r.types[-id]; ok {
			panic(malformed("gob: a type is defined twice"))
		}
		r.types[-id] = r.definition()
		if len(r.rest) != r.message {
			r.uint() // length of the rest of a nested message
		}
	}
}

func (r *reader) nextMessage() {
	if n := r.uint(); n <= uint64(len(r.rest)) {
		r.message = len(r.rest) - int(n)
		return
	}
	panic(malformed("gob: truncated message"))
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		panic(malformed("gob: truncated value"))
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// uint reads an unsigned integer: a single byte, or its negated length followed by its bytes.
func (r *reader) uint() uint64 {
	first := r.bytes(1)[0]
	if first < 0x80 {
		return uint64(first)
	}
	var x uint64
	for _, c := range r.bytes(uint64(-first)) {
		x = x<<8 | uint64(c)
	}
	return x
}

// int reads a signed integer: the lowest bit tells whether to complement the rest.
func (r *reader) int() int {
	x := r.uint()
	if x&1 != 0 {
		return int(^(x >> 1))
	}
	return int(x >> 1)
}

func appendUint(b []byte, x uint64) []byte {
	if x < 0x80 {
		return append(b, byte(x))
	}
	n := 1
	for n < 8 && x>>(8*n) != 0 {
		n++
	}
	b = append(b, byte(-n))
	for i := n - 1; i >= 0; i-- {
		b = append(b, byte(x>>(8*i)))
	}
	return b
}

func appendInt(b []byte, i int64) []byte {
	if i < 0 {
		return appendUint(b, uint64(^i<<1)|1)
	}
	return appendUint(b, uint64(i)<<1)
}
