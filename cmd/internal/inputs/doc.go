// Package inputs reads p2prun's lists of input files and says under which path
// each file is staged.
//
//	data/a.txt       -> data/a.txt        relative to the current folder
//	/srv/corpus/b    -> srv/corpus/b      an absolute path loses its slash
//	../c             -> refused           nothing is staged outside the scratch folder
package inputs
