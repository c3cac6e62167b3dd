package filetransfer

// Neighbours returns the indices of the peers with which peer i of n peers shares the contents that it
// fetches. These are all others if n is at most 17, and otherwise the peers at distances 1, 2, 4, ... on
// either side. So the number of neighbours grows with the logarithm of n, and every peer is a few steps from
// every other. The relation is symmetric.
func Neighbours(i, n int) (js []int) {
	if n <= fullMesh {
		for j := range n {
			if j != i {
				js = append(js, j)
			}
		}
		return js
	}
	for d := 1; d <= n/2; d *= 2 {
		js = append(js, (i+d)%n)
		if 2*d != n {
			js = append(js, (i-d+n)%n)
		}
	}
	return js
}

const fullMesh = 17
