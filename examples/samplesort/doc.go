// Samplesort sorts the lines of a file and writes them to another file. It sorts by the bytes of
// the lines or, with -integers, by the integer in each line.
//
//	p2prun -n 4 -i big.txt -o sorted.txt ./examples/samplesort big.txt
//	p2prun -n 4 -i big.txt -o 'sorted.txt.*' ./examples/samplesort -parts big.txt
//
// With -parts, every rank writes its part to its own file: sorted.txt.0 and so on, in order.
// Otherwise rank 0 receives all parts and writes them. The option -out sets another name. Lines that
// compare equal stay in the order of the input. If the last line has no newline, one is added.
//
//	 read     sort   sample          Alltoallv          merge
//	rank 0 -> cabd -> a.c. --+     +-- aab --------+--> aabb     all lines up to
//	rank 1 -> dbca -> a.c. --+-> splitters b|c     |             the 1st splitter,
//	rank 2 -> bacd -> a.c. --+     +-- ...         +--> bccc     up to the 2nd, ...
//
// The algorithm is parallel sorting by regular sampling (Shi and Schaeffer, 1992). Each rank sorts
// its part of the file and takes evenly spaced samples. The sorted samples of all ranks determine
// the splitters. So every rank gets a similar number of lines, never much more than twice the mean.
//
// This bound holds only if no two keys are equal; all of a million equal lines would go to one rank.
// So equal lines are distinguished by their position in the file, which also keeps their order.
//
// At the end, each rank compares its first line with the last line of the previous rank, and the
// ranks compare the count and checksum of all lines before and after.
package main
