package version

// Protocol is the protocol version that two peers, and a peer and its processes, must agree on. It changes
// whenever the meaning of the bytes that they exchange changes.
const Protocol = 16

// Release is the version shown to users.
const Release = "0.1.0"
