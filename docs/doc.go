// Package docs holds the documentation for users and developers. Its tests compare the pages with the
// code:
//
//	mpj.md       tables of names  <->  the names that package mpj exports
//	security.md  names of tests   <->  the tests and fuzz targets of this module
//
// They also check what networking.md and security.md say of fuzzing: each package that decodes input from
// other peers has a fuzz target, and each fuzz target has a small corpus.
package docs
