// Samplesort sorts the lines of a file, by their bytes or, with -integers, by
// the whole number in each, and writes them to another file.
//
//	p2prun -n 4 -i big.txt -o sorted.txt ./examples/samplesort big.txt
//	p2prun -n 4 -i big.txt -o 'sorted.txt.*' ./examples/samplesort -parts big.txt
//
// With -parts every rank writes its part, sorted.txt.0 and so on, which follow
// each other; else rank 0 receives all parts and writes them. -out gives another
// name. Lines that compare equal stay in the order of the file. A last line
// without a newline gets one.
//
//	 read     sort   sample          Alltoallv          merge
//	rank 0 -> cabd -> a.c. --+     +-- aab --------+--> aabb     all lines up to
//	rank 1 -> dbca -> a.c. --+-> splitters b|c     |             the 1st splitter,
//	rank 2 -> bacd -> a.c. --+     +-- ...         +--> bccc     up to the 2nd, ...
//
// It is parallel sorting by regular sampling (Shi and Schaeffer, 1992). Each
// rank sorts its part of the file and takes evenly spaced samples of it; the
// samples of all, sorted, say at which lines to divide, so that every rank gets
// about as much: never more than two parts of even size and some.
//
// That holds only as long as no two keys are equal. A file of one line a million
// times would go to one rank. So lines that are equal are told apart by where
// they are in the file, which also keeps their order.
//
// At the end the ranks compare their borders, and count and checksum of all
// lines before and after.
package main
