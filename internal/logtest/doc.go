// Package logtest lets tests read a log while it is being written.
package logtest
