// Kmeans finds k clusters among the points of a CSV file: centroids such that
// the sum of the squared distances from each point to the nearest of them
// is as small as it gets by Lloyd's method.
//
//	p2prun -n 4 -i data.csv ./examples/kmeans -k 3 data.csv
//	p2prun -n 4 -i data.csv ./examples/kmeans -k 3 -columns width,height data.csv
//
// The first line of the file names its columns. Without -columns, which takes
// names or numbers from 1, a point is made of the columns that hold a number in
// the first line after it. What is wrong in the file is reported with its line.
//
//	          Scatterv            Allreduce
//	         --> rank 0: nearest ---+      sums, counts
//	points --|-> rank 1: nearest ---+---> of each cluster ---> centroids --+
//	         --> rank 2: nearest ---+                                      |
//	                 ^                                                     |
//	                 +------------- until no point moves ------------------+
//
// Only the sums travel, k(d+1)+2 numbers a step for points of d coordinates,
// however many points there are. They go in one message instead of four, since
// it is the number of messages that costs time.
//
// The first centroids are drawn by k-means++ (Arthur and Vassilvitskii, 2007):
// points that are far from those drawn before are drawn more likely. All ranks
// have a generator with the same -seed, so they agree without a message on
// every number that it gives.
//
// The result is the same, to the last bit, in every run with as many ranks. With
// another number of ranks the sums are added in another order, and the last
// digits may differ.
package main
