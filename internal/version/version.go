package version

// Protocol is the number that two peers, and a peer and its processes, must
// agree on. It changes whenever bytes between them change their meaning.
const Protocol = 14

// Release is the version that people see.
const Release = "0.1.0"
