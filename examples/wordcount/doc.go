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
// The default is the 20 most frequent words; -top sets another number, and -all prints all words.
//
// By default the files are divided in advance, into shares of equal size. With -farm, rank 0
// assigns them in small batches to the rank that asks first, which suits machines of unequal speed.
// The assignment then differs in each run, but not among the replicas of a rank, and the table is
// the same.
package main
