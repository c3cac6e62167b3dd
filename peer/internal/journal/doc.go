// Package journal keeps who ran what on a peer, for its owner: one entry when a job begins
// here, and one when it has gone, as lines of JSON in a file of the peer's home. The file
// outlives the peer, however that ends, and stays below a limit: the oldest half
// goes when it is reached.
package journal
