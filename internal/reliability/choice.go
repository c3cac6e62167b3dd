package reliability

// Replicas returns the least number of replicas with which a job of n ranks succeeds with probability success, if
// each process fails with probability f. ok is false if more than most replicas would be needed.
func Replicas(n int, f, success float64, most int) (r int, ok bool) {
	for r := 1; r <= most; r++ {
		if JobFails(n, r, f) <= 1-success {
			return r, true
		}
	}
	return most, false
}
