// Wordcount counts the words of all regular files in its working directory, which contains the
// staged files. It prints the most frequent words.
//
//	find . -name '*.txt' >list
//	p2prun -n 4 -r 2 -l list ./examples/wordcount -top 10
//
// A word is a maximal sequence of Unicode letters, numbers and underscores; "The" and "the" are two
// words. Files may contain any bytes: invalid UTF-8 separates words. A file that cannot be read is
// an error.
//
//	        files           words             counts
//	rank 0  -----> count ---+   +---> add up -------> table
//	rank 1  -----> count ---+===+---> add up ---------^
//	rank 2  -----> count ---+   +---> add up ---------^
//	            each word to the rank that owns it
//
// By default wordcount prints the 20 most frequent words; -top sets a different number, and -all
// prints all words.
//
// By default the files are divided in advance, into shares of equal size. With -farm, rank 0 assigns
// files in small batches to ranks that are idle, which suits machines of unequal speed. The
// assignment then differs between runs, but not between the replicas of a rank, and the table is the
// same.
package main
