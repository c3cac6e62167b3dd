package filetransfer

// Neighbours returns with whom peer i of n peers shares what it fetches, as
// indices: all others of up to 17, and of more those at distances 1, 2, 4, ... on
// either side. So the number grows with the logarithm of n, every peer is few
// steps from every other, and j is a neighbour of i if i is one of j.
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
