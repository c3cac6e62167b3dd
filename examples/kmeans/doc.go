// Kmeans finds k clusters among the points of a CSV file by Lloyd's method. It searches for
// centroids that minimize the sum of the squared distances from each point to the nearest centroid.
//
//	p2prun -n 4 -i data.csv ./examples/kmeans -k 3 data.csv
//	p2prun -n 4 -i data.csv ./examples/kmeans -k 3 -columns width,height data.csv
//
// The first line of the file names its columns. The option -columns selects columns by name, or by
// number starting with 1. Without this option, a point consists of the columns that contain a number
// in the first line after the names. Errors in the file are reported with their line.
//
//	          Scatterv            Allreduce
//	         --> rank 0: nearest ---+      sums, counts
//	points --|-> rank 1: nearest ---+---> of each cluster ---> centroids --+
//	         --> rank 2: nearest ---+                                      |
//	                 ^                                                     |
//	                 +------------- until no point moves ------------------+
//
// The ranks exchange only the sums: k(d+1)+2 numbers per step for points of d coordinates, whatever
// the number of points. The sums are sent in one message instead of four, because the number of
// messages determines the time.
//
// The first centroids are drawn by k-means++ (Arthur and Vassilvitskii, 2007): points far from the
// drawn points are more likely to be drawn next. All ranks have a generator with the same -seed, so
// they get the same numbers without messages.
//
// The result is the same, to the last bit, in every run with the same number of ranks. With a
// different number of ranks, the sums are added in a different order, and the last digits may
// differ.
package main
