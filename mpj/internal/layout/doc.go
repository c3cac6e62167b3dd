// Package layout is the pure part of MPI's derived datatypes: which bytes of a
// memory a datatype is made of, in which order, and how they get into a message
// and back.
//
//	memory   ....AAAA....BBBB....CCCC....DDDD      a column: 4 runs, one segment
//	             |       |       |       |
//	             v       v       v       v         Append
//	packed       AAAABBBBCCCCDDDD                  what a message carries
//	             |       |       |       |         Unpack
//	memory   ....AAAA....BBBB....CCCC....DDDD      or any other layout of this size
//
// A Layout is flat from the moment it is made: constructors do not keep a tree
// but a list of segments, each a run of bytes that recurs at a fixed distance.
// Runs that touch are merged, so a vector without gaps is one copy, a column is
// one loop, and a block of a cube one loop for each of its planes. The order of
// the runs is that of the type map of MPI-4 §5.1; so two layouts with the same
// type signature exchange messages whatever their shapes.
//
// Sizes, displacements and extents are bytes here. Package mpj gives them types
// and counts in elements.
package layout
