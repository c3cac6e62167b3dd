// Package layout is the pure part of MPI's derived datatypes. It describes which bytes of memory a
// datatype consists of and in which order, and it packs them into messages and unpacks them.
//
//	memory   ....AAAA....BBBB....CCCC....DDDD      a column: 4 runs, one segment
//	             |       |       |       |
//	             v       v       v       v         Append
//	packed       AAAABBBBCCCCDDDD                  contents of a message
//	             |       |       |       |         Unpack
//	memory   ....AAAA....BBBB....CCCC....DDDD      or any other layout of this size
//
// A Layout is flat: constructors do not build a tree but a list of segments. A segment is a run of
// bytes that recurs at a fixed distance. Adjacent runs are merged. Packing a vector without gaps is
// therefore one copy, packing a column is one loop, and packing a block of a cube is one loop per
// plane. The runs have the order of the type map of MPI-4 §5.1. Two layouts with the same type
// signature can therefore exchange messages, whatever their shapes.
//
// Sizes, displacements and extents are in bytes. Package mpj adds types, and counts in elements.
package layout
