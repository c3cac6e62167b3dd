package layout

// A signature is the sequence of basic types in one item. It contains only the information that
// partly received items require: the positions at which basic elements end. Only a struct mixes
// types. Every other layout repeats the sequence of its item type, and so has the same signature.
type signature struct {
	size, elements int
	parts          []part // nil for a basic type
}

type part struct {
	n  int
	of *signature
}

// add appends items with the signature of, which have the given total number of bytes.
func (s *signature) add(bytes int, of *signature) {
	if bytes == 0 {
		return
	}
	n := bytes / of.size
	s.parts = append(s.parts, part{n, of})
	s.size += bytes
	s.elements += n * of.elements
}

// count returns the number of basic elements in the first bytes of items. ok is false if the last
// element is incomplete.
func (s *signature) count(bytes int) (n int, ok bool) {
	if s.size == 0 {
		return 0, bytes == 0
	}
	n = bytes / s.size * s.elements
	rest := bytes % s.size
	for _, p := range s.parts {
		if rest < p.n*p.of.size {
			m, ok := p.of.count(rest)
			return n + m, ok
		}
		n += p.n * p.of.elements
		rest -= p.n * p.of.size
	}
	return n, rest == 0
}

// Elements returns the number of basic elements in a message of the given length, as
// MPI_Get_elements does. ok is false if the message ends within an element.
func (l *Layout) Elements(bytes int) (n int, ok bool) { return l.signature.count(bytes) }

// Count returns the number of whole items in a message of the given length, as MPI_Get_count does.
// ok is false if the message ends within an item.
func (l *Layout) Count(bytes int) (n int, ok bool) {
	if l.size == 0 {
		return 0, bytes == 0
	}
	return bytes / l.size, bytes%l.size == 0
}
