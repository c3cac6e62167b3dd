package layout

// A signature is the sequence of basic types in one item, as far as partly
// received items need it: after how many bytes a whole basic element ends.
// Only a struct mixes types; every other layout repeats its item's sequence,
// and a repeated sequence answers as the sequence does.
type signature struct {
	size, elements int
	parts          []part // nil of a basic type
}

type part struct {
	n  int
	of *signature
}

// add appends items of so many bytes in all that repeat of.
func (s *signature) add(bytes int, of *signature) {
	if bytes == 0 {
		return
	}
	n := bytes / of.size
	s.parts = append(s.parts, part{n, of})
	s.size += bytes
	s.elements += n * of.elements
}

// count returns how many basic elements the first bytes of items hold. ok is
// false when the last one is not whole.
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

// Elements returns how many basic elements a message of so many bytes holds,
// MPI_Get_elements. ok is false when it ends within one.
func (l *Layout) Elements(bytes int) (n int, ok bool) { return l.signature.count(bytes) }

// Count returns how many whole items a message of so many bytes is,
// MPI_Get_count. ok is false when it ends within one.
func (l *Layout) Count(bytes int) (n int, ok bool) {
	if l.size == 0 {
		return 0, bytes == 0
	}
	return bytes / l.size, bytes%l.size == 0
}
