package reliability

import "math"

// JobFails returns 1 − (1 − f^r)^n: the probability that a job of n ranks with r replicas each fails
// (P2P-MPI). Each of its processes fails with probability f, independently of the others.
func JobFails(n, r int, f float64) float64 {
	rank := math.Pow(f, float64(r))
	return -math.Expm1(float64(n) * math.Log1p(-rank)) // exact even if f^r is tiny
}
