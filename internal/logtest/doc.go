// Package logtest lets tests read what is logged while it is logged.
package logtest
