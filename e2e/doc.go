// Package e2e tests the whole system with real processes: p2pboot, p2prun and p2phalt as a user
// starts them, real programs, SIGKILL and SIGSTOP. Traffic stays on loopback, or in network
// namespaces that a test creates. Those form a LAN of machines whose links the test cuts and slows
// down. Every process has a time limit. Each test ends with a check for leftovers of a job: slots,
// processes, scratch files.
//
//	go test ./e2e/            all tests
//	go test ./e2e/ -run Kill  only tests that kill processes
//	go test ./e2e/ -run LAN   only tests with links
//	go test ./e2e/ -run NAT   only tests with routers, behind which the peers are
//
// TestNemesis runs jobs with known answers. It injects faults into processes, peers and the
// network, as package nemesis plans them from a printed seed, and judges the outcome. Package ether
// is the network. To look for a rare fault, and to repeat one round:
//
//	go test ./e2e/ -run Nemesis -v -timeout 0 -nemesis 2h
//	go test ./e2e/ -run Nemesis -v -nemesis.seed 687047151129312766 -nemesis.round 12
//
// Network namespaces need root, or a user namespace in which the tests are root:
//
//	unshare --user --map-root-user --net go test ./e2e/ -run LAN
//
// Without either, the tests with links are skipped; they fail if CI is set. They use ip and tc
// (iproute2), and nft (nftables).
//
// The tests build the commands and the programs once, into a temporary directory, and without the
// race detector. Tests that mostly wait run concurrently, twice as many as there are processors.
// The flag -full runs all tests in all variants and sizes. On a machine without a compiler, -bin
// names a directory with all binaries.
package e2e
