// Wordcount counts the words of all regular files in its working folder, which
// is where staged files are, and prints the most frequent ones.
//
//	find . -name '*.txt' >list
//	p2prun -n 4 -r 2 -l list ./examples/wordcount -top 10
//
// A word is a longest run of letters and numbers, as Unicode has them, and
// underscores; "The" and "the" are two words. Files may hold anything: bytes
// that are no UTF-8 separate words. A file that cannot be read is an error.
//
//	        files           words             counts
//	rank 0  -----> count ---+   +---> add up -------> table
//	rank 1  -----> count ---+===+---> add up ---------^
//	rank 2  -----> count ---+   +---> add up ---------^
//	            each word to the rank that owns it
//
// Without -top there are 20 words, with -all all of them.
//
// By default the files are divided beforehand, in shares of equal size. With
// -farm, rank 0 deals them out in small batches to whichever rank asks first,
// which suits machines of unequal speed. Who counts what is then different in
// each run, but never among the replicas of a rank, and the table is the same.
package main
